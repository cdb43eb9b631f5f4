/** The relay in the worker, and the link of a content script to it. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { connectContent } from '../../extension_stub/sidekeep/content.js';
import { connect } from '../../extension_stub/sidekeep/index.js';
import { relay } from '../../extension_stub/sidekeep/relay.js';
import { fakeBrowser } from './fake_host.mjs';
import { fakeDatabase, fakePage, fakePorts, portPair } from './fake_ports.mjs';

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const CLOSED = { name: 'SidekeepError', kind: 'forbidden', message: 'Access to storage is not allowed from this context.' };
let ended = [];

/** A worker that relays, and a content script; both live in this process. */
function start({ script, options, content: contentOptions, relaying = true } = {}) {
  const browser = fakeBrowser({ script: script ?? (() => ({})) });
  const levels = fakeDatabase();
  const ports = fakePorts('fake');
  globalThis.addEventListener ??= () => {};
  globalThis.removeEventListener ??= () => {};
  const keep = connect({ timeout: 1000 });
  const relayed = relaying ? relay(keep, options) : null;
  const content = connectContent(contentOptions);
  ended.push(async () => {
    content.close();
    relayed?.close();
    await keep.close();
  });
  return { browser, levels, ports, keep, relayed, content, local: content.storage.local, session: content.storage.session };
}

afterEach(async () => {
  for (const end of ended.splice(0)) await end();
  delete globalThis.indexedDB;
});

test('calls of a content script come to the host, in order, and answers come back', async () => {
  const { browser, keep, local } = start();
  local.set({ a: 1, date: new Date() });
  local.set({ a: 2 });
  const got = local.get({ a: 0, none: [1] });
  local.remove('a');
  assert.deepEqual(await got, { a: 2, none: [1] });
  assert.deepEqual(await local.getKeys(), ['date']);
  assert.equal(await local.getBytesInUse('date'), 6);
  assert.deepEqual(await keep.storage.local.get(), { date: {} });
  assert.deepEqual(await new Promise((done) => local.get('date', done)), { date: {} });
  assert.throws(() => local.get(5), TypeError);
  browser.assertSound();
});

test('keys that every object inherits are keys like others for a content script, in calls and in events', async () => {
  const { browser, keep, local } = start();
  const item = (key, value) => Object.fromEntries([[key, value]]);
  const heard = [];
  const answer = ({ method }) =>
    method === 'storage.watch' ? { result: { seq: { local: 0 }, stores: {} } } : undefined;
  browser.script = () => ({ answer });
  local.onChanged.addListener((changes) => heard.push(changes));
  const names = Object.getOwnPropertyNames(Object.prototype);
  for (const [index, key] of names.entries()) {
    assert.deepEqual(await local.get(key), {});
    assert.deepEqual(await local.get(item(key, 1)), item(key, 1));
    await local.set(item(key, { b: 2 }));
    assert.deepEqual(await local.get(item(key, { a: 1 })), item(key, { a: 1, b: 2 }));
    assert.deepEqual(await keep.storage.local.get(), item(key, { b: 2 }));
    await local.remove(key);
    assert.deepEqual(await local.getKeys(), []);
    const params = { area: 'local', seq: index + 1, changes: item(key, { newValue: 1 }) };
    browser.hosts.at(-1).emit({ jsonrpc: '2.0', method: 'storage.changed', params });
  }
  await pause(30);
  assert.deepEqual(heard, names.map((key) => item(key, { newValue: 1 })));
  browser.assertSound();
});

test('what the host refuses is refused here, with kind, code and what to do', async () => {
  const answer = ({ method }) =>
    method === 'storage.set'
      ? { error: { code: -32007, message: 'No room.', data: { kind: 'diskFull', next: 'Free some.', used: 5 } } }
      : undefined;
  const { local } = start({ script: () => ({ answer }) });
  const error = await local.set({ a: 1 }).then(assert.fail, (reason) => reason);
  assert.deepEqual([error.kind, error.code, error.message, error.next, error.data.used], ['diskFull', -32007, 'No room.', 'Free some.', 5]);
});

test('an area that is closed is refused, and opened and closed by setAccessLevel of a trusted context', async () => {
  const { keep, local, session } = start();
  for (const call of [() => session.get(), () => session.set({ a: 1 }), () => session.getKeys(), () => session.clear()]) {
    await assert.rejects(call(), CLOSED);
  }
  await keep.storage.session.setAccessLevel({ accessLevel: 'TRUSTED_AND_UNTRUSTED_CONTEXTS' });
  await session.set({ a: 1 });
  await keep.storage.session.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' });
  await assert.rejects(session.get('a'), CLOSED);
  await keep.storage.local.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' });
  await assert.rejects(local.get('a'), CLOSED);
});

