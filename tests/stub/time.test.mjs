/** Timeouts, progress, late answers, idle ports and closing. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const start = (options, settings) => {
  const browser = fakeBrowser(options);
  const keep = connect(settings);
  return { browser, keep, local: keep.storage.local };
};
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const never = (...methods) => ({ answer: ({ method }) => (methods.includes(method) ? null : undefined) });

test('a host that never answers: a read is unavailable, a change unknown', async () => {
  const { keep, local } = start({ script: () => ({ deaf: true }) }, { timeout: 60 });
  const [set, get] = [local.set({ a: 1 }), local.get('a')];
  await assert.rejects(set, { kind: 'unknown', code: -32010, message: /0\.1 s/ });
  await assert.rejects(get, { kind: 'unavailable', code: -32009 });
  await keep.close();
});

test('one call that is never answered does not hold up another lane', async () => {
  const { keep, local } = start({ script: () => never('storage.getKeys') }, { timeout: 60 });
  const keys = local.getKeys();
  assert.deepEqual(await keep.call('host.ping'), {});
  await assert.rejects(keys, { kind: 'unavailable' });
  assert.deepEqual(await local.get('a'), {});
  await keep.close();
});

test('an answer that comes too late is dropped, and a later call works on the same port', async () => {
  const late = [];
  const { browser, keep, local } = start(
    {
      script: () => ({
        answer: (request) => {
          if (request.method !== 'storage.get') return undefined;
          late.push(request.id);
          return null;
        },
      }),
    },
    { timeout: 60 },
  );
  await assert.rejects(local.get('a'), { kind: 'unavailable' });
  browser.hosts[0].emit({ jsonrpc: '2.0', id: late[0], result: { items: { a: 'late' } } });
  assert.deepEqual(await local.getKeys(), []);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('parts that go on arriving are progress', async () => {
  const { browser, keep, local } = start({ script: () => ({ window: 1 }) }, { timeout: 500 });
  await local.set({ big: 'x'.repeat(4_000_000) });
  const [host] = browser.hosts;
  const flow = host.flow.bind(host);
  host.flow = () => setTimeout(flow, 40); // many parts, longer than the timeout in all
  const started = performance.now();
  assert.equal((await local.get('big')).big.length, 4_000_000);
  assert.ok(performance.now() - started > 500, 'it took longer than the timeout');
  await keep.close();
  browser.assertSound();
});

test('acknowledgements that go on arriving are progress, for the calls behind too', async () => {
  const { browser, keep, local } = start({ script: () => ({ window: 1 }) }, { timeout: 600 });
  await local.getKeys();
  const [host] = browser.hosts;
  const deliver = host.deliver.bind(host);
  host.deliver = (frame) => setTimeout(() => deliver(frame), frame.part ? 50 : 0);
  await Promise.all([local.set({ big: 'x'.repeat(8_000_000) }), local.getKeys()]);
  await keep.close();
  browser.assertSound();
});

test('a message in parts that is stuck gives up its port', async () => {
  const { browser, keep, local } = start(
    { script: (number) => (number === 0 ? { window: 1 } : {}) },
    { timeout: 60 },
  );
  await local.getKeys();
  browser.hosts[0].deliver = () => {};
  await assert.rejects(local.set({ big: 'x'.repeat(2_000_000) }), { kind: 'unknown' });
  assert.equal(browser.ports[0].open, false);
  assert.deepEqual(await local.getKeys(), []);
  assert.equal(browser.opened, 2);
  await keep.close();
});

test('a host that stays silent for long is replaced', async () => {
  const { browser, keep, local } = start(
    { script: (number) => (number === 0 ? { deaf: true } : {}) },
    { timeout: 50 },
  );
  let answer = null;
  for (let round = 0; round < 20 && !answer; round += 1) {
    answer = await local.getKeys().catch(() => null);
  }
  assert.deepEqual(answer, []);
  assert.equal(browser.opened, 2);
  await keep.close();
});

test('more calls than the pipe takes are held back and all settle', async () => {
  const { browser, keep, local } = start({}, { timeout: 900 });
  await local.getKeys();
  const [host] = browser.hosts;
  const deliver = host.deliver.bind(host);
  let posted = 0;
  let most = 0;
  const post = browser.ports[0].postMessage;
  browser.ports[0].postMessage = (message) => {
    posted += 1;
    most = Math.max(most, posted);
    post(message);
  };
  let queue = Promise.resolve();
  host.deliver = (frame) => {
    queue = queue.then(() => sleep(60)).then(() => {
      posted -= 1;
      deliver(frame);
    });
  };
  await Promise.all(Array.from({ length: 100 }, (_, index) => local.set({ [index]: 'x'.repeat(200_000) })));
  assert.ok(most <= 6, `${most} frames at once`);
  await keep.close();
});

test('the port closes after idle time and opens again for the next call', async () => {
  const { browser, keep, local } = start({}, { idle: 20 });
  await local.set({ a: 1 });
  assert.equal(browser.ports[0].open, true);
  for (let round = 0; round < 100 && browser.ports[0].open; round += 1) await sleep(10);
  assert.equal(browser.ports[0].open, false);
  assert.equal(keep.status().state, 'idle');
  assert.deepEqual(await local.get('a'), { a: 1 });
  assert.equal(browser.opened, 2);
  await keep.close();
});

test('a port with an open call is not idle', async () => {
  const { browser, keep, local } = start({ script: () => never('storage.clear') }, { idle: 5, timeout: 150 });
  await local.getKeys();
  const clear = local.clear();
  await sleep(60);
  assert.equal(browser.ports[0].open, true);
  await assert.rejects(clear, { kind: 'unknown' });
  await keep.close();
});

test('closing sends what was called, settles it, and ends the port', async () => {
  const { browser, keep, local } = start();
  const set = local.set({ a: 1, big: 'x'.repeat(1_000_000) });
  const closed = keep.close();
  await assert.rejects(local.get('a'), { kind: 'unavailable', message: /closed/ });
  assert.equal(await set, undefined);
  await closed;
  assert.equal(browser.ports[0].open, false);
  assert.equal(keep.status().state, 'closed');
  assert.ok(browser.disk.items.has('big'));
  await assert.rejects(local.get('a'), { kind: 'unavailable' });
  assert.equal(browser.opened, 1);
});

test('closing a link that was never used opens nothing', async () => {
  const { browser, keep } = start();
  await keep.close();
  await keep.close();
  assert.equal(browser.opened, 0);
});
