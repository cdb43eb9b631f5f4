/** `connect({ fallback: 'browser' })`: the browser serves, then the data moves to the host, once. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { Life, restoreTimers, sleep, World } from './fake_areas.mjs';

const MARK = 'sidekeep:move';
const picture = `data:image/png;base64,${'A'.repeat(6000)}`;

/** @type {Life | undefined} */
let life;
afterEach(async () => {
  await life?.end();
  restoreTimers();
});

const live = (world, options) => (life = new Life(world, options));
const here = () => connect({ fallback: 'browser', timeout: 2000 });

/** A profile from before the stub was adopted. */
function oldProfile() {
  const world = new World();
  const items = {
    count: 3,
    theme: 'dark',
    same: { a: [1, 2] },
    big: 'x'.repeat(300_000),
    history: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: picture } }] },
      { role: 'assistant', content: 'seen' },
    ],
    savedSessions: [{ id: 's1', name: 'one', history: [{ role: 'user', content: 'hello' }] }],
    '': null,
  };
  for (const [key, value] of Object.entries(items)) world.real.local.set(key, value);
  world.real.session.set('draft', 'text');
  return { world, items };
}

/** What the host had from before, without any mark of it in the browser. */
function oldHost(world) {
  world.store.put('local', 'theme', 'light');
  world.store.put('local', 'same', { a: [1, 2] });
  world.store.put('local', 'only', 'here');
  world.store.put('local', 'history', [{ role: 'user', content: 'of the host' }]);
}

test('without a host the real areas serve every call of an area, and their own keys are hidden', async () => {
  const { world, items } = oldProfile();
  const { areas } = live(world);
  await areas.local.set({ 'sidekeep:profile': 'token' });
  const keep = here();
  const { local, session } = keep.storage;
  assert.deepEqual(await local.get(), items);
  assert.deepEqual(await local.getKeys(), Object.keys(items).sort());
  assert.deepEqual(await local.get(['theme', 'sidekeep:profile']), { theme: 'dark' });
  assert.deepEqual(await local.get({ theme: 1, none: { x: 1 } }), { none: { x: 1 }, theme: 'dark' });
  await local.set({ note: [1], theme: 'blue' });
  await local.remove(['note', 'sidekeep:profile']);
  assert.equal((await local.get('theme')).theme, 'blue');
  assert.equal(await local.getBytesInUse('count'), 6);
  assert.deepEqual(await local.update('count', { increment: 2 }), { value: 5, revision: 0 });
  await Promise.all([local.update('list', { push: 1 }), local.update('list', { push: 2 })]);
  assert.deepEqual(await local.get(['count', 'list']), { count: 5, list: [1, 2] });
  await assert.rejects(local.update('theme', { increment: 1 }), { kind: 'conflict' });
  await assert.rejects(local.set({ 'sidekeep:profile': 'mine' }), { kind: 'forbidden' });
  await assert.rejects(local.getWithRevisions('theme'), { kind: 'unavailable' });
  await assert.rejects(local.set({ theme: 1 }, { expect: { theme: 1 } }), { kind: 'unavailable' });
  await session.set({ bytes: new Uint8Array([1, 2, 3]), odd: '\0sidekeep:buffer:AQID' });
  assert.deepEqual(Object.keys(await session.get()), ['bytes', 'draft', 'odd']);
  assert.deepEqual(new Uint8Array((await session.get('bytes')).bytes), new Uint8Array([1, 2, 3]));
  assert.equal((await session.get('odd')).odd, '\0sidekeep:buffer:AQID');
  await local.clear();
  assert.deepEqual(await local.getKeys(), []);
  assert.deepEqual([...world.real.local], [['sidekeep:profile', 'token']]);
  assert.equal(keep.status().fallback.serves, 'browser');
  assert.equal(keep.status().fallback.state, 'waiting');
  await keep.close();
});

