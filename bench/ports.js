// Runs in a page of the extension before the works of a program: what they share.
(() => {
  // A native port with nothing between, for the C hosts: what Sidekeep's stub costs counts for Sidekeep.
  class RawPort {
    constructor(name) {
      this.port = chrome.runtime.connectNative(name);
      this.waiting = [];
      this.port.onMessage.addListener((message) => this.waiting.shift()?.(message));
      this.port.onDisconnect.addListener(() => {
        const reason = chrome.runtime.lastError?.message;
        for (const settle of this.waiting.splice(0)) settle(new Error(reason));
      });
    }
    ask(message) {
      this.port.postMessage(message);
      return this.next();
    }
    async next() {
      const message = await new Promise((resolve) => this.waiting.push(resolve));
      if (message instanceof Error) throw message;
      return message;
    }
    // `size` bytes from the host `echo`, in frames of 256 KiB that are acknowledged.
    async receive(size) {
      const pieces = [];
      this.port.postMessage(`w${size}`);
      for (let piece = await this.next(); piece !== 0; piece = await this.next()) {
        pieces.push(piece);
        this.port.postMessage('a');
      }
      return pieces.join('');
    }
  }
  globalThis.RawPort = RawPort;

  // Runs a work once; returns [its duration in milliseconds], what it gave.
  globalThis.once = async (work) => {
    const start = performance.now();
    const result = await work();
    return [[performance.now() - start], result];
  };
})()