test('a content script cannot set a level', async () => {
  const { levels, local, session } = start();
  const open = { accessLevel: 'TRUSTED_AND_UNTRUSTED_CONTEXTS' };
  await assert.rejects(local.setAccessLevel(open), { kind: 'forbidden', message: 'Context cannot set the storage access level' });
  await assert.rejects(session.setAccessLevel(open), CLOSED);
  assert.equal(levels.size, 0);
});

test('levels that cannot be read close both areas', async () => {
  const { local } = start();
  const { warn } = console;
  console.warn = () => {};
  delete globalThis.indexedDB;
  await assert.rejects(local.get('a'), CLOSED);
  console.warn = warn;
});

test('areas that the relay does not name are closed whatever their level', async () => {
  const { keep, local, session } = start({ options: { areas: ['local'] } });
  await keep.storage.session.setAccessLevel({ accessLevel: 'TRUSTED_AND_UNTRUSTED_CONTEXTS' });
  await assert.rejects(session.get(), CLOSED);
  assert.deepEqual(await local.get(), {});
  assert.throws(() => relay(keep, { areas: ['sync'] }), TypeError);
  assert.throws(() => relay(keep, { name: '' }), TypeError);
});

for (const [what, sender] of [
  ['another extension', { id: 'other', tab: { id: 1 } }],
  ['no tab', { id: 'fake' }],
  ['a tab without id', { id: 'fake', tab: {} }],
  ['nobody', undefined],
]) {
  test(`a port from ${what} is ended and not heard`, async () => {
    const { browser, ports, relayed } = start();
    const pair = portPair('sidekeep:relay', sender);
    ports.onConnect.emit(pair.worker);
    const heard = [];
    pair.content.onMessage.addListener((message) => heard.push(message));
    pair.worker.onMessage.emit([{ id: 1, method: 'storage.clear', params: { area: 'local' } }]);
    await pause(20);
    assert.equal(pair.worker.open, false);
    assert.equal(relayed.bound, 0);
    assert.deepEqual(heard, []);
    assert.equal(browser.opened, 0);
  });
}

test('methods that are not of the areas, and messages that are none, get nothing', async () => {
  const { browser, ports } = start();
  const pair = portPair('sidekeep:relay', ports.sender);
  const heard = [];
  pair.content.onMessage.addListener((message) => heard.push(message));
  ports.onConnect.emit(pair.worker);
  const area = { area: 'local' };
  const calls = ['host.status', 'history.list', 'storage.watch', 'host.adopt', 5, undefined, 'constructor'];
  pair.content.postMessage(calls.map((method, id) => ({ id, method, params: area })));
  pair.content.postMessage([{ id: 100, method: 'storage.get' }, { id: 101, method: 'storage.get', params: null }]);
  pair.content.postMessage([{ id: 102, method: 'storage.get', params: { area: 'managed' } }]);
  for (const odd of [null, 5, 'text', [], [null], {}, [[]], { id: 'x' }, { listen: 'local' }, [{ listen: ['__proto__'] }]]) {
    pair.content.postMessage(odd);
  }
  await pause(150);
  const answers = heard.filter(({ id }) => id !== undefined);
  assert.equal(answers.length, calls.length + 3);
  for (const { error } of answers) assert.ok(['methodNotFound', 'forbidden'].includes(error.data.kind));
  assert.equal(browser.opened, 0);
});

test('a worker without relay is said in words, and is not asked again at once', async () => {
  const { ports, local } = start({ relaying: false });
  await assert.rejects(local.set({ a: 1 }), { kind: 'unavailable', next: /relay\(keep\)/ });
  for (let left = 20; left > 0; left -= 1) await assert.rejects(local.get('a'), { kind: 'unavailable' });
  assert.ok(ports.pairs.length < 3);
});

test('a worker that listens to ports and has no relay is given up', async () => {
  const { ports, local } = start({ relaying: false, content: { timeout: 1000 } });
  ports.onConnect.addListener(() => {});
  await assert.rejects(local.set({ a: 1 }), { kind: 'unavailable', next: /relay\(keep\)/ });
});

