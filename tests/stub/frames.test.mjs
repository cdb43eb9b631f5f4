/** What travels in which frame: ticks, hello, parts, windows, lanes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const start = (options, settings) => {
  const browser = fakeBrowser(options);
  const keep = connect(settings);
  return { browser, keep, local: keep.storage.local };
};
const names = ([, frame]) => [frame].flat().map((element) => element.method ?? Object.keys(element)[0]);
const requests = (browser) => browser.up.filter((frame) => names(frame).some((name) => name.includes('.')));
const settled = () => new Promise((done) => setTimeout(done, 20));

test('connecting opens no port, the first call does', async () => {
  const { browser, keep, local } = start();
  await settled();
  assert.equal(browser.opened, 0);
  assert.equal(keep.status().state, 'idle');
  await local.getKeys();
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('the hello shares the first frame with the calls of the tick', async () => {
  const { browser, keep, local } = start();
  await Promise.all([local.set({ a: 1 }), local.get('a'), keep.call('host.ping')]);
  assert.deepEqual(browser.up.map(names), [['host.hello', 'storage.set', 'storage.get', 'host.ping']]);
  const [, [hello, set]] = browser.up[0];
  assert.equal(hello.params.protocol, 1);
  assert.match(hello.params.profile, /^[A-Za-z0-9_-]{22}$/);
  assert.match(hello.params.client, /^[A-Za-z0-9_-]{22}$/);
  assert.deepEqual(hello.params.parts, { window: 16 });
  assert.deepEqual(set.params, { area: 'local', items: { a: 1 } });
  await keep.close();
  browser.assertSound();
});

test('2,000 calls of one tick are one frame', async () => {
  const { browser, keep, local } = start();
  await local.getKeys();
  browser.up.length = 0;
  const calls = Array.from({ length: 2000 }, (_, index) => local.set({ [`k${index}`]: index }));
  await Promise.all(calls);
  assert.equal(browser.up.length, 1);
  assert.equal(browser.up[0][1].length, 2000);
  await keep.close();
  browser.assertSound();
});

test('a single call is an object, not an array', async () => {
  const { browser, keep, local } = start();
  await local.getKeys();
  await local.getKeys();
  assert.equal(browser.up[1][1].method, 'storage.getKeys');
  await keep.close();
});

test('mutations carry a rising op and reads carry none', async () => {
  const { browser, keep, local } = start();
  await Promise.all([local.set({ a: 1 }), local.get('a'), local.remove('a'), local.clear(), local.getKeys()]);
  await local.set({ b: 1 });
  const ops = browser.requests().map(({ method, op }) => [method, op]);
  assert.deepEqual(ops, [
    ['host.hello', undefined],
    ['storage.set', 0],
    ['storage.get', undefined],
    ['storage.remove', 1],
    ['storage.clear', 2],
    ['storage.getKeys', undefined],
    ['storage.set', 3],
  ]);
  await keep.close();
});

test('a tick that fills more than one frame is split near 1 MiB', async () => {
  const { browser, keep, local } = start();
  await local.getKeys();
  browser.up.length = 0;
  await Promise.all(Array.from({ length: 20 }, (_, index) => local.set({ [index]: 'x'.repeat(200_000) })));
  assert.ok(requests(browser).length >= 4);
  for (const [bytes] of browser.up) assert.ok(bytes <= 1_100_000, `${bytes}`);
  assert.equal((await local.getKeys()).length, 20);
  await keep.close();
  browser.assertSound();
});

test('a first call that needs parts waits for the grant, and so do the calls after it', async () => {
  const { browser, keep, local } = start();
  const big = 'x'.repeat(500_000);
  const results = await Promise.all([local.set({ first: 1 }), local.set({ big }), local.get('big')]);
  assert.deepEqual(names(browser.up[0]), ['host.hello', 'storage.set']);
  assert.equal(names(browser.up[1])[0], 'part');
  assert.ok(results[2].big === big);
  await keep.close();
  browser.assertSound();
});

test('without a grant a large call goes out whole', async () => {
  const { browser, keep, local } = start({ script: () => ({ parts: false }) });
  await local.set({ big: 'x'.repeat(500_000) });
  assert.deepEqual(browser.up.map(names), [['host.hello'], ['storage.set']]);
  await keep.close();
});

test('what the browser does not carry is tooLarge, and the port lives on', async () => {
  const { browser, keep, local } = start({ script: () => ({ parts: false }) });
  await local.set({ before: 1 });
  await assert.rejects(local.set({ big: 'x'.repeat(70_000_000) }), { kind: 'tooLarge' });
  assert.deepEqual(await local.getKeys(), ['before']);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('at most the granted window of parts is unacknowledged', async () => {
  for (const window of [1, 2, 8]) {
    const { browser, keep, local } = start({ script: () => ({ window }) });
    await local.getKeys();
    let most = 0;
    let open = 0;
    const [host] = browser.hosts;
    const { deliver, emit } = host;
    const post = browser.ports[0].postMessage;
    browser.ports[0].postMessage = (message) => {
      if (message.part) open += 1;
      most = Math.max(most, open);
      post(message);
    };
    host.emit = (message) => {
      if (message.ack) open -= 1;
      emit(message);
    };
    host.deliver = deliver;
    await Promise.all([local.set({ a: 'x'.repeat(3_000_000) }), keep.call('host.ping', { pad: 'y'.repeat(2_000_000) })]);
    assert.ok(most <= window && most >= 1, `${most} of ${window}`);
    assert.equal(open, 0);
    await keep.close();
    browser.assertSound();
  }
});

test('a call of another lane passes between the parts of a big one', async () => {
  const { browser, keep, local } = start({ script: () => ({ window: 1 }) });
  await local.getKeys();
  const order = [];
  await Promise.all([
    local.set({ big: 'x'.repeat(5_000_000) }).then(() => order.push('big')),
    local.getKeys().then(() => order.push('keys')),
    keep.call('host.ping').then(() => order.push('ping')),
  ]);
  assert.deepEqual(order, ['ping', 'big', 'keys']);
  await keep.close();
  browser.assertSound();
});

test('a refusal in the middle of a message in parts ends it and frees the window', async () => {
  const error = { code: -32006, message: 'Too much.', data: { kind: 'tooLarge', of: 1 } };
  const { browser, keep, local } = start({ script: () => ({ window: 2 }) });
  await local.getKeys();
  const [host] = browser.hosts;
  const join = host.join.bind(host);
  host.join = (element) => {
    if (element.part.of !== 1) return join(element);
    if (element.part.i === 3) host.emit({ jsonrpc: '2.0', id: null, error });
    return null;
  };
  await assert.rejects(local.set({ big: 'x'.repeat(5_000_000) }), { kind: 'tooLarge', message: 'Too much.' });
  const parts = () => browser.up.filter(([, frame]) => frame.part?.of === 1).length;
  const sent = parts();
  assert.ok(sent < 10, 'the rest of its parts stays here');
  host.lastOf = 1;
  await local.set({ other: 'y'.repeat(5_000_000) });
  assert.deepEqual(await local.getKeys(), ['other']);
  assert.equal(parts(), sent);
  await keep.close();
  browser.assertSound();
});

test('messages that are no answers are ignored', async () => {
  const { browser, keep, local } = start();
  await local.getKeys();
  const [host] = browser.hosts;
  for (const odd of [null, 5, 'x', [], {}, { jsonrpc: '2.0', method: 'later.event', params: {} }, { ack: { of: 9, i: 0 } }, { jsonrpc: '2.0', id: 12345, result: {} }, { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse' } }]) {
    host.emit(odd);
  }
  assert.deepEqual(await local.getKeys(), []);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('an answer of the wrong form rejects and does not break the others', async () => {
  const { keep, local } = start({
    script: () => ({ answer: ({ method }) => (method === 'storage.get' ? { result: null } : undefined) }),
  });
  const wrong = local.get('a');
  const right = local.getKeys();
  await assert.rejects(wrong, { kind: 'internal' });
  assert.deepEqual(await right, []);
  await keep.close();
});
