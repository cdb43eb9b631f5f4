/** Lost ports, hosts that are missing, and what becomes of the calls. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Backoff, WAITS } from '../../extension_stub/sidekeep/backoff.js';
import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const NOT_FOUND = 'Specified native messaging host not found.';
const FORBIDDEN = 'Access to the specified native messaging host is forbidden.';

const start = (options, settings) => {
  const browser = fakeBrowser(options);
  const keep = connect(settings);
  return { browser, keep, local: keep.storage.local };
};
const has = (method) => (frame) => [frame].flat().some((element) => element.method === method);

test('a host killed between calls is replaced by the next call', async () => {
  const { browser, keep, local } = start();
  await local.set({ a: 1 });
  browser.kill();
  assert.equal(keep.status().state, 'idle');
  assert.match(keep.status().reason, /ended/);
  assert.equal(keep.status().lastError, 'Native host has exited.');
  assert.equal(browser.opened, 1, 'no port is opened without a call');
  assert.deepEqual(await local.get('a'), { a: 1 });
  assert.equal(keep.status().state, 'connected');
  assert.equal(keep.status().host.pid, 2);
  await keep.close();
  browser.assertSound();
});

test('a host killed before it saw the calls: they are sent again', async () => {
  const { browser, keep, local } = start({
    script: (number) => (number === 0 ? { diesAt: has('storage.set') } : {}),
  });
  await local.getKeys();
  await Promise.all([local.set({ a: 1 }), local.get('a'), local.getKeys()]);
  assert.equal(browser.opened, 2);
  assert.deepEqual(await local.get(null), { a: 1 });
  await keep.close();
  browser.assertSound();
});

test('a host killed after the commit and before the answer: nothing is applied twice', async () => {
  const commitThenDie = (frame, host) => {
    if (!has('storage.set')(frame)) return false;
    host.emit = () => {}; // the answers never leave
    host.deliver(frame);
    return true;
  };
  const { browser, keep, local } = start({
    script: (number) => (number === 0 ? { diesAt: commitThenDie } : {}),
  });
  await local.getKeys();
  await Promise.all([local.set({ a: 1 }), local.set({ b: 2 }), local.remove('a')]);
  assert.deepEqual(await local.get(null), { b: 2 });
  assert.deepEqual(browser.hosts.map((host) => host.applied), [3, 0]);
  const clients = browser.requests().filter(({ method }) => method === 'host.hello');
  assert.equal(new Set(clients.map(({ params }) => params.client)).size, 1);
  await keep.close();
});

test('a host killed in the middle of parts, up and down: the call is sent again whole', async () => {
  let dying = true;
  const midway = (frame) => {
    const hit = dying && [frame].flat().some((element) => element.part?.i === 5 || element.ack?.i === 5);
    if (hit) dying = false;
    return hit;
  };
  const { browser, keep, local } = start({ script: () => ({ diesAt: midway }) });
  const value = { big: 'x'.repeat(4_000_000) };
  await local.set(value);
  assert.equal(browser.opened, 2);
  dying = true;
  assert.deepEqual(await local.get('big'), value);
  assert.equal(browser.opened, 3);
  await keep.close();
  browser.assertSound();
});

test('a call that ends three hosts is given up: a read as unavailable, a change as unknown', async () => {
  const { browser, keep, local } = start({ script: () => ({ diesAt: has('storage.clear') }) });
  await local.set({ a: 1 });
  const [clear, get] = [local.clear(), local.get('a')];
  await assert.rejects(clear, { kind: 'unknown', code: -32010 });
  await assert.rejects(get, { kind: 'unavailable' });
  assert.deepEqual(await local.get('a'), { a: 1 });
  assert.ok(browser.opened <= 5);
  await keep.close();
});

test('a missing host rejects at once with what to do, and rests', async () => {
  const { browser, keep, local } = start({ script: () => ({ missing: NOT_FOUND }) });
  const calls = [local.set({ a: 1 }), local.get('a'), keep.call('host.ping')];
  for (const call of calls) {
    await assert.rejects(call, { name: 'SidekeepError', kind: 'unavailable', next: /install/i });
  }
  const status = keep.status();
  assert.equal(status.state, 'resting');
  assert.match(status.reason, /finds no Sidekeep host named org\.sidekeep\.host/);
  assert.equal(status.lastError, NOT_FOUND);
  const opened = browser.opened;
  await assert.rejects(local.get('a'), { kind: 'unavailable' });
  assert.equal(browser.opened, opened, 'a call at rest opens no port');
  await keep.close();
});

test('each rejected call has an error of its own', async () => {
  const { keep, local } = start({ script: () => ({ missing: NOT_FOUND }) });
  const errors = await Promise.all([local.get('a'), local.get('b')].map((call) => call.catch((error) => error)));
  assert.notEqual(errors[0], errors[1]);
  await keep.close();
});

test('a host that appears is found by a later call without a reload', async () => {
  const { browser, keep, local } = start({ script: () => ({ missing: NOT_FOUND }) });
  await assert.rejects(local.get('a'));
  browser.script = () => ({});
  const deadline = performance.now() + 2 * WAITS[0] + 5000;
  let found = null;
  while (!found && performance.now() < deadline) {
    found = await local.get('a').catch(() => null);
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.deepEqual(found, {});
  assert.equal(keep.status().state, 'connected');
  await keep.close();
});

test('retry tries at once, and rejects with the reason while the host is missing', async () => {
  const { browser, keep, local } = start({ script: () => ({ missing: NOT_FOUND }) });
  for (let round = 0; round < 4; round += 1) await assert.rejects(keep.retry(), { kind: 'unavailable' });
  assert.equal(browser.opened, 4);
  browser.script = () => ({});
  assert.equal((await keep.retry()).state, 'connected');
  assert.deepEqual(await local.get('a'), {});
  await keep.close();
});

test('a host that is not for this extension is forbidden', async () => {
  const { keep, local } = start({ script: () => ({ missing: FORBIDDEN }) });
  await assert.rejects(local.get('a'), { kind: 'forbidden', next: /--extension-id/ });
  assert.equal(keep.status().kind, 'forbidden');
  await keep.close();
});

test('a host that refuses the hello refuses the calls with the same reason', async () => {
  const error = { code: -32008, message: 'Not you.', data: { kind: 'forbidden', next: 'Ask.' } };
  const { browser, keep, local } = start({
    script: () => ({ answer: ({ method }) => (method === 'host.hello' ? { error } : undefined) }),
  });
  await assert.rejects(local.set({ a: 1 }), { kind: 'forbidden', message: 'Not you.', next: 'Ask.' });
  assert.equal(browser.ports[0].open, false, 'the port is closed');
  await keep.close();
});

test('a host that ends at once is tried a few times, then the stub rests', async () => {
  const { browser, keep, local } = start({ script: () => ({ missing: 'Native host has exited.' }) });
  await assert.rejects(local.get('a'), { kind: 'unavailable' });
  assert.ok(browser.opened > 1 && browser.opened <= 4, `${browser.opened}`);
  await keep.close();
});

test('a browser that throws when the port is opened is no unhandled error', async () => {
  const { keep, local } = start({ script: () => ({ throws: 'Extension context invalidated.' }) });
  await assert.rejects(local.get('a'), { kind: 'orphaned', message: /reloaded/ });
  await keep.close();
});

test('a context that cannot open ports says what is missing', async () => {
  const { keep, local } = start();
  delete globalThis.chrome.runtime.connectNative;
  await assert.rejects(local.get('a'), { kind: 'unavailable', next: /nativeMessaging/ });
  delete globalThis.chrome;
  const outside = connect();
  await assert.rejects(outside.storage.local.get('a'), { kind: 'unavailable', message: /not part of an extension/ });
  await Promise.all([keep.close(), outside.close()]);
});

test('a real storage that fails rejects the calls and is asked again by later ones', async () => {
  const { keep, local } = start();
  const { get } = globalThis.chrome.storage.local;
  globalThis.chrome.storage.local.get = async () => {
    throw new Error('IO error');
  };
  await assert.rejects(local.get('a'), { kind: 'unavailable', message: /IO error/ });
  globalThis.chrome.storage.local.get = get;
  await keep.retry();
  assert.deepEqual(await local.get('a'), {});
  await keep.close();
});

test('fewer than ten attempts are made in the first minute, however many calls come', (t) => {
  let clock = 1000;
  t.mock.method(performance, 'now', () => clock);
  const backoff = new Backoff();
  let attempts = 0;
  const times = [];
  for (; clock < 61_000; clock += 10) {
    if (backoff.wait > 0) continue;
    attempts += 1;
    times.push(clock);
    backoff.failed();
  }
  assert.ok(attempts < 10, `${attempts}`);
  assert.ok(times[3] - times[0] < 2000, 'the first attempts follow within 2 s');
  assert.ok(Math.max(...WAITS) <= 30_000, 'a host installed later is found within 35 s');
});

test('listeners of the status hear every change, and one that throws disturbs nobody', async (t) => {
  t.mock.method(console, 'error', () => {});
  const { browser, keep, local } = start();
  const states = [];
  const listener = (status) => states.push(status.state);
  keep.onStatus.addListener(() => {
    throw new Error('mine');
  });
  keep.onStatus.addListener(listener);
  assert.equal(keep.onStatus.hasListener(listener), true);
  await local.getKeys();
  browser.kill();
  await local.getKeys();
  await keep.close();
  assert.deepEqual(states, ['connecting', 'connected', 'idle', 'waiting', 'connecting', 'connected', 'closed']);
});
