/** The callback form, `lastError`, and the shape of the areas. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const start = (options) => {
  const browser = fakeBrowser(options);
  const keep = connect();
  return { browser, keep, local: keep.storage.local };
};

/** What a callback is given, and the `lastError` it sees. */
const called = (run) =>
  new Promise((done) => run((...args) => done({ args, message: chrome.runtime.lastError?.message })));

/** What is said on the console while `run` runs. */
async function said(run) {
  const lines = [];
  const { error } = console;
  console.error = (line) => lines.push(line.split('\n')[0]);
  try {
    await run();
  } finally {
    console.error = error;
  }
  return lines;
}

test('a callback gets what the promise would give, and nothing is returned', async () => {
  const { browser, keep, local } = start();
  assert.equal(local.set({ a: 1, o: { x: 1 } }, () => {}), undefined);
  assert.deepEqual(await called((done) => local.get('a', done)), { args: [{ a: 1 }], message: undefined });
  assert.deepEqual(await called((done) => local.get(done)), { args: [{ a: 1, o: { x: 1 } }], message: undefined });
  const defaults = { o: { y: 2 }, none: 0 };
  assert.deepEqual((await called((done) => local.get(defaults, done))).args, [{ o: { x: 1, y: 2 }, none: 0 }]);
  assert.deepEqual((await called((done) => local.getKeys(done))).args, [['a', 'o']]);
  assert.deepEqual((await called((done) => local.getBytesInUse('a', done))).args, [2]);
  assert.deepEqual((await called((done) => local.getBytesInUse(done))).args.length, 1);
  assert.deepEqual((await called((done) => local.set({ b: 2 }, done))).args, []);
  assert.deepEqual((await called((done) => local.remove('b', done))).args, []);
  assert.deepEqual((await called((done) => local.clear(done))).args, []);
  await keep.close();
  browser.assertSound();
});

test('a callback given as undefined or null counts as absent', async () => {
  const { keep, local } = start();
  assert.deepEqual(await local.get('a', undefined), {});
  assert.deepEqual(await local.get(null, null), {});
  assert.equal(await local.clear(null), undefined);
  await keep.close();
});

test('a callback comes later, also of a call that is refused at once', async () => {
  const { keep, local } = start();
  let later = false;
  const calls = [
    called((done) => local.get('a', done)).then(() => later),
    called((done) => local.set({ v: new Uint8Array(1) }, done)).then(() => later),
  ];
  later = true;
  assert.deepEqual(await Promise.all(calls), [true, true]);
  await keep.close();
});

test('lastError is there for the length of the callback of a failed call, and nowhere else', async () => {
  const { browser, keep, local } = start();
  Object.defineProperty(chrome.runtime, 'lastError', { value: undefined, configurable: true });
  delete chrome.runtime.lastError;
  const seen = [];
  await new Promise((done) => {
    local.set({ v: new Uint8Array(1) }, (...args) => {
      seen.push(args.length, chrome.runtime.lastError, Object.keys(chrome.runtime.lastError));
      local.get('a', () => {
        seen.push('lastError' in chrome.runtime);
        done();
      });
      queueMicrotask(() => seen.push('lastError' in chrome.runtime));
    });
  });
  assert.deepEqual(seen, [0, { message: 'Cannot serialize value to JSON' }, ['message'], false, false]);
  assert.deepEqual(await called((done) => local.get('a', done)), { args: [{}], message: undefined });
  await keep.close();
  browser.assertSound();
});

/** A `lastError` as the browser has it for another call's callback and the microtasks after it. */
const put = (value) =>
  Object.defineProperty(chrome.runtime, 'lastError', { value, writable: true, enumerable: true, configurable: true });

