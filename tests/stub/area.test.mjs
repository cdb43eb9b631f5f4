/** `keep.storage.local` in the shape of `chrome.storage.local`, promise form. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const start = (options) => {
  const browser = fakeBrowser(options);
  const keep = connect();
  return { browser, keep, local: keep.storage.local };
};

const BAD = {
  get: [[1], [true], [Symbol('s')], [1n], [() => 1, () => 1], [['a', 1]], [[null]], [[, 'a']], ['a', {}], ['a', null, 1]],
  set: [[], [null], [[]], ['x'], [1], [() => 1], [{}, 'x'], [{}, undefined, 1]],
  remove: [[], [null], [{}], [1], [['a', 1]]],
  clear: [['x'], [{}]],
  getKeys: [['x']],
  getBytesInUse: [[{}], [1], [[1]]],
};

test('wrong arguments throw at once and send nothing', async () => {
  const { browser, local } = start();
  for (const [method, calls] of Object.entries(BAD)) {
    for (const args of calls) {
      assert.throws(() => local[method](...args), {
        name: 'TypeError',
        message: new RegExp(`^Error in invocation of storage\\.${method}\\(.*\\): `),
      });
    }
  }
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(browser.opened, 0);
});

test('a method taken off its area throws at once', () => {
  const { local } = start();
  for (const method of Object.keys(BAD)) {
    const taken = local[method];
    assert.throws(() => taken('x'), TypeError);
    assert.throws(() => taken.call({}, 'x'), TypeError);
  }
});

test('values are set, read, listed, measured, removed and cleared', async () => {
  const { browser, keep, local } = start();
  const stored = { a: 42, b: 43, c: { x: [1, null, 'é'] } };
  assert.equal(await local.set(stored), undefined);
  assert.deepEqual(await local.get(), stored);
  assert.deepEqual(await local.get(undefined), stored);
  assert.deepEqual(await local.get(null), stored);
  assert.deepEqual(await local.get('a'), { a: 42 });
  assert.deepEqual(await local.get('none'), {});
  assert.deepEqual(await local.get(['b', 'a', 'none', 'a']), { a: 42, b: 43 });
  assert.deepEqual(await local.get([]), {});
  assert.deepEqual(await local.get({}), {});
  assert.deepEqual(await local.getKeys(), ['a', 'b', 'c']);
  assert.equal(await local.getBytesInUse(['a', 'b']), 6);
  assert.equal(await local.getBytesInUse('a'), 3);
  assert.equal(await local.getBytesInUse([]), 0);
  assert.equal(await local.getBytesInUse(), await local.getBytesInUse(null));
  assert.equal(await local.remove('a'), undefined);
  assert.equal(await local.remove(['b', 'none']), undefined);
  assert.deepEqual(await local.getKeys(), ['c']);
  assert.equal(await local.clear(), undefined);
  assert.deepEqual(await local.get(), {});
  await keep.close();
  browser.assertSound();
});

test('defaults: stored values win, objects merge, undefined keys are not asked for', async () => {
  const { keep, local } = start();
  await local.set({ zero: 0, none: null, o: { a: 1 } });
  assert.deepEqual(await local.get({ zero: 5, none: 1, o: { b: 2 }, missing: 'd', odd: () => 1 }), {
    zero: 0,
    none: null,
    o: { a: 1, b: 2 },
    missing: 'd',
  });
  assert.deepEqual(await local.get({ zero: undefined }), {});
  await keep.close();
});

test('set reads its argument before it returns', async () => {
  const { keep, local } = start();
  const value = { list: [1] };
  const done = local.set({ value });
  value.list.push(2);
  await done;
  assert.deepEqual(await local.get('value'), { value: { list: [1] } });
  await keep.close();
});

test('every get gives fresh objects', async () => {
  const { keep, local } = start();
  await local.set({ o: { a: 1 } });
  const [first, second] = await Promise.all([local.get('o'), local.get('o')]);
  first.o.a = 2;
  assert.equal(second.o.a, 1);
  await keep.close();
});

test('calls settle in call order, a big get and a refused set among them', async () => {
  const { browser, keep, local } = start();
  await local.set({ big: 'x'.repeat(3_000_000), small: 1 });
  const order = [];
  const note = (name) => [() => order.push(name), () => order.push(`${name} refused`)];
  await Promise.all([
    local.get('big').then(...note('big')),
    local.set({ binary: new Uint8Array(1) }).then(...note('binary')),
    local.get('small').then(...note('small')),
    local.set({ big2: 'y'.repeat(2_000_000) }).then(...note('big2')),
    local.getKeys().then(...note('keys')),
    local.remove('big').then(...note('remove')),
  ]);
  assert.deepEqual(order, ['big', 'binary refused', 'small', 'big2', 'keys', 'remove']);
  await keep.close();
  browser.assertSound();
});

test('calls take effect in call order, whatever their size', async () => {
  const { browser, keep, local } = start();
  const big = (letter) => letter.repeat(1_000_000);
  local.set({ v: big('a') });
  local.set({ v: 'small' });
  const first = local.get('v');
  local.set({ v: big('b') });
  const second = local.get('v');
  local.remove('v');
  const third = local.getKeys();
  assert.deepEqual(await first, { v: 'small' });
  assert.equal((await second).v, big('b'));
  assert.deepEqual(await third, []);
  await keep.close();
  browser.assertSound();
});

test('an error of the host rejects with its code, kind and what to do', async () => {
  const error = { code: -32001, message: 'The store is full.', data: { kind: 'quota', next: 'Delete.' } };
  const { browser, keep, local } = start({
    script: () => ({ answer: ({ method }) => (method === 'storage.set' ? { error } : undefined) }),
  });
  await assert.rejects(local.set({ a: 1 }), {
    name: 'SidekeepError',
    kind: 'quota',
    code: -32001,
    message: 'The store is full.',
    next: 'Delete.',
  });
  assert.deepEqual(await local.get(), {});
  await keep.close();
  browser.assertSound();
});