test('calls of one area take effect and settle in call order', async () => {
  live(new World());
  const { local } = here().storage;
  const settled = [];
  const calls = [
    local.set({ n: 1 }),
    local.get('n'),
    local.update('n', { increment: 1 }),
    local.get('n'),
    local.clear(),
    local.get('n'),
    local.set({ n: 9 }),
    local.getKeys(),
    local.set({ bad: new ArrayBuffer(1) }).catch(({ kind }) => kind),
    local.remove('n'),
    local.get(),
  ];
  const results = await Promise.all(calls.map((call, index) => call.then((value) => (settled.push(index), value))));
  assert.deepEqual(results, [
    undefined, { n: 1 }, { value: 2, revision: 0 }, { n: 2 }, undefined, {}, undefined, ['n'], 'invalidParams', undefined, {},
  ]);
  assert.deepEqual(settled, [...calls.keys()].sort((a, b) => a - b).filter((n) => n !== 8).toSpliced(8, 0, 8));
});

test('a full real area refuses with quota and what to do', async () => {
  live(new World()).quota = 1000;
  const { local } = here().storage;
  await assert.rejects(local.set({ big: 'x'.repeat(2000) }), (error) => error.kind === 'quota' && /install/i.test(error.next));
});

test('when the host appears everything moves once: equal, original gone, losers kept', async () => {
  const { world, items } = oldProfile();
  oldHost(world);
  const { asked } = live(world);
  const keep = here();
  const { local, session } = keep.storage;
  assert.equal((await local.get('theme')).theme, 'dark');
  life.installed = true;
  const states = [];
  keep.onStatus.addListener(({ fallback }) => states.push(fallback.state));
  assert.equal((await keep.retry()).fallback.state, 'moved');
  assert.ok(states.includes('moving'));
  const expected = { ...items, only: 'here', 'sidekeep:replaced:theme': 'light' };
  assert.deepEqual(world.store.plain(), expected);
  assert.deepEqual(await local.get(), expected);
  assert.deepEqual(await session.get(), { draft: 'text' });
  assert.deepEqual(world.store.trash, [{ role: 'user', content: 'of the host' }]);
  assert.deepEqual(world.originals(), {});
  assert.equal(world.real.local.get(MARK).state, 'moved');
  assert.equal(world.real.local.get(MARK).left, undefined);
  assert.ok(!asked.some(([, method, keys]) => method === 'get' && (keys === null || keys === undefined)), 'never everything');
  await keep.close();
  life.browser.assertSound();

  // Another start changes nothing more, and without a host it is an error, not another truth.
  const before = structuredClone(world.store.seq);
  await life.end();
  live(world).installed = true;
  const second = here();
  assert.deepEqual(await second.storage.local.get(), expected);
  await second.retry();
  assert.deepEqual(world.store.seq, before);
  await life.end();
  live(world);
  await assert.rejects(here().storage.local.get('theme'), { kind: 'unavailable' });
  const own = ([, , keys]) => [keys].flat().every((key) => typeof key === 'string' && key.startsWith('sidekeep:'));
  assert.ok(life.asked.length > 0 && life.asked.every(own), JSON.stringify(life.asked));
});

test('a browser that cannot list keys moves too', async () => {
  const { world, items } = oldProfile();
  live(world, { getKeys: false }).installed = true;
  await here().retry();
  assert.deepEqual(world.store.plain(), items);
  assert.deepEqual(world.originals(), {});
});

test('calls that only the host knows wait for the move, and are refused at once without a host', async () => {
  const { world, items } = oldProfile();
  live(world);
  const keep = here();
  await assert.rejects(keep.history.list(), { kind: 'unavailable' });
  await assert.rejects(keep.siteCache.put({ tabId: 1, source: 's', url: 'http://x/', data: 1 }), { kind: 'unavailable' });
  life.installed = true;
  await sleep(60);
  const { entries } = await keep.history.list();
  assert.deepEqual(entries.map(({ entry }) => entry), items.history);
  assert.equal(keep.status().fallback.serves, 'host');
});

test('a call that only the host knows does not wait for ever while the data moves', async () => {
  const { world, items } = oldProfile();
  let silent = true;
  const answer = ({ method }) => (silent && method === 'storage.set' ? null : undefined);
  live(world, { answer }).installed = true;
  const keep = here();
  await assert.rejects(keep.history.list(), { kind: 'busy' });
  assert.deepEqual(await keep.storage.local.get('count'), { count: 3 }, 'the real area serves meanwhile');
  silent = false;
  await keep.retry();
  assert.deepEqual(world.store.plain(), items);
});

