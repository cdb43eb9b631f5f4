/** Ports between a content script and the worker, and the access levels, in memory. */

/** A browser event. */
export class FakeEvent {
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

/** Two ends that carry JSON, as the browser's ports do. */
export function portPair(name, sender) {
  const ends = [0, 1].map(() => ({ name, onMessage: new FakeEvent(), onDisconnect: new FakeEvent(), open: true }));
  ends.forEach((end, index) => {
    const other = ends[1 - index];
    end.postMessage = (message) => {
      if (!end.open) throw new Error('Attempting to use a disconnected port object');
      const text = JSON.stringify(message);
      setTimeout(() => other.open && other.onMessage.emit(JSON.parse(text)), 0);
    };
    end.disconnect = () => {
      if (!end.open) return;
      end.open = other.open = false;
      setTimeout(() => other.onDisconnect.emit(other), 0);
    };
  });
  ends[1].sender = sender;
  return { content: ends[0], worker: ends[1] };
}

/**
 * Puts `chrome.runtime.connect` and `onConnect` in place. `pairs` are the ports, newest last; `sender` is
 * what the worker is told of the content script.
 */
export function fakePorts(id, sender = { id, tab: { id: 1 } }) {
  const ports = { pairs: [], sender, onConnect: new FakeEvent(), deaf: false };
  Object.assign(globalThis.chrome.runtime, {
    id,
    onConnect: ports.onConnect,
    connect: ({ name }) => {
      const pair = portPair(name, ports.sender);
      ports.pairs.push(pair);
      setTimeout(() => {
        if (ports.deaf || ports.onConnect.listeners.length === 0) {
          pair.content.open = false;
          pair.content.onDisconnect.emit(pair.content);
        } else ports.onConnect.emit(pair.worker);
      }, 0);
      return pair.content;
    },
  });
  /** Ends the newest port, as a worker that stops does. */
  ports.stop = () => {
    const { content, worker } = ports.pairs.at(-1);
    content.open = worker.open = false;
    content.onDisconnect.emit(content);
    worker.onDisconnect.emit(worker);
  };
  /** Ends the newest port as for a page in the back/forward cache: its own end is never told. */
  ports.cache = () => {
    const { worker } = ports.pairs.at(-1);
    worker.open = false;
    worker.onDisconnect.emit(worker);
  };
  return ports;
}

/**
 * Puts the events of a page in place, as much of them as is listened to. Until `end` is called,
 * `tell(type, fields)` is an event, `types()` what is listened to.
 */
export function fakePage() {
  const listeners = new Map();
  const before = { ...globalThis };
  globalThis.document = { visibilityState: 'visible' };
  globalThis.addEventListener = (type, listener) => listeners.set(type, (listeners.get(type) ?? new Set()).add(listener));
  globalThis.removeEventListener = (type, listener) => listeners.get(type)?.delete(listener);
  return {
    tell: (type, fields = {}) => {
      for (const listener of [...(listeners.get(type) ?? [])]) listener({ type, ...fields });
    },
    types: () => [...listeners].filter(([, set]) => set.size > 0).map(([type]) => type),
    end: () => {
      for (const name of ['document', 'addEventListener', 'removeEventListener']) globalThis[name] = before[name];
      if (before.document === undefined) delete globalThis.document;
    },
  };
}

/** A database of one table, as much of IndexedDB as access levels need. */
export function fakeDatabase() {
  const levels = new Map();
  const request = (run) => {
    const made = { result: undefined, onsuccess: null };
    setTimeout(() => {
      made.result = run();
      made.onsuccess?.();
    }, 0);
    return made;
  };
  globalThis.indexedDB = {
    open: () =>
      request(() => ({
        close: () => {},
        transaction: () => {
          const last = (run) =>
            request(() => {
              setTimeout(() => transaction.oncomplete(), 0);
              return run();
            });
          const transaction = {
            objectStore: () => ({
              put: (level, area) => last(() => void levels.set(area, level)),
              get: (area) => last(() => levels.get(area)),
            }),
          };
          return transaction;
        },
      })),
  };
  return levels;
}
