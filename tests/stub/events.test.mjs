/** Change events in the stub: what is asked of the host, from where, and what listeners are told. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decodeBuffers, encodeBuffer, escapeText } from '../../extension_stub/sidekeep/buffers.js';
import { PROFILE_KEY, profileToken, RUN_KEY, runToken } from '../../extension_stub/sidekeep/identity.js';
import { connect } from '../../extension_stub/sidekeep/index.js';
import { PLACE_KEY, PlaceStore } from '../../extension_stub/sidekeep/place.js';
import { WAKE_KEY } from '../../extension_stub/sidekeep/wake.js';
import { fakeBrowser } from './fake_host.mjs';

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
/** Long enough for all that is on its way to arrive. */
const settle = () => sleep(25);

/** The browser's own session area, with its event. */
function fakeSession() {
  const items = {};
  const listeners = [];
  const area = {
    items,
    writes: 0,
    get: async (key) => (key in items ? { [key]: items[key] } : {}),
    set: async (changed) => {
      area.writes += 1;
      await sleep(1);
      Object.assign(items, structuredClone(changed));
      for (const listener of listeners) listener(Object.fromEntries(Object.keys(changed).map((key) => [key, {}])));
    },
    onChanged: { addListener: (listener) => listeners.push(listener) },
    listeners,
  };
  return area;
}

/**
 * A browser whose hosts keep a journal of the local area and tell of it, as docs/protocol.md says.
 * `change(key, value)`: another process changes something. `journal`: [seq, changes].
 */
function start({ settings, script = () => ({}), answer = () => undefined } = {}) {
  const world = { epoch: 'first', journal: [], values: {}, told: [], mute: false };
  const watching = new Set();
  const record = (key, value) => {
    const change = { newValue: value };
    if (key in world.values) change.oldValue = world.values[key];
    world.values[key] = value;
    world.journal.push([world.journal.length + 1, { [key]: change }]);
    for (const host of watching) if (!host.dead) tell(host, world.journal.at(-1));
  };
  const notify = (host, method, params) => host.emit({ jsonrpc: '2.0', method, params });
  const tell = (host, [seq, changes]) => {
    if (!world.mute) notify(host, 'storage.changed', { area: 'local', seq, changes });
  };
  const answerWith = (request, host) => {
    const special = answer(request, host, world);
    if (special !== undefined) return special;
    const { id, method, params } = request;
    if (method === 'storage.watch') {
      world.told.push(params);
      if (params.areas.includes('local')) watching.add(host);
      else watching.delete(host);
      const since = params.since.local ?? world.journal.length;
      const same = (params.stores.local ?? world.epoch) === world.epoch;
      const seq = Object.fromEntries(params.areas.map((area) => [area, area === 'local' ? world.journal.length : 0]));
      const stores = Object.fromEntries(params.areas.map((area) => [area, world.epoch]));
      host.emit({ jsonrpc: '2.0', id, result: { seq, stores } });
      if (!same) notify(host, 'storage.gap', { area: 'local', seq: world.journal.length });
      else for (const entry of world.journal.slice(since)) tell(host, entry);
      return null; // it is answered already: events do not pass the reply
    }
    if (method === 'storage.set' && params.area === 'local') {
      for (const [key, value] of Object.entries(params.items)) record(key, value);
      return { result: {} };
    }
    return undefined;
  };
  const browser = fakeBrowser({ script: (number) => ({ answer: answerWith, ...script(number) }) });
  const session = fakeSession();
  globalThis.chrome.storage.session = session;
  const keep = connect(settings);
  const heard = [];
  const listen = (link = keep) => link.storage.local.onChanged.addListener((changes) => heard.push(changes));
  return { browser, keep, local: keep.storage.local, world, heard, listen, change: record, session };
}
const methods = (browser) => browser.requests().map(({ method }) => method);

/** Runs as a page does, which holds its port while it listens. */
async function inPage(run) {
  globalThis.document = {};
  try {
    await run();
  } finally {
    delete globalThis.document;
  }
}