test('a call finds a host that was installed meanwhile, without anybody asking for it', async () => {
  const { world, items } = oldProfile();
  live(world);
  const keep = here();
  await keep.storage.local.get('count');
  life.installed = true;
  await sleep(60);
  await keep.storage.local.get('count');
  for (let n = 0; n < 300 && keep.status().fallback.state !== 'moved'; n += 1) await sleep(5);
  assert.deepEqual(await keep.storage.local.get(), items);
});

test('attempts to reach a missing host come to rest, and do not delay a call', async () => {
  live(new World());
  const keep = here();
  for (let n = 0; n < 50; n += 1) await keep.storage.local.get('x');
  assert.ok(life.browser.opened < 10, `${life.browser.opened} attempts`);
  const before = life.browser.opened;
  await sleep(1);
  await assert.rejects(keep.retry(), { kind: 'unavailable' });
  assert.equal(life.browser.opened, before + 1, 'a person’s action tries at once');
  await assert.rejects(keep.retry(), { kind: 'unavailable' });
  assert.deepEqual(await keep.storage.local.get('x'), {});
});

test('in the first minute fewer than ten attempts are made, and a host that comes then is found', async () => {
  const { world, items } = oldProfile();
  live(world);
  const real = performance.now;
  let now = real.call(performance);
  performance.now = () => now;
  try {
    const keep = here();
    for (let tenth = 0; tenth < 600; tenth += 1) {
      await keep.storage.local.get('count');
      now += 100;
    }
    assert.ok(life.browser.opened > 3 && life.browser.opened < 10, `${life.browser.opened} attempts`);
    life.installed = true;
    for (let tenth = 0; tenth < 350 && world.real.local.get(MARK)?.state !== 'moved'; tenth += 1) {
      await keep.storage.local.get('count');
      await sleep(1);
      now += 100;
    }
    assert.deepEqual(await keep.storage.local.get(), items);
  } finally {
    performance.now = real;
  }
});

test('a host that refuses a value leaves everything where it is, says why, and is tried again', async () => {
  const { world, items } = oldProfile();
  let full = true;
  const answer = ({ method, params }) =>
    full && method === 'storage.set' && 'big' in params.items
      ? { error: { code: -32007, message: 'No room on the disk.', data: { kind: 'diskFull', next: 'Make room.' } } }
      : undefined;
  live(world, { answer }).installed = true;
  const keep = here();
  await assert.rejects(keep.retry(), { kind: 'diskFull' });
  const { fallback } = keep.status();
  assert.deepEqual([fallback.serves, fallback.state, fallback.reason, fallback.next], ['browser', 'failed', 'No room on the disk.', 'Make room.']);
  assert.deepEqual(await keep.storage.local.get(), items);
  await keep.storage.local.set({ count: 4 });
  await keep.storage.local.remove('same');
  await assert.rejects(keep.history.list(), { kind: 'diskFull' });
  full = false;
  await keep.retry();
  const { same: _, ...left } = items;
  assert.deepEqual(world.store.plain(), { ...left, count: 4, 'sidekeep:replaced:count': 3, 'sidekeep:replaced:same': items.same });
});

test('a value that JSON cannot hold stays in the browser, and everything with it', async () => {
  const { world } = oldProfile();
  world.real.local.set('when', new Date(0));
  live(world).installed = true;
  const keep = here();
  await assert.rejects(keep.retry(), (error) => error.kind === 'invalidParams' && /when/.test(error.message));
  assert.equal((await keep.storage.local.get('theme')).theme, 'dark');
  assert.notEqual(world.real.local.get(MARK).state, 'moved');
});

test('a real area that is almost full can be left', async () => {
  const world = new World();
  world.real.local.set('fill', 'x'.repeat(9000));
  live(world).quota = 9500;
  life.installed = true;
  await here().retry();
  assert.equal(world.real.local.get(MARK).state, 'moved');
});

