/**
 * A host in memory behind a fake `chrome.runtime`, for tests of the stub alone.
 *
 * It speaks docs/protocol.md: hello, batches, parts and windows in both directions, operation ids.
 * It is written independently of the stub (it shares no code with it) and is strict: what breaks
 * the protocol is noted in `faults`, and every test asserts that there are none.
 *
 * Messages cross as JSON text in both directions, as they do in a browser, so that what the
 * browser's serialiser would change is changed here too.
 */

import assert from 'node:assert/strict';

const MESSAGE = 262_144;
const STRING = 65_536;
const FRAME_DOWN = 1_048_576;
const FRAME_UP = 67_108_864;

/** Bytes of the JSON text of a value. */
export const jsonBytes = (value) => Buffer.byteLength(JSON.stringify(value));

/** What outlives a host process: the "file", and what the tests want to look at. */
export class Disk {
  items = new Map();
  operations = new Map();
}

/** One host process. `deliver(message)` takes a frame from the stub, `emit` gives one to it. */
export class FakeHost {
  constructor(disk, emit, options = {}) {
    this.disk = disk;
    this.emit = emit;
    this.options = { window: 8, parts: true, ...options };
    this.faults = [];
    this.greeted = false;
    this.grant = 0;
    this.joining = new Map();
    this.lastOf = 0;
    this.sentOf = 0;
    this.queue = [];
    this.unacked = new Map();
    this.applied = 0;
    this.dead = false;
  }

  deliver(message) {
    const elements = Array.isArray(message) ? message : [message];
    const whole = [];
    for (const element of elements) {
      if (element.ack) this.acknowledged(element.ack);
      else if (element.part) {
        const joined = this.join(element);
        this.emit({ ack: { of: element.part.of, i: element.part.i } });
        if (joined) whole.push(joined);
      } else whole.push(element);
    }
    const answers = [];
    for (const request of whole) {
      const answer = this.answer(request);
      if (answer !== undefined) answers.push(answer);
    }
    this.reply(answers, Array.isArray(message));
    this.flow();
  }

  reply(answers, asArray) {
    const small = [];
    for (const answer of answers) {
      if (this.grant && jsonBytes(answer) > MESSAGE) this.queue.push(...this.cut(answer));
      else small.push(answer);
    }
    if (small.length > 0) this.emit(asArray ? small : small[0]);
  }

  // --- parts -----------------------------------------------------------------------------

  flow() {
    const count = () => [...this.unacked.values()].reduce((sum, set) => sum + set.size, 0);
    while (this.queue.length > 0 && count() < this.grant) {
      const part = this.queue.shift();
      const waiting = this.unacked.get(part.part.of) ?? new Set();
      waiting.add(part.part.i);
      this.unacked.set(part.part.of, waiting);
      this.emit(part);
    }
  }

  acknowledged({ of, i }) {
    for (const number of [...(this.unacked.get(of) ?? [])]) {
      if (number <= i) this.unacked.get(of).delete(number);
    }
  }

  cut(answer) {
    const of = (this.sentOf += 1);
    const copy = structuredClone(answer);
    const holes = [];
    const strings = [];
    const walk = (node, path) => {
      for (const key of Object.keys(node)) {
        const step = Array.isArray(node) ? Number(key) : key;
        if (typeof node[key] === 'string' && jsonBytes(node[key]) - 2 > STRING) {
          holes.push([...path, step]);
          strings.push(node[key]);
          node[key] = '';
        } else if (node[key] && typeof node[key] === 'object') walk(node[key], [...path, step]);
      }
    };
    walk(copy, []);
    const parts = [];
    const add = (string, make) => {
      const pieces = [];
      for (let at = 0; at < string.length; ) {
        let end = Math.min(string.length, at + 40_000);
        if (end < string.length && /[\ud800-\udbff]/.test(string[end - 1])) end -= 1;
        pieces.push(string.slice(at, end));
        at = end;
      }
      pieces.forEach((piece, index) => {
        const head = { of, i: parts.length, last: index === pieces.length - 1 };
        parts.push(make(head, piece));
      });
    };
    add(JSON.stringify(copy), (head, text) => ({ part: head.i === 0 ? { ...head, holes } : head, text }));
    strings.forEach((string, hole) => add(string, (head, s) => ({ part: { ...head, hole }, s })));
    return parts;
  }

