/**
 * Tabs of a browser in memory, and a host's session area with site caches, beside fake_host.mjs.
 *
 * The tabs follow what was measured in Chromium: ids rise and are not used again, a discarded tab gets
 * a new id (`onReplaced(new, old)`), a tab's URL is only told to those who may know it, and listeners
 * are those of one context: `restartWorker` drops them.
 */

import { fakeBrowser } from './fake_host.mjs';

class TabEvent {
  listeners = [];
  added = 0;
  addListener(listener) {
    this.added += 1;
    if (!this.listeners.includes(listener)) this.listeners.push(listener);
  }
  removeListener(listener) {
    this.listeners = this.listeners.filter((other) => other !== listener);
  }
  emit(...args) {
    for (const listener of [...this.listeners]) listener(...args);
  }
}

export class FakeTabs {
  tabs = new Map();
  queries = 0;
  onRemoved = new TabEvent();
  onReplaced = new TabEvent();
  onUpdated = new TabEvent();
  /** Resolves before a query answers; a test may hold it. */
  gate = Promise.resolve();
  #next;

  constructor({ urls = true, first = 1 } = {}) {
    this.urls = urls;
    this.#next = first;
  }

  get events() {
    return [this.onRemoved, this.onReplaced, this.onUpdated];
  }
  /** How many listeners there are on all events. */
  get listeners() {
    return this.events.reduce((sum, event) => sum + event.listeners.length, 0);
  }