test('listeners hear each change once, whoever makes it and wherever the data is at that moment', async () => {
  const { world, items } = oldProfile();
  for (let extra = 0; extra < 150; extra += 1) world.real.local.set(`extra${extra}`, extra); // so that it takes a while
  Object.assign(items, Object.fromEntries(world.real.local));
  live(world);
  const contexts = [here(), here(), here()];
  const states = contexts.map((keep) => {
    const state = structuredClone(items);
    const faults = [];
    keep.storage.local.onChanged.addListener((changes) => {
      for (const [key, { oldValue, newValue }] of Object.entries(changes)) {
        try {
          assert.deepEqual(state[key], oldValue);
        } catch {
          faults.push([key, state[key], oldValue]);
        }
        if (newValue === undefined) delete state[key];
        else state[key] = newValue;
      }
    });
    return { state, faults };
  });
  let n = 0;
  const write = async (keep) => {
    n += 1;
    const key = ['count', 'a', 'b', 'history'][n % 4];
    if (n % 7 === 0) await keep.storage.local.remove(key);
    else await keep.storage.local.set({ [key]: key === 'history' ? [{ n }] : n });
  };
  for (let round = 0; round < 5; round += 1) for (const keep of contexts) await write(keep);
  life.installed = true;
  const moving = contexts[1].retry();
  let moved = false;
  moving.then(() => (moved = true));
  const before = n;
  while (!moved) await write(contexts[n % 3]);
  await moving;
  assert.ok(n - before > 10, 'written while it moved');
  for (let round = 0; round < 5; round += 1) for (const keep of contexts) await write(keep);
  const final = world.store.plain();
  for (let wait = 0; wait < 200 && states.some(({ state }) => state.count !== final.count); wait += 1) await sleep(5);
  await sleep(20);
  for (const { state, faults } of states) {
    assert.deepEqual(faults, []);
    assert.deepEqual(state, final);
  }
  assert.equal(life.areas.local.onChanged.count(), 0, 'nothing listens to the real areas any more');
  assert.equal(life.areas.session.onChanged.count(), 0);
});

test('a listener that is added right after an awaited call hears what others change, without another call', async () => {
  live(new World());
  const { local } = here().storage;
  const other = here().storage.local;
  const heard = [];
  await local.get('a');
  local.onChanged.addListener((changes) => heard.push(changes));
  await other.set({ a: 1 });
  await other.set({ a: 2 });
  await sleep(5);
  assert.deepEqual(heard, [{ a: { newValue: 1 } }, { a: { newValue: 2, oldValue: 1 } }]);
});

test('calls one after another are heard each before its promise, at whatever moment the listener came', async () => {
  for (const incognito of [false, true]) {
    for (let pause = 0; pause < 12; pause += 1) {
      live(new World());
      globalThis.chrome.extension.inIncognitoContext = incognito;
      const { local } = here().storage;
      const heard = [];
      const listener = (changes) => heard.push(Object.values(changes)[0].newValue);
      await local.get('a');
      const first = local.set({ a: 1 });
      for (let n = 0; n < pause; n += 1) await (n % 2 ? null : new Promise((done) => setImmediate(done)));
      const late = life.world.real.local.has('a'); // it was too late for the first change
      local.onChanged.addListener(listener);
      await first;
      assert.deepEqual(heard, late ? [] : [1], `listener after ${pause} steps`);
      for (const a of [2, 3, 4]) {
        await local.set({ a });
        assert.equal(heard.at(-1), a);
      }
      local.onChanged.removeListener(listener);
      assert.deepEqual(heard, late ? [2, 3, 4] : [1, 2, 3, 4]);
      await life.end();
    }
  }
});

test('a new listener hears although the browser could not say at first where the data is', async () => {
  live(new World());
  const { local } = here().storage;
  const heard = [];
  await local.get('a');
  const { get } = life.areas.local;
  life.areas.local.get = async () => {
    throw new Error('busy');
  };
  local.onChanged.addListener((changes) => heard.push(changes));
  await sleep(5);
  life.areas.local.get = get;
  await local.set({ a: 1 });
  assert.deepEqual(heard, [{ a: { newValue: 1 } }]);
});

