/**
 * A browser's own storage areas, its locks, and a host that knows revisions, for tests of the fallback.
 *
 * A `World` is what outlives a browser: the areas and the host's file. A `Life` is one run of the browser,
 * which can be killed at its n-th step: a step is the moment before or after each operation of an area,
 * and before or after each request that the host carries out. What is killed never settles, its timers
 * are gone, and its locks are free.
 */

import { FakeHost, fakeBrowser } from './fake_host.mjs';

const clone = (value) => structuredClone(value);
const equal = (one, other) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
};
const isList = (key) => key === 'history' || key === 'savedSessions' || key.startsWith('session_');

/** The host's file: what docs/protocol.md says of plain items, revisions, events and the trash. */
export class FakeStore {
  areas = { local: new Map(), session: new Map() };
  seq = { local: 0, session: 0 };
  epoch = 'file';
  /** entries that a whole-array write dropped */
  trash = [];
  journal = [];
  watching = new Map();
  operations = new Map();
  /** methods that were carried out */
  log = [];

  put(area, key, value) {
    this.seq[area] += 1;
    this.areas[area].set(key, { value: clone(value), revision: this.seq[area] });
  }

  plain(area = 'local') {
    return Object.fromEntries([...this.areas[area]].sort().map(([key, { value }]) => [key, clone(value)]));
  }

  /** The `answer` option of fake_host.mjs; undefined for what the fake host answers itself. */
  answer({ id, method, params, op }, host) {
    if (method === 'host.hello') {
      host.greeted = true;
      host.client = params.client;
      host.grant = params.parts.window;
      const whole = { protocol: 1, host: { name: 'fake', version: '0', pid: 1 }, features: [], notices: [] };
      return { result: { ...whole, store: this.epoch, seq: { ...this.seq }, conversation: '', parts: params.parts } };
    }
    if (method === 'history.list') {
      const entries = this.areas.local.get('history')?.value ?? [];
      return { result: { entries: entries.map((entry) => ({ entry })), images: [], total: entries.length } };
    }
    if (!method.startsWith('storage.')) return undefined;
    const name = `${host.client} ${op}`;
    if (op !== undefined && this.operations.has(name)) return { result: this.operations.get(name) };
    this.log.push(method);
    if (method === 'storage.watch') return this.watch(id, params, host);
    const { area } = params;
    const items = this.areas[area];
    if (params.expect) {
      const revisions = Object.create(null);
      for (const key of Object.keys(params.expect)) revisions[key] = items.get(key)?.revision ?? 0;
      if (Object.entries(params.expect).some(([key, revision]) => revisions[key] !== revision)) {
        return { error: { code: -32002, message: 'changed', data: { kind: 'conflict', revisions } } };
      }
    }
    const result = this.run(method, params, area, items);
    if (op !== undefined) this.operations.set(name, clone(result));
    return { result };
  }

  run(method, { keys, items: given, expect, revisions: withRevisions, key, increment }, area, items) {
    const all = () => [...items.keys()].sort();
    const chosen = (which) => (which === null ? all() : [which].flat().filter((one) => items.has(one)));
    switch (method) {
      case 'storage.get': {
        const found = chosen(keys);
        const result = { items: Object.fromEntries(found.map((one) => [one, clone(items.get(one).value)])) };
        if (withRevisions) result.revisions = Object.fromEntries(found.map((one) => [one, items.get(one).revision]));
        return result;
      }
      case 'storage.set':
        this.change(area, given);
        if (!expect) return {};
        return { revisions: Object.fromEntries(Object.keys({ ...given, ...expect }).map((one) => [one, items.get(one)?.revision ?? 0])) };
      case 'storage.update': {
        const value = (items.get(key)?.value ?? 0) + increment;
        this.change(area, { [key]: value });
        return { value, revision: items.get(key).revision };
      }
      case 'storage.remove':
        this.change(area, Object.fromEntries(chosen(keys).map((one) => [one, undefined])));
        return {};
      case 'storage.clear':
        this.change(area, Object.fromEntries(all().map((one) => [one, undefined])));
        return {};
      case 'storage.getKeys':
        return { keys: all() };
      default:
        throw new Error(`the fake store does not know ${method}`);
    }
  }