test('a call refused within a failing callback of the browser sees its own lastError, and order is kept', async () => {
  const { keep, local } = start();
  const seen = [];
  const see = (name) => () => seen.push([name, chrome.runtime.lastError?.message]);
  put({ message: 'of the browser' });
  local.set({ v: new Uint8Array(1) }, see('first'));
  const last = new Promise((done) => {
    local.set({ v: new Uint8Array(1) }, () => {
      see('second')();
      local.set({ a: 1 }, () => done(see('third')()));
    });
  });
  for (let turn = 0; turn < 50; turn += 1) await null;
  delete chrome.runtime.lastError;
  await last;
  const refused = 'Cannot serialize value to JSON';
  assert.deepEqual(seen, [['first', refused], ['second', refused], ['third', undefined]]);
  assert.ok(!Object.hasOwn(chrome.runtime, 'lastError'));
  await keep.close();
});

test('a lastError that a script has put there stays, and nothing is said', async () => {
  const { keep, local } = start();
  put('mine');
  const seen = [];
  const lines = await said(
    () => new Promise((done) => local.set({ v: new Uint8Array(1) }, () => done(seen.push(chrome.runtime.lastError)))),
  );
  assert.deepEqual([seen, lines, chrome.runtime.lastError], [['mine'], [], 'mine']);
  await keep.close();
});

test('a lastError that the browser always has is there again afterwards', async () => {
  const { browser, keep, local } = start();
  browser.lastError = null;
  assert.match((await called((done) => local.set({ v: new Uint8Array(1) }, done))).message, /serialize/);
  assert.equal(chrome.runtime.lastError, null);
  await keep.close();
});

test('the host that refuses is heard in lastError: the sentence for a person', async () => {
  const answer = ({ method }) =>
    method === 'storage.set' ? { error: { code: -32007, message: 'No room on the disk.', data: { kind: 'diskFull' } } } : undefined;
  const { keep, local } = start({ script: () => ({ answer }) });
  assert.equal((await called((done) => local.set({ a: 1 }, done))).message, 'No room on the disk.');
  await keep.close();
});

test('a failure nobody looked at, and what a callback throws, are said on the console and go no further', async () => {
  const { keep, local } = start();
  const faults = [];
  const onFault = (error) => faults.push(error);
  process.on('unhandledRejection', onFault);
  const lines = await said(async () => {
    local.set({ v: new Uint8Array(1) }, () => {});
    local.set({ v: new Uint8Array(1) }, () => void chrome.runtime.lastError);
    local.set({ a: 1 }, () => {
      throw new Error('thrown');
    });
    local.get('a', () => {
      throw 5;
    });
    await local.getKeys();
    await new Promise((done) => setTimeout(done, 5));
  });
  process.off('unhandledRejection', onFault);
  assert.deepEqual(lines, [
    'Unchecked runtime.lastError: Cannot serialize value to JSON',
    'Error handling response: Error: thrown',
    'Error handling response: Uncaught 5',
  ]);
  assert.deepEqual(faults, []);
  assert.deepEqual(await local.get('a'), { a: 1 }, 'the change stays');
  await keep.close();
});

test('the callbacks of an area come in call order', async () => {
  const { keep, local } = start();
  const order = [];
  local.set({ v: new Uint8Array(1) }, () => order.push(chrome.runtime.lastError?.message.slice(0, 6)));
  local.set({ big: 'x'.repeat(3_000_000) }, () => order.push('big'));
  local.get('big', ({ big }) => order.push(big.length));
  local.remove('big', () => order.push('removed'));
  await called((done) => local.getKeys(done));
  assert.deepEqual(order, ['Cannot', 'big', 3_000_000, 'removed']);
  await keep.close();
});

test('an area has the members of a real one, in their order', () => {
  const { keep, local } = start();
  const members = ['get', 'getKeys', 'set', 'remove', 'clear', 'getBytesInUse', 'setAccessLevel', 'onChanged', 'QUOTA_BYTES'];
  assert.deepEqual(Object.keys(local), members);
  assert.equal(local.QUOTA_BYTES, 10_485_760);
  assert.equal(keep.storage.local, local);
  assert.equal(local.onChanged, local.onChanged);
  assert.throws(() => new local.constructor(), /cannot be created using the constructor/);
  assert.throws(() => local.get.call(keep.storage.session, 'a'), TypeError);
  assert.throws(() => local.update.call(keep.storage.session, 'a', { value: 1 }), TypeError);
  assert.throws(() => local.getWithRevisions.call({}), TypeError);
});