test('a listener in a context that starts after the move hears the host alone', async () => {
  const { world } = oldProfile();
  live(world).installed = true;
  await here().retry();
  world.real.local.get(MARK).time -= 60_000;
  const keep = here();
  const heard = [];
  keep.storage.onChanged.addListener((changes, area) => heard.push([area, changes]));
  await keep.storage.local.get('count');
  await keep.storage.local.set({ count: 8 });
  await sleep(20);
  assert.deepEqual(heard, [['local', { count: { newValue: 8, oldValue: 3 } }]]);
  assert.equal(life.areas.local.onChanged.count(), 0);
});

test('the incognito side serves itself from the real areas, moves nothing, and loses nothing', async () => {
  const { world, items } = oldProfile();
  live(world).installed = true;
  globalThis.chrome.extension.inIncognitoContext = true;
  const hidden = here();
  await hidden.storage.local.set({ theme: 'private' });
  await hidden.storage.local.remove('same');
  await assert.rejects(hidden.history.list(), { kind: 'unavailable' });
  await sleep(20);
  assert.deepEqual(world.store.plain(), {});
  globalThis.chrome.extension.inIncognitoContext = false;
  const keep = here();
  let late = 0;
  let moved = false;
  const moving = keep.retry().then(() => (moved = true));
  while (!moved) await hidden.storage.local.set({ late: (late += 1) });
  await moving;
  await hidden.storage.local.set({ later: 1 });
  const { same: _, ...left } = items;
  assert.deepEqual(world.store.plain(), { ...left, theme: 'private', late, later: 1 });
  assert.deepEqual(await hidden.storage.local.get('late'), { late });
});

test('what the incognito side writes while the data moves is there, at whatever moment it is written', async () => {
  for (let round = 0; round < 15; round += 1) {
    const { world, items } = oldProfile();
    live(world).installed = true;
    globalThis.chrome.extension.inIncognitoContext = true;
    const hidden = here().storage.local;
    await hidden.get('count');
    globalThis.chrome.extension.inIncognitoContext = false;
    const model = { ...items };
    let moved = false;
    const moving = here().retry().then(() => (moved = true));
    for (let n = 0; n < round; n += 1) await new Promise((done) => setImmediate(done));
    for (let n = 1; !moved || n < 4; n += 1) {
      if (n % 3 === 0) await hidden.remove('count');
      else await hidden.set({ count: n, [`new${n % 2}`]: n });
      if (n % 3 === 0) delete model.count;
      else Object.assign(model, { count: n, [`new${n % 2}`]: n });
      for (let pause = 0; pause < round % 7; pause += 1) await new Promise((done) => setImmediate(done));
    }
    await moving;
    assert.deepEqual(world.store.plain(), model, `round ${round}`);
    await life.end();
  }
});

test('connecting asks nothing, opens nothing and listens to nothing', async () => {
  live(oldProfile().world);
  const keep = here();
  keep.status();
  keep.storage.local.onChanged.hasListeners();
  await sleep(5);
  assert.deepEqual([life.asked, life.browser.opened, life.areas.local.onChanged.count()], [[], 0, 0]);
  await keep.close();
  assert.deepEqual(life.asked, []);
  await assert.rejects(keep.storage.local.get('count'), { kind: 'unavailable', message: /closed/ });
});

test('a listener that is taken off leaves nothing that could start a worker', async () => {
  live(oldProfile().world);
  const { local } = here().storage;
  const listener = () => {};
  local.onChanged.addListener(listener);
  assert.equal(life.areas.local.onChanged.count(), 1, 'in the turn in which it was added');
  await local.get('count');
  local.onChanged.removeListener(listener);
  assert.deepEqual([life.areas.local.onChanged.count(), life.areas.session.onChanged.count()], [0, 0]);
});

test('the fallback is one of two words', () => {
  assert.throws(() => connect({ fallback: 'chrome' }), TypeError);
  assert.equal(connect().status().fallback, null);
});