test('the worker stops: reads are asked again, a change that had left is unknown, the next call works', async () => {
  let silent = true;
  const answer = ({ method }) => (silent && method.startsWith('storage.') ? null : undefined);
  const { ports, local } = start({ script: () => ({ answer }) });
  const calls = [local.get('a'), local.set({ a: 1 }), local.getKeys()];
  await pause(60);
  silent = false;
  ports.stop();
  const settled = await Promise.allSettled(calls);
  assert.deepEqual(settled.map(({ status, reason }) => reason?.kind ?? status), ['fulfilled', 'unknown', 'fulfilled']);
  await local.set({ b: 2 });
  assert.equal((await local.get('b')).b, 2);
});

/** A host that says where the local area is, 5. */
const watched = ({ method }) => (method === 'storage.watch' ? { result: { seq: { local: 5 }, stores: { local: 'e' } } } : undefined);

for (const since of [{ seq: 'x' }, { seq: -1 }, { seq: 1.5 }, { seq: 2 ** 53 }, { seq: 1, store: 5 }, { seq: 1, store: 'x'.repeat(65) }, 5, 'x', []]) {
  test(`a content script that says it has heard up to ${JSON.stringify(since).slice(0, 30)} hears of a gap, and nobody else of it`, async () => {
    const { browser, ports, keep } = start({ script: () => ({ answer: watched }) });
    const pair = portPair('sidekeep:relay', ports.sender);
    const heard = [];
    pair.content.onMessage.addListener((message) => heard.push(message));
    ports.onConnect.emit(pair.worker);
    pair.content.postMessage([{ listen: ['local'], since: { local: since } }]);
    await pause(100);
    assert.deepEqual(heard.filter(({ gap }) => gap).map(({ gap }) => gap), ['local']);
    const asked = browser.requests().filter(({ method }) => method === 'storage.watch');
    assert.deepEqual(asked.map(({ params }) => params), [{ areas: ['local'], since: {}, stores: {} }]);
    const own = [];
    keep.storage.local.onChanged.addListener((changes) => own.push(changes));
    const changes = { a: { newValue: 1 } };
    browser.hosts.at(-1).emit({ jsonrpc: '2.0', method: 'storage.changed', params: { area: 'local', seq: 6, changes } });
    await pause(30);
    assert.deepEqual(own, [changes]);
    assert.deepEqual(heard.at(-1), { changed: { area: 'local', changes, place: { seq: 6, store: 'e' } } });
    pair.content.disconnect();
    await pause(10);
  });
}

test('an event that the browser does not carry is a gap, and later ones are heard', async () => {
  const { browser, ports, content, local } = start({ script: () => ({ answer: watched }) });
  const heard = [];
  content.onGap.addListener(({ area }) => heard.push(area));
  local.onChanged.addListener((changes) => heard.push(changes));
  await local.get('a');
  const { worker } = ports.pairs.at(-1);
  const post = worker.postMessage;
  worker.postMessage = (message) => {
    if (JSON.stringify(message).length > 500) throw new Error('Message length exceeded maximum allowed length.');
    post(message);
  };
  const emit = (seq, changes) =>
    browser.hosts.at(-1).emit({ jsonrpc: '2.0', method: 'storage.changed', params: { area: 'local', seq, changes } });
  emit(6, { a: { newValue: 'b'.repeat(300), oldValue: 'a'.repeat(300) } });
  emit(7, { a: { newValue: 1 } });
  await pause(60);
  assert.deepEqual(heard, ['local', { a: { newValue: 1 } }]);
});

test('a page that comes back from the back/forward cache hears what it missed or of a gap, and calls', async () => {
  for (const missed of ['told', 'gap']) {
    const page = fakePage();
    const { browser, ports, keep, content, local } = start({ script: () => ({ answer: watched }), content: { timeout: 20_000 } });
    const heard = [];
    const changed = (seq) => ({ jsonrpc: '2.0', method: 'storage.changed', params: { area: 'local', seq, changes: { a: { newValue: seq } } } });
    content.onGap.addListener(({ area }) => heard.push(area));
    local.onChanged.addListener((changes) => heard.push(changes.a.newValue));
    await local.get('a');
    browser.hosts.at(-1).emit(changed(6));
    await pause(60);
    ports.cache();
    if (missed === 'gap') keep.storage.local.onChanged.addListener(() => {}); // the worker hears what the page does not
    await keep.storage.local.set({ a: 7 });
    if (missed === 'gap') browser.hosts.at(-1).emit(changed(7));
    await pause(60);
    page.tell('pageshow', { persisted: true });
    await pause(60);
    if (missed === 'told') browser.hosts.at(-1).emit(changed(7));
    await pause(60);
    assert.deepEqual(heard, [6, missed === 'told' ? 7 : 'local']);
    assert.equal((await local.get('a')).a, 7);
    assert.equal(ports.pairs.length, 2);
    for (const end of ended.splice(0)) await end();
    page.end();
  }
});