test('the watch goes before the calls of the tick, and the event comes before the promise', async () => {
  const { browser, keep, local, heard, listen } = start();
  const first = local.getKeys();
  listen();
  await Promise.all([first, local.set({ a: 1 }).then(() => heard.push('settled'))]);
  assert.deepEqual(methods(browser), ['host.hello', 'storage.watch', 'storage.getKeys', 'storage.set']);
  assert.deepEqual(heard, [{ a: { newValue: 1 } }, 'settled']);
  await keep.close();
  browser.assertSound();
});

test('where nobody listens nothing is watched', async () => {
  const { browser, keep, local } = start();
  await local.set({ a: 1 });
  keep.storage.onChanged.removeListener(() => {});
  await settle();
  assert.ok(!methods(browser).includes('storage.watch'));
  await keep.close();
});

test('a listener alone opens the port; the last one that goes ends the watch', async () => {
  const { browser, keep, world, heard } = start();
  const listener = (changes, area) => heard.push([changes, area]);
  keep.storage.onChanged.addListener(listener);
  await settle();
  assert.deepEqual(world.told.map(({ areas }) => areas), [['local', 'session']]);
  keep.storage.onChanged.removeListener(listener);
  await settle();
  assert.deepEqual(world.told.at(-1).areas, []);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('a lost port is watched again from what was heard; nothing is lost and nothing doubled', async () => {
  const { browser, keep, local, world, heard, listen, change } = start();
  listen();
  await local.set({ a: 0 });
  for (let round = 1; round <= 8; round += 1) {
    browser.kill();
    change('a', 2 * round - 1); // while no port is open
    await sleep(80);
    change('a', 2 * round);
    await settle();
    assert.deepEqual(heard.map(({ a }) => a.newValue), Array.from({ length: 2 * round + 1 }, (_, value) => value));
  }
  assert.deepEqual(world.told.at(-1), { areas: ['local'], since: { local: 15 }, stores: { local: 'first' } });
  await keep.close();
  browser.assertSound();
});

test('a change that is repeated on a new port comes after what its listeners missed', async () => {
  const die = (frame, host) => {
    if (![frame].flat().some(({ method }) => method === 'storage.set')) return false;
    host.emit = () => {}; // it commits, and nothing of that arrives
    host.deliver(frame);
    return true;
  };
  const answered = new Map(); // by op, as a host keeps it
  const { browser, keep, local, heard, listen } = start({
    script: (number) => (number === 0 ? { diesAt: die } : {}),
    answer: ({ method, op }) => {
      if (method !== 'storage.set') return undefined;
      if (answered.has(op)) return { result: {} };
      answered.set(op, true);
      return undefined;
    },
  });
  listen();
  await local.getKeys();
  await local.set({ a: 1 });
  await settle();
  assert.deepEqual(heard, [{ a: { newValue: 1 } }]);
  const second = methods(browser).slice(methods(browser).lastIndexOf('host.hello'));
  assert.deepEqual(second, ['host.hello', 'storage.watch', 'storage.set']);
  await keep.close();
});

test('a first watch that may have been lost with an event is told as a gap', async () => {
  const { keep, local, listen } = start({
    script: (number) => (number === 0 ? { diesAt: () => true } : {}),
  });
  const gaps = [];
  keep.onGap.addListener(({ area }) => gaps.push(area));
  listen();
  await local.getKeys();
  assert.deepEqual(gaps, ['local']);
  await keep.close();
});

test('another file is a gap, told once, and is listened to from then on', async () => {
  const { browser, keep, local, world, heard, listen, change } = start();
  const gaps = [];
  keep.onGap.addListener((gap) => gaps.push(gap));
  listen();
  await local.set({ a: 1 });
  browser.kill();
  world.epoch = 'restored';
  await sleep(100);
  change('a', 2);
  await settle();
  assert.deepEqual(gaps, [{ area: 'local' }]);
  assert.deepEqual(heard.map(({ a }) => a.newValue), [1, 2]);
  browser.kill();
  await sleep(100);
  assert.deepEqual(world.told.at(-1).stores, { local: 'restored' });
  await keep.close();
});

test('a second listener starts no second round of events', async () => {
  const { keep, local, heard, listen } = start();
  listen();
  await local.set({ a: 1 });
  keep.storage.onChanged.addListener((changes, area) => heard.push([changes, area]));
  await local.set({ a: 2 });
  await settle();
  const second = { a: { newValue: 2, oldValue: 1 } };
  assert.deepEqual(heard, [{ a: { newValue: 1 } }, second, [second, 'local']]);
  await keep.close();
});

test('a page that listens keeps its port, and opens a lost one again and again', async () => {
  await inPage(async () => {
    let missing = false;
    const { browser, keep, listen, heard, change } = start({
      settings: { idle: 10 },
      script: () => (missing ? { missing: 'Specified native messaging host not found.' } : {}),
    });
    listen();
    await sleep(60);
    assert.equal(keep.status().state, 'connected');
    missing = true;
    browser.kill();
    change('a', 1);
    await sleep(100);
    assert.equal(keep.status().state, 'resting');
    missing = false;
    await sleep(500);
    assert.equal(keep.status().state, 'connected');
    assert.deepEqual(heard, [{ a: { newValue: 1 } }]);
    await keep.close();
  });
});

test('a page whose extension is gone tries no more', async () => {
  await inPage(async () => {
    const { browser, keep, listen } = start();
    listen();
    await settle();
    delete globalThis.chrome.runtime.id;
    browser.kill('Extension context invalidated.');
    await sleep(400);
    assert.equal(browser.opened, 1);
    await keep.close();
  });
});

test('a host that ends whenever it is to tell of a change is not started without end', async () => {
  await inPage(async () => {
    const { browser, keep, world, listen, change } = start();
    listen();
    await settle();
    browser.script = () => ({
      answer: ({ method }) =>
        method === 'storage.watch' ? { result: { seq: { local: 1 }, stores: { local: 'first' } } } : undefined,
      diesAt: (frame, host) => {
        if (![frame].flat().some(({ method }) => method === 'storage.watch')) return false;
        host.deliver(frame); // answers, and dies
        setTimeout(() => browser.kill(), 5);
        return false;
      },
    });
    world.mute = true;
    browser.kill();
    change('a', 1);
    await sleep(1000);
    assert.ok(browser.opened <= 5, `${browser.opened} ports`);
    await keep.close();
  });
});

test('a background that listens lets its port go, and hears what it missed at the next call', async () => {
  const { browser, keep, local, heard, listen, change } = start({ settings: { idle: 10 } });
  listen();
  await sleep(80);
  assert.equal(keep.status().state, 'idle');
  change('a', 1);
  await sleep(60);
  assert.deepEqual(heard, []);
  await local.getKeys();
  await settle();
  assert.deepEqual(heard, [{ a: { newValue: 1 } }]);
  assert.equal(browser.opened, 2);
  await keep.close();
});

test('a background hears in its next life what it missed, from the place it kept', async () => {
  const { keep, local, listen, heard, change, session } = start();
  listen();
  await local.set({ a: 1 });
  await settle();
  assert.deepEqual(session.items[PLACE_KEY], { local: { seq: 1, store: 'first' } });
  await keep.close();
  change('a', 2);
  const next = connect();
  listen(next);
  await sleep(60);
  assert.deepEqual(heard.map(({ a }) => a.newValue), [1, 2]);
  await next.close();
});

test('at most one write of a place is on its way, and the newest follows', async () => {
  const session = fakeSession();
  globalThis.chrome = { runtime: {}, storage: { session } };
  const store = new PlaceStore();
  for (let seq = 1; seq <= 1000; seq += 1) store.save(new Map([['local', { seq }]]));
  await settle();
  assert.equal(session.writes, 2);
  assert.deepEqual(session.items[PLACE_KEY], { local: { seq: 1000 } });
});

test('only a link that asks to be woken listens to the real session area', async () => {
  const plain = start();
  assert.equal(plain.session.listeners.length, 0);
  await plain.keep.close();
  const asking = start({ settings: { wake: true, idle: 10 } });
  assert.equal(asking.session.listeners.length, 1);
  asking.listen();
  await sleep(60);
  asking.change('a', 1);
  await asking.session.set({ other: 1 });
  await settle();
  assert.deepEqual(asking.heard, []);
  await asking.session.set({ [WAKE_KEY]: 1 });
  await sleep(60);
  assert.deepEqual(asking.heard, [{ a: { newValue: 1 } }]);
  await asking.keep.close();
});

test('a page that asks to wake the worker changes a key for what it changes, and for nothing else', async () => {
  await inPage(async () => {
    const { keep, local, session } = start({ settings: { wake: true } });
    await local.get('a');
    assert.ok(!(WAKE_KEY in session.items));
    await Promise.all([local.set({ a: 1 }), local.set({ b: 1 }), local.set({ c: 1 })]);
    await settle();
    assert.ok(WAKE_KEY in session.items);
    await keep.close();
  });
});

test('keys that are to be quiet are left out, with a pattern at the end only', async () => {
  for (const quiet of ['history', ['*a'], [1], ['a**']]) assert.throws(() => connect({ quiet }), TypeError);
  assert.throws(() => connect({ wake: 1 }), TypeError);
  const { keep, local, heard, listen } = start({ settings: { quiet: ['history', 'session_*'] } });
  listen();
  for (const key of ['history', 'session_', 'session_1', 'session', 'history2']) await local.set({ [key]: 1 });
  assert.deepEqual(heard.map((changes) => Object.keys(changes)), [['session'], ['history2']]);
  await keep.close();
});

test('buffers and every string come back from their text', () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index * 7);
  assert.deepEqual(new Uint8Array(decodeBuffers(encodeBuffer(bytes))), bytes);
  assert.deepEqual(new Uint8Array(decodeBuffers(encodeBuffer(bytes.subarray(3, 5)))), bytes.slice(3, 5));
  assert.equal(decodeBuffers(encodeBuffer(new ArrayBuffer(0))).byteLength, 0);
  const texts = ['', 'a', '\0', '\0sidekeep:', encodeBuffer(bytes.subarray(0, 2)), escapeText('\0sidekeep:text:')];
  for (const text of texts) assert.equal(decodeBuffers(escapeText(text)), text);
  const tree = JSON.parse(JSON.stringify({ a: [{ b: encodeBuffer(new Uint8Array([1])) }], ['__proto__x']: escapeText('\0sidekeep:x') }));
  const decoded = decodeBuffers(tree);
  assert.deepEqual([...new Uint8Array(decoded.a[0].b)], [1]);
  assert.equal(decoded['__proto__x'], '\0sidekeep:x');
});