  change(area, given) {
    const items = this.areas[area];
    const changes = Object.create(null); // any key may be set
    for (const [key, newValue] of Object.entries(given)) {
      const old = items.get(key);
      if (equal(old?.value, newValue)) continue;
      changes[key] = { ...(newValue === undefined ? {} : { newValue }), ...(old ? { oldValue: old.value } : {}) };
      if (isList(key) && Array.isArray(old?.value)) {
        const kept = new Set((Array.isArray(newValue) ? newValue : []).map((entry) => JSON.stringify(sorted(entry))));
        this.trash.push(...old.value.filter((entry) => !kept.has(JSON.stringify(sorted(entry)))));
      }
    }
    if (Object.keys(changes).length === 0) return;
    this.seq[area] += 1;
    for (const [key, { newValue }] of Object.entries(changes)) {
      if (newValue === undefined) items.delete(key);
      else items.set(key, { value: clone(newValue), revision: this.seq[area] });
    }
    const event = { area, seq: this.seq[area], changes: clone(changes) };
    this.journal.push(event);
    for (const [host, watch] of this.watching) this.tell(host, watch, event);
  }

  tell(host, watch, { area, seq, changes }) {
    if (host.dead || !watch.areas.includes(area)) return;
    if (watch.keys && !Object.keys(changes).some((key) => watch.keys.includes(key))) return;
    host.emit({ jsonrpc: '2.0', method: 'storage.changed', params: { area, seq, changes } });
  }

  watch(id, watch, host) {
    this.watching.set(host, watch);
    const seq = Object.fromEntries(watch.areas.map((area) => [area, this.seq[area]]));
    const stores = Object.fromEntries(watch.areas.map((area) => [area, this.epoch]));
    host.emit({ jsonrpc: '2.0', id, result: { seq, stores } });
    for (const event of this.journal) {
      if (event.seq > (watch.since?.[event.area] ?? Infinity)) this.tell(host, watch, event);
    }
    return null;
  }
}

/** What outlives the browser. */
export class World {
  real = { local: new Map(), session: new Map() };
  store = new FakeStore();

  /** What lies in a real area without the stub's own keys. */
  originals(area = 'local') {
    return Object.fromEntries([...this.real[area]].filter(([key]) => !key.startsWith('sidekeep:')).sort());
  }
}

class FakeLocks {
  #names = new Map();

  request(name, options, run = options) {
    const mode = options.mode ?? 'exclusive';
    const lock = this.#names.get(name) ?? { held: [], queue: [] };
    this.#names.set(name, lock);
    return new Promise((resolve, reject) => {
      lock.queue.push({ mode, run, resolve, reject });
      this.#grant(lock);
    });
  }

  #grant(lock) {
    while (lock.queue.length > 0) {
      const [next] = lock.queue;
      const free = lock.held.length === 0 || (next.mode === 'shared' && lock.held.every(({ mode }) => mode === 'shared'));
      if (!free) return;
      lock.held.push(lock.queue.shift());
      (async () => next.run())()
        .then(next.resolve, next.reject)
        .finally(() => {
          lock.held = lock.held.filter((one) => one !== next);
          this.#grant(lock);
        });
    }
  }
}

/** The timers of the test itself, which no life replaces. */
const timers = { setTimeout, clearTimeout };
export const sleep = (milliseconds) => new Promise((done) => timers.setTimeout(done, milliseconds));

/** One run of the browser. While it lives the globals are its own. */
export class Life {
  steps = 0;
  dead = false;
  /** whether the host is installed */
  installed = false;
  incognito = false;
  quota = Infinity;
  /** calls of the real areas: [area, method, argument] */
  asked = [];
  #timers = new Set();