  open(url, more = {}) {
    const id = this.#next++;
    this.tabs.set(id, { url, discarded: false, incognito: false, ...more });
    return id;
  }
  close(id) {
    this.tabs.delete(id);
    this.onRemoved.emit(id, { windowId: 1, isWindowClosing: false });
  }
  navigate(id, url) {
    this.tabs.get(id).url = url;
    const change = this.urls ? { status: 'loading', url } : { status: 'loading' };
    this.onUpdated.emit(id, change, this.#seen(id));
  }
  discard(id) {
    const added = this.#next++;
    this.tabs.set(added, { ...this.tabs.get(id), discarded: true });
    this.tabs.delete(id);
    this.onReplaced.emit(added, id);
    this.onUpdated.emit(added, { discarded: true }, this.#seen(added));
    return added;
  }
  #seen(id) {
    const { url, ...rest } = this.tabs.get(id);
    return { id, ...rest, ...(this.urls ? { url } : {}) };
  }

  api() {
    return {
      query: async () => {
        this.queries += 1;
        const answer = [...this.tabs.keys()].map((id) => this.#seen(id));
        await this.gate;
        return answer;
      },
      get: async (id) => {
        if (!this.tabs.has(id)) throw new Error(`No tab with id: ${id}.`);
        return this.#seen(id);
      },
      onRemoved: this.onRemoved,
      onReplaced: this.onReplaced,
      onUpdated: this.onUpdated,
    };
  }
}

/** A host's session area; it outlives the host process, not the browser run. */
export class FakeSession {
  runs = new Map();
  seq = 0;
  watching = new Set();
  /** Milliseconds that are added to the time of records. */
  shift = 0;

  items(run) {
    if (!this.runs.has(run)) this.runs.set(run, new Map());
    return this.runs.get(run);
  }

  /** The `answer` option of fake_host.mjs. */
  answer = (request, host) => {
    const { method, params } = request;
    if (method === 'host.hello') host.runToken = params.run;
    else if (method === 'storage.watch') {
      if (params.areas.includes('session')) this.watching.add(host);
      else this.watching.delete(host);
      return { result: { seq: { session: this.seq }, stores: { session: host.runToken } } };
    } else if (method.startsWith('siteCache.') || params?.area === 'session') {
      return this.run(method, params, host);
    }
    return undefined;
  };

  run(method, params, host) {
    const items = this.items(host.runToken);
    const changes = {};
    const set = (key, newValue) => {
      const oldValue = items.get(key);
      items.set(key, newValue);
      changes[key] = { newValue, ...(oldValue === undefined ? {} : { oldValue }) };
    };
    const remove = (key) => {
      if (!items.has(key)) return;
      changes[key] = { oldValue: items.get(key) };
      items.delete(key);
    };
    const result = this.methods[method](params, items, set, remove, this.shift);
    if (Object.keys(changes).length > 0) {
      this.seq += 1;
      const event = { area: 'session', seq: this.seq, changes };
      for (const each of this.watching) {
        if (!each.dead && each.runToken === host.runToken) {
          each.emit({ jsonrpc: '2.0', method: 'storage.changed', params: event });
        }
      }
    }
    return result.error ? result : { result };
  }

  methods = {
    'siteCache.put': ({ tabId, ...record }, _items, set, _remove, shift) => {
      set(`sc_${tabId}`, { ...record, time: Date.now() + shift });
      return {};
    },
    'siteCache.get': ({ tabId, url, live }, items, set, remove) => {
      let moved;
      if (live) {
        for (const key of [...items.keys()]) {
          if (!/^sc_\d+$/.test(key) || live.includes(Number(key.slice(3)))) continue;
          if (items.get(key).url === url) moved = items.get(key);
          remove(key);
        }
        if (!live.includes(tabId)) return { record: null, reason: 'closed' };
      }
      const mine = items.get(`sc_${tabId}`);
      if (mine && (url === undefined || mine.url === url)) return { record: mine };
      if (moved) {
        set(`sc_${tabId}`, moved);
        return { record: moved };
      }
      return { record: null, reason: mine ? 'otherPage' : 'none' };
    },
    'siteCache.purge': ({ tabIds }, _items, _set, remove) => {
      for (const tabId of tabIds) remove(`sc_${tabId}`);
      return {};
    },
    'storage.get': ({ keys }, items) => ({
      items: Object.fromEntries(keys.filter((key) => items.has(key)).map((key) => [key, items.get(key)])),
    }),
    'storage.getKeys': (_params, items) => ({ keys: [...items.keys()].sort() }),
    'storage.set': ({ items: given, expect = {} }, items, set) => {
      for (const [key, revision] of Object.entries(expect)) {
        if (revision === 0 && items.has(key)) {
          return { error: { code: -32002, message: 'conflict', data: { kind: 'conflict' } } };
        }
      }
      for (const [key, value] of Object.entries(given)) set(key, value);
      return {};
    },
    'storage.clear': (_params, items, _set, remove) => {
      for (const key of [...items.keys()]) remove(key);
      return {};
    },
  };
}

/**
 * A fake browser with tabs and site caches.
 * @returns {{browser, tabs: FakeTabs, session: FakeSession, calls: (method?: string) => object[]}}
 */
export function browserWithTabs({ urls, first, manifest = {}, answer } = {}) {
  const session = new FakeSession();
  const options = { answer: (request, host) => answer?.(request, host) ?? session.answer(request, host) };
  const browser = fakeBrowser({ script: () => options });
  const tabs = new FakeTabs({ urls, first });
  const real = {};
  chrome.tabs = tabs.api();
  chrome.runtime.getManifest = () => manifest;
  chrome.storage.session = {
    get: async (key) => (key in real ? { [key]: real[key] } : {}),
    set: async (items) => void Object.assign(real, items),
  };
  return {
    browser,
    tabs,
    session,
    /** The records that the host has, by tab. */
    records: () => {
      const all = [...session.runs.values()].flatMap((items) => [...items]);
      return Object.fromEntries(
        all.filter(([key]) => /^sc_\d+$/.test(key)).map(([key, record]) => [key.slice(3), record.data]),
      );
    },
    calls: (method) => browser.requests().filter((one) => !method || one.method === method),
    /** The worker stops: its listeners and ports go. */
    cutWorker: () => {
      for (const event of tabs.events) event.listeners = [];
      for (const port of browser.ports) {
        port.host.dead = true;
        port.open = false;
      }
    },
    restartBrowser: () => {
      for (const key of Object.keys(real)) delete real[key];
    },
  };
}