test('calls that are open when the page goes into the cache are made again or unknown when it is back', async () => {
  const page = fakePage();
  let silent = true;
  const answer = (request) => (silent && request.method.startsWith('storage.') ? null : watched(request));
  const { ports, content, local } = start({ script: () => ({ answer }), content: { timeout: 20_000 } });
  const calls = [local.get('a'), local.set({ a: 1 }), local.getKeys()];
  await pause(60);
  assert.deepEqual(page.types(), ['pageshow']);
  silent = false;
  ports.cache();
  calls.push(local.get('b')); // posted on the dead port
  await pause(30);
  page.tell('pageshow', { persisted: false });
  await pause(30);
  assert.equal(ports.pairs.length, 1);
  page.tell('pageshow', { persisted: true });
  local.onChanged.addListener(() => {}); // it begins with the new port, also if no call is left
  const settled = await Promise.allSettled(calls);
  assert.deepEqual(settled.map(({ status, reason }) => reason?.kind ?? status), ['fulfilled', 'unknown', 'fulfilled', 'fulfilled']);
  await local.set({ b: 2 });
  assert.equal(ports.pairs.length, 2);
  content.close();
  assert.deepEqual(page.types(), []);
  page.end();
});

test('a page that goes into the cache before the relay has greeted it asks for another port', async () => {
  const page = fakePage();
  const { ports, local } = start({ content: { timeout: 20_000 } });
  const { listeners } = ports.onConnect;
  ports.onConnect.listeners = [() => {}];
  const call = local.set({ a: 1 });
  await pause(30);
  ports.onConnect.listeners = listeners;
  page.tell('pageshow', { persisted: true });
  await call;
  assert.equal(ports.pairs.length, 2);
  page.end();
});

test('a listener that comes just after the worker stopped, and no call is left, is heard of', async () => {
  const answer = (request) => (request.method === 'storage.set' ? null : watched(request));
  const { ports, local } = start({ script: () => ({ answer }) });
  const set = local.set({ a: 1 });
  await pause(60);
  ports.stop();
  local.onChanged.addListener(() => {});
  await assert.rejects(set, { kind: 'unknown' });
  await pause(20);
  assert.equal(ports.pairs.length, 2);
});

test('a port that is dead and does not say so is given up when a call is late', async () => {
  const { ports, content, local } = start({ content: { timeout: 200 } });
  await local.set({ a: 1 });
  ports.cache();
  await pause(250);
  await assert.rejects(local.get('a'), { kind: 'unavailable' });
  assert.notEqual(content.status().state, 'connected');
  assert.deepEqual(await local.get('a'), { a: 1 });
  assert.equal(ports.pairs.length, 2);
});

test('an orphan rejects each call once and opens no port any more', async () => {
  const { ports, content, local } = start({ script: () => ({ answer: ({ method }) => (method === 'storage.get' ? null : undefined) }) });
  const calls = [local.get('a'), local.get('b')];
  const set = local.set({ a: 1 });
  await pause(60);
  const opened = ports.pairs.length;
  ports.stop(); // the id is still there when the port ends
  setTimeout(() => delete chrome.runtime.id, 20);
  for (const call of [...calls, set]) await assert.rejects(call, { kind: 'orphaned' });
  for (let left = 10; left > 0; left -= 1) await assert.rejects(local.set({ a: 1 }), { kind: 'orphaned', next: /Reload/ });
  assert.equal(ports.pairs.length, opened);
  assert.equal(content.status().kind, 'orphaned');
});

test('closing refuses what is open and what comes', async () => {
  const { content, local } = start({ script: () => ({ answer: ({ method }) => (method === 'storage.get' ? null : undefined) }) });
  const call = local.get('a');
  await pause(30);
  content.close();
  await assert.rejects(call, { kind: 'unavailable', message: /closed/ });
  await assert.rejects(local.get('a'), { kind: 'unavailable', message: /closed/ });
  assert.equal(content.status().state, 'closed');
  assert.throws(() => connectContent({ timeout: 0 }), TypeError);
  assert.throws(() => connectContent({ name: 5 }), TypeError);
});