  join(element) {
    const { of, i, last, hole, holes } = element.part;
    let state = this.joining.get(of);
    if (!state) {
      this.check(of === this.lastOf + 1, `message ${of} after ${this.lastOf}`);
      this.lastOf = of;
      state = { next: 0, text: '', paths: [], hole: -1, strings: [], message: null };
      this.joining.set(of, state);
    }
    this.check(this.grant > 0, 'parts without a grant');
    this.check(i === state.next, `part ${i}, expected ${state.next}`);
    state.next += 1;
    const piece = state.hole < 0 ? element.text : element.s;
    this.check(typeof piece === 'string', 'a part without a piece');
    this.check(jsonBytes(piece) - 2 <= MESSAGE, `a piece of ${jsonBytes(piece)} bytes`);
    this.check(piece.isWellFormed(), 'a piece that splits a pair');
    this.check((hole ?? -1) === state.hole, `hole ${hole}, expected ${state.hole}`);
    if (state.hole < 0) state.text += piece;
    else state.strings[state.hole] = (state.strings[state.hole] ?? '') + piece;
    if (holes) state.paths.push(...holes);
    if (last) state.hole += 1;
    if (!last || state.hole < state.paths.length) return null;
    this.joining.delete(of);
    const message = JSON.parse(state.text);
    state.paths.forEach((path, index) => {
      const parent = path.slice(0, -1).reduce((node, key) => node[key], message);
      this.check(parent[path.at(-1)] === '', `no cut string at ${path}`);
      this.check(jsonBytes(state.strings[index]) - 2 > STRING, 'a hole that need not be one');
      parent[path.at(-1)] = state.strings[index];
    });
    this.check(jsonBytes(message) > MESSAGE, 'a message in parts that fits a frame');
    return message;
  }

  check(holds, fault) {
    if (!holds) this.faults.push(fault);
  }

  // --- methods ---------------------------------------------------------------------------

  answer(request) {
    const { jsonrpc, id, method, params, op } = request;
    this.check(jsonrpc === '2.0', 'no JSON-RPC 2.0');
    if (this.grant) this.check(jsonBytes(request) <= MESSAGE || this.joined(request), 'too long for one frame');
    const refuse = (code, kind, message, more = {}) => ({
      jsonrpc: '2.0',
      id,
      error: { code, message, data: { kind, ...more } },
    });
    const special = this.options.answer?.(request, this);
    if (special === null) return undefined;
    if (special) return { jsonrpc: '2.0', id, ...special };
    if (!this.greeted && method !== 'host.hello') return refuse(-32600, 'invalidRequest', 'hello first');
    try {
      if (op !== undefined) {
        const known = this.disk.operations.get(`${this.client} ${op}`);
        if (known) return { jsonrpc: '2.0', id, result: known };
      }
      const result = this.run(method, params);
      if (op !== undefined) {
        this.applied += 1;
        this.disk.operations.set(`${this.client} ${op}`, result);
      }
      return { jsonrpc: '2.0', id, result };
    } catch (error) {
      return refuse(error.code ?? -32603, error.kind ?? 'internal', error.message);
    }
  }

  joined(request) {
    return jsonBytes(request) > MESSAGE; // came through join(), which checked it
  }

  run(method, params) {
    const { items } = this.disk;
    const chosen = (keys) => {
      if (keys === null) return [...items.keys()].sort();
      return (typeof keys === 'string' ? [keys] : [...new Set(keys)].sort()).filter((key) => items.has(key));
    };
    switch (method) {
      case 'host.hello':
        this.greeted = true;
        this.client = params.client;
        this.profile = params.profile;
        if (params.parts && this.options.parts) this.grant = Math.min(params.parts.window, this.options.window);
        return {
          protocol: 1,
          host: { name: 'fake', version: '0', pid: this.options.pid ?? 1 },
          features: [],
          store: 'epoch',
          seq: { local: 0 },
          conversation: '',
          ...(this.grant ? { parts: { window: this.grant } } : {}),
          notices: [],
        };
      case 'host.ping':
        return {};
      case 'storage.get':
        return { items: Object.fromEntries(chosen(params.keys).map((key) => [key, items.get(key)])) };
      case 'storage.set':
        for (const [key, value] of Object.entries(params.items)) items.set(key, value);
        return {};
      case 'storage.remove':
        for (const key of chosen(params.keys)) items.delete(key);
        return {};
      case 'storage.clear':
        items.clear();
        return {};
      case 'storage.getKeys':
        return { keys: chosen(null) };
      case 'storage.getBytesInUse':
        return {
          bytes: chosen(params.keys).reduce(
            (sum, key) => sum + Buffer.byteLength(key) + jsonBytes(items.get(key)),
            0,
          ),
        };
      default:
        throw Object.assign(new Error(`no method ${method}`), { code: -32601, kind: 'methodNotFound' });
    }
  }
}