test('the hello carries the token of the run; nothing of the session area is asked for', async () => {
  const { browser, keep, local, session } = start();
  await local.get('a');
  const { params } = browser.requests()[0];
  assert.equal(params.run, session.items[RUN_KEY]);
  assert.match(params.run, /^[A-Za-z0-9_-]{22}$/);
  assert.ok(!browser.requests().some((request) => request.params?.area === 'session'));
  await keep.close();
});

test('the two sides of a split extension agree on tokens, whoever starts first', async () => {
  const asSide = (incognito, run) => {
    globalThis.chrome.extension = { inIncognitoContext: incognito };
    return run();
  };
  for (const normalFirst of [true, false]) {
    const browser = fakeBrowser();
    globalThis.chrome.storage.session = fakeSession();
    for (const token of [profileToken, runToken]) {
      const sides = normalFirst ? [false, true] : [true, false];
      const tokens = await Promise.all(sides.map((side) => asSide(side, token)));
      assert.equal(tokens[0], tokens[1]);
    }
    assert.ok(browser.real[PROFILE_KEY]);
    // An incognito side alone uses what it offers, and the other side takes it later.
    globalThis.chrome.storage.session = fakeSession();
    const offered = await asSide(true, runToken);
    assert.equal(await asSide(false, runToken), offered);
  }
});