  /**
   * @param {World} world
   * @param {{killAt?: number, getKeys?: boolean, answer?: Function}} [options]
   */
  constructor(world, { killAt = Infinity, getKeys = true, answer = () => undefined } = {}) {
    this.world = world;
    this.killAt = killAt;
    this.killed = new Promise((done) => (this.die = done));
    globalThis.setTimeout = (run, milliseconds) => {
      const timer = timers.setTimeout(run, milliseconds);
      this.#timers.add(timer);
      return timer;
    };
    delete globalThis.BroadcastChannel;
    const host = (request, process) => {
      if (!this.alive()) return null;
      const special = answer(request, process);
      if (special !== undefined) return special;
      const given = world.store.answer(request, process);
      if (given === undefined) return undefined;
      return this.alive() ? given : null;
    };
    this.browser = fakeBrowser({
      script: () => (this.installed ? { answer: host } : { missing: 'Specified native messaging host not found.' }),
    });
    // What arrives in a batch is answered by the fake host in that order.
    this.locks = new FakeLocks();
    Object.defineProperty(globalThis, 'navigator', { value: { locks: this.locks }, configurable: true, writable: true });
    const areas = {};
    for (const name of ['local', 'session']) areas[name] = this.area(name, getKeys);
    globalThis.chrome.storage = areas;
    globalThis.chrome.extension = {};
    this.areas = areas;
  }

  /** Whether the browser lives at this step. */
  alive() {
    if (this.dead) return false;
    this.steps += 1;
    if (this.steps < this.killAt) return true;
    this.dead = true;
    for (const timer of this.#timers) timers.clearTimeout(timer);
    this.die();
    return false;
  }

  /** Ends the life without a fault. */
  async end() {
    this.dead = true;
    for (const timer of this.#timers) timers.clearTimeout(timer);
    await sleep(1);
  }

  area(name, withKeys) {
    const map = this.world.real[name];
    const listeners = new Set();
    const operation = (method, effect) => async (argument) => {
      this.asked.push([name, method, argument]);
      const input = clone(argument);
      await null;
      if (!this.alive()) return new Promise(() => {});
      const result = clone(effect(input));
      await new Promise((done) => setImmediate(done));
      return this.alive() ? result : new Promise(() => {});
    };
    const changed = (changes) => {
      if (Object.keys(changes).length === 0) return;
      for (const listener of [...listeners]) listener(clone(changes));
    };
    const keysOf = (keys) => (keys === null || keys === undefined ? [...map.keys()] : [keys].flat().filter((key) => map.has(key)));
    const bytes = () => [...map].reduce((sum, [key, value]) => sum + key.length + JSON.stringify(value).length, 0);
    const area = {
      get: operation('get', (keys) => Object.fromEntries(keysOf(keys).sort().map((key) => [key, map.get(key)]))),
      set: operation('set', (items) => {
        const changes = Object.create(null); // any key may be set
        const before = new Map(map);
        for (const [key, newValue] of Object.entries(items)) {
          if (map.has(key) && equal(map.get(key), newValue)) continue;
          changes[key] = { newValue, ...(map.has(key) ? { oldValue: map.get(key) } : {}) };
          map.set(key, newValue);
        }
        if (name === 'local' && bytes() > this.quota) {
          map.clear();
          for (const [key, value] of before) map.set(key, value);
          throw new Error('Resource::kQuotaBytes quota exceeded');
        }
        changed(changes);
      }),
      remove: operation('remove', (keys) => {
        const changes = Object.create(null); // any key may be set
        for (const key of keysOf(keys)) {
          changes[key] = { oldValue: map.get(key) };
          map.delete(key);
        }
        changed(changes);
      }),
      getBytesInUse: operation('getBytesInUse', (keys) =>
        keysOf(keys).reduce((sum, key) => sum + key.length + JSON.stringify(map.get(key)).length, 0),
      ),
      onChanged: {
        addListener: (listener) => listeners.add(listener),
        removeListener: (listener) => listeners.delete(listener),
        count: () => listeners.size,
      },
    };
    if (withKeys) area.getKeys = operation('getKeys', () => [...map.keys()].sort());
    return area;
  }
}

export function restoreTimers() {
  Object.assign(globalThis, timers);
}

export { FakeHost };