/** A `chrome.runtime` event. */
class FakeEvent {
  listeners = [];
  addListener(listener) {
    this.listeners.push(listener);
  }
  removeListener(listener) {
    this.listeners = this.listeners.filter((other) => other !== listener);
  }
  emit(...args) {
    for (const listener of [...this.listeners]) listener(...args);
  }
}

/**
 * Puts a fake `chrome` in place. Returns what the test looks at and turns:
 *
 * - `hosts`: every process started, newest last; `up`: frames the stub posted, as [bytes, message]
 * - `script(n)`: options of the n-th process, or {missing: text} for a port that fails with it
 * - `kill(text)`: ends the newest process, as a crash or SIGKILL would
 */
export function fakeBrowser({ script = () => ({}), disk = new Disk() } = {}) {
  const browser = { disk, hosts: [], up: [], opened: 0, lastError: null, ports: [], script };
  const real = {};
  const later = (run) => setTimeout(run, 0);

  const connectNative = (name) => {
    const number = browser.opened;
    browser.opened += 1;
    const options = browser.script(number, name);
    if (options.throws) throw new Error(options.throws);
    const port = { onMessage: new FakeEvent(), onDisconnect: new FakeEvent(), open: true };
    const fail = (text) => {
      if (!port.open) return;
      port.open = false;
      host.dead = true;
      browser.lastError = { message: text };
      port.onDisconnect.emit(port);
      browser.lastError = null;
    };
    if (options.missing) later(() => fail(options.missing));
    const host = new FakeHost(
      disk,
      (message) => {
        const text = JSON.stringify(message);
        host.check(Buffer.byteLength(text) <= FRAME_DOWN, 'a frame down beyond 1 MiB');
        later(() => port.open && port.onMessage.emit(JSON.parse(text)));
      },
      { pid: number + 1, ...options },
    );
    port.host = host;
    port.postMessage = (message) => {
      if (!port.open) throw new Error('Attempting to use a disconnected port object');
      const text = JSON.stringify(message);
      if (Buffer.byteLength(text) >= FRAME_UP) {
        throw new Error('Message exceeded maximum allowed size of 64MiB.');
      }
      const frame = JSON.parse(text);
      browser.up.push([Buffer.byteLength(text), frame]);
      if (options.missing || options.deaf) return;
      // What was posted before a disconnect is still delivered.
      later(() => {
        if (host.dead) return;
        if (options.diesAt?.(frame, host)) fail('Native host has exited.');
        else host.deliver(frame);
      });
    };
    port.disconnect = () => {
      port.open = false;
    };
    port.fail = fail;
    if (!options.missing) browser.hosts.push(host);
    browser.ports.push(port);
    return port;
  };

  globalThis.chrome = {
    runtime: {
      id: 'fake',
      connectNative,
      get lastError() {
        return browser.lastError;
      },
    },
    storage: {
      local: {
        get: async (key) => (key in real ? { [key]: real[key] } : {}),
        set: async (items) => void Object.assign(real, items),
      },
    },
  };
  browser.real = real;
  browser.kill = (text = 'Native host has exited.') => browser.ports.at(-1).fail(text);
  browser.requests = () => browser.up.flatMap(([, frame]) => frame).filter((element) => element.method);
  browser.assertSound = () => {
    for (const host of browser.hosts) assert.deepEqual(host.faults, []);
  };
  return browser;
}
