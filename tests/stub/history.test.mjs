/** The live conversation and saved ones in the stub: what is sent, what is refused, and mutations. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { ATTEMPTS } from '../../extension_stub/sidekeep/mutations.js';
import { browserWithConversation } from './fake_conversations.mjs';
import { fakeBrowser } from './fake_host.mjs';

const user = (content) => ({ content, role: 'user' });
const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** A link whose host answers every call with what `result` gives. */
function answering(result = () => ({})) {
  const browser = fakeBrowser({
    script: () => ({
      answer: ({ method, params }) => (method === 'host.hello' ? undefined : { result: result(method, params) }),
    }),
  });
  return { browser, keep: connect() };
}

/** A link to a conversation that holds these entries. */
function talking(entries = [], options = {}) {
  const { browser, conversation } = browserWithConversation(options);
  if (entries.length > 0) conversation.put(entries);
  const keep = connect();
  const contents = () => conversation.list.map(({ entry }) => entry.content);
  const ids = () => conversation.list.map(({ id }) => id);
  const count = (method) => browser.requests().filter((request) => request.method === method).length;
  return { browser, conversation, keep, contents, ids, count };
}

// --- what is sent --------------------------------------------------------------------------------

test('every call is sent as the protocol names it', async () => {
  const calls = [
    [({ history }) => history.list(), 'history.list', {}],
    [({ history }) => history.list({ offset: -50, limit: 0, pixels: 'none' }), 'history.list', { limit: 0, offset: -50, pixels: 'none' }],
    [({ history }) => history.list({ before: 'e9', limit: 2, pixels: 'bounded', budget: 5 }), 'history.list', { before: 'e9', budget: 5, limit: 2, pixels: 'bounded' }],
    [({ history }) => history.list({ after: 'e9' }), 'history.list', { after: 'e9' }],
    [({ history }) => history.append(user('a')), 'history.append', { entries: [user('a')] }],
    [({ history }) => history.append([user('a'), null, 'x'], { conversation: 'c', expect: 3 }), 'history.append', { conversation: 'c', entries: [user('a'), null, 'x'], expect: 3 }],
    [({ history }) => history.update('e1', { entry: 'x', expect: 0 }), 'history.update', { entry: 'x', expect: 0, id: 'e1' }],
    [({ history }) => history.update('e1', { merge: { seen: true, at: null } }), 'history.update', { id: 'e1', merge: { at: null, seen: true } }],
    [({ history }) => history.replace([{ id: 'e1', entry: 1 }, { entry: 2 }], { expect: 7 }), 'history.replace', { entries: [{ entry: 1, id: 'e1' }, { entry: 2 }], expect: 7 }],
    [({ history }) => history.remove('e1'), 'history.remove', { id: 'e1' }],
    [({ history }) => history.remove(''), 'history.remove', { id: '' }],
    [({ history }) => history.remove(0, { expect: 2 }), 'history.remove', { expect: 2, index: 0 }],
    [({ history }) => history.remove({ attachId: 'a-1' }), 'history.remove', { attachId: 'a-1' }],
    [({ history }) => history.remove({ index: 4 }), 'history.remove', { index: 4 }],
    [({ history }) => history.truncate('e1'), 'history.truncate', { from: 'e1' }],
    [({ history }) => history.truncate(0, { expect: 2 }), 'history.truncate', { expect: 2, from: 0 }],
    [({ history }) => history.truncate({ id: 'e1' }), 'history.truncate', { from: 'e1' }],
    [({ history }) => history.clear(), 'history.clear', {}],
    [({ history }) => history.undo(), 'history.undo', {}],
    [({ history }) => history.undo('u1'), 'history.undo', { undo: 'u1' }],
    [({ sessions }) => sessions.save(), 'sessions.save', {}],
    [({ sessions }) => sessions.save({ id: 's', name: 'n' }), 'sessions.save', { id: 's', name: 'n' }],
    [({ sessions }) => sessions.list(), 'sessions.list', {}],
    [({ sessions }) => sessions.list({ query: ' x ', offset: 10, limit: 5 }), 'sessions.list', { limit: 5, offset: 10, query: ' x ' }],
    [({ sessions }) => sessions.load('s'), 'sessions.load', { id: 's' }],
    [({ sessions }) => sessions.load('s', { saveCurrent: false }), 'sessions.load', { id: 's', saveCurrent: false }],
    [({ sessions }) => sessions.get('s', { offset: 0, pixels: 'thumbnail' }), 'sessions.get', { id: 's', offset: 0, pixels: 'thumbnail' }],
    [({ sessions }) => sessions.append('s', user('a')), 'sessions.append', { entries: [user('a')], id: 's' }],
    [({ sessions }) => sessions.rename('s', ''), 'sessions.rename', { id: 's', name: '' }],
    [({ sessions }) => sessions.pin('s', true), 'sessions.pin', { id: 's', pinned: true }],
    [({ sessions }) => sessions.delete('s'), 'sessions.delete', { id: 's' }],
    [({ sessions }) => sessions.clear(), 'sessions.clear', {}],
    [({ sessions }) => sessions.restore({ id: 's' }), 'sessions.restore', { id: 's' }],
    [({ sessions }) => sessions.restore({ undo: 'u' }), 'sessions.restore', { undo: 'u' }],
    [({ trash }) => trash.list(), 'trash.list', {}],
    [({ trash }) => trash.empty(), 'trash.empty', {}],
    [({ trash }) => trash.empty('u'), 'trash.empty', { undo: 'u' }],
    [({ images }) => images.get('sidekeep:r'), 'images.get', { ref: 'sidekeep:r' }],
    [({ images }) => images.thumbnail('sidekeep:r'), 'images.thumbnail', { ref: 'sidekeep:r' }],
    [({ images }) => images.thumbnail('sidekeep:r', { edge: 64 }), 'images.thumbnail', { edge: 64, ref: 'sidekeep:r' }],
  ];
  const { browser, keep } = answering();
  for (const [call, method, params] of calls) {
    await call(keep);
    const request = browser.requests().at(-1);
    assert.deepEqual([request.method, request.params], [method, params]);
    const reads = ['history.list', 'sessions.list', 'sessions.get', 'trash.list', 'images.get', 'images.thumbnail'];
    assert.equal('op' in request, !reads.includes(method), method);
  }
  await keep.close();
  browser.assertSound();
});

test('results are the host’s; where it answers one thing in an object, the thing', async () => {
  const { keep } = answering((method) => ({ row: { id: method }, items: [1], url: 'data:,', undo: null }));
  assert.deepEqual(await keep.sessions.rename('s', 'n'), { id: 'sessions.rename' });
  assert.deepEqual(await keep.sessions.pin('s', false), { id: 'sessions.pin' });
  assert.deepEqual(await keep.sessions.restore({ id: 's' }), { id: 'sessions.restore' });
  assert.deepEqual(await keep.trash.list(), [1]);
  assert.equal(await keep.images.get('sidekeep:r'), 'data:,');
  assert.equal((await keep.sessions.delete('s')).undo, null);
  await keep.close();
});

test('an argument of the wrong type throws at once, and nothing is sent', async () => {
  const { browser, keep } = answering();
  const { history, sessions, trash, images } = keep;
  const noIndex = [NaN, null, undefined, -1, 1.5, 2 ** 53, Infinity, '3' - 4, true, {}, [], { index: NaN }, { index: '1' }, { id: 1 }, { id: 'a', index: 1 }];
  const wrong = [
    ...noIndex.flatMap((which) => [() => history.remove(which), () => history.truncate(which)]),
    () => history.truncate({ attachId: 'a' }),
    () => history.remove({ attachId: undefined }),
    () => history.remove('e1', { expect: -1 }),
    () => history.remove('e1', null),
    () => history.list({ offset: NaN }),
    () => history.list({ offset: null }),
    () => history.list({ limit: -1 }),
    () => history.list({ limit: '5' }),
    () => history.list({ before: 1 }),
    () => history.list({ before: 'a', after: 'b' }),
    () => history.list({ offset: 0, after: 'b' }),
    () => history.list({ pixels: 'some' }),
    () => history.list({ budget: 0.5 }),
    () => history.append(),
    () => history.append(undefined),
    () => history.append([user('a'), undefined]),
    () => history.append([, 1]),
    () => history.append(() => {}),
    () => history.append(NaN),
    () => history.append(1n),
    () => history.append('x', { conversation: null }),
    () => history.append('x', { expect: '1' }),
    () => history.update('e1', {}),
    () => history.update('e1', null),
    () => history.update('e1', { entry: 1, merge: {} }),
    () => history.update('e1', { entry: undefined }),
    () => history.update('e1', { merge: [] }),
    () => history.update('e1', { merge: {}, expect: NaN }),
    () => history.update(1, { entry: 1 }),
    () => history.replace([{ entry: 1 }]),
    () => history.replace([{ entry: 1 }], { expect: null }),
    () => history.replace([1], { expect: 1 }),
    () => history.replace([{ id: null, entry: 1 }], { expect: 1 }),
    () => history.replace([{ id: 'e1' }], { expect: 1 }),
    () => history.replace({}, { expect: 1 }),
    () => history.undo(null),
    () => history.undo(1),
    () => history.mutate(),
    () => history.mutate([]),
    () => history.onChanged.addListener(),
    () => sessions.save(null),
    () => sessions.save({ id: null }),
    () => sessions.save({ name: 1 }),
    () => sessions.list({ query: 1 }),
    () => sessions.list({ offset: -1 }),
    () => sessions.load(),
    () => sessions.load('s', { saveCurrent: 'no' }),
    () => sessions.get(1),
    () => sessions.append('s'),
    () => sessions.rename('s'),
    () => sessions.rename('s', null),
    () => sessions.pin('s'),
    () => sessions.delete(null),
    () => sessions.restore('s'),
    () => sessions.restore({}),
    () => sessions.restore({ id: 's', undo: 'u' }),
    () => sessions.restore({ undo: null }),
    () => trash.empty(null),
    () => images.get(),
    () => images.thumbnail('r', { edge: 15 }),
    () => images.thumbnail('r', { edge: 1025 }),
    () => images.shown([]),
    () => images.shown({ entries: [] }),
    () => connect({ attachmentPrefix: '' }),
    () => connect({ attachmentPrefix: 1 }),
  ];
  for (const call of wrong) assert.throws(call, TypeError, String(call));
  await sleep(10);
  assert.deepEqual(browser.requests(), []);
  await keep.close();
});

test('the prefix of attachments is told in the hello', async () => {
  const browser = fakeBrowser();
  const keep = connect({ attachmentPrefix: '[Page]' });
  await keep.call('host.ping');
  assert.deepEqual(browser.requests()[0].params.settings, { attachmentPrefix: '[Page]' });
  await keep.close();
});

test('a change leaves after an earlier big one, and settles without waiting for it', async () => {
  let release;
  const { browser, keep } = answering((method, params) => ({ method, length: params.entries?.length ?? 0 }));
  const settled = [];
  browser.script = () => ({
    answer: (request, host) => {
      if (request.method === 'host.hello') return undefined;
      if (request.params.entries?.[0] !== 'held') return { result: {} };
      release = () => host.emit({ jsonrpc: '2.0', id: request.id, result: {} });
      return null;
    },
  });
  const note = (name) => () => settled.push(name);
  const first = keep.history.append('held').then(note('held'));
  const big = keep.history.append('x'.repeat(2_000_000)).then(note('big'));
  const small = keep.history.append('small').then(note('small'));
  const area = keep.storage.local.getKeys().then(note('area'));
  await Promise.all([big, small, area]);
  assert.deepEqual(settled.slice(0, 2), ['big', 'small']);
  const up = browser.up.flatMap(([, frame]) => frame);
  const sent = up.findIndex(({ params }) => params?.entries?.[0] === 'small');
  assert.ok(up.findLastIndex(({ part }) => part) < sent, 'not before the last part of the big one');
  release();
  await first;
  await keep.close();
  browser.assertSound();
});

// --- mutations -----------------------------------------------------------------------------------

test('a mutation is awaited, and what it gives is written; entries that stay keep their ids', async () => {
  const { keep, browser, contents, ids } = talking([user('a'), user('b')]);
  const after = await keep.history.mutate(async (entries) => {
    await sleep(1);
    entries.push(user('x'));
    return entries;
  });
  assert.deepEqual(contents(), ['a', 'b', 'x']);
  assert.deepEqual(after, [user('a'), user('b'), user('x')]);
  assert.deepEqual(ids(), ['e1', 'e2', 'e3']);
  const list = browser.requests().find(({ method }) => method === 'history.list');
  assert.deepEqual(list.params, { pixels: 'none' });
  await keep.close();
  browser.assertSound();
});

test('the same object keeps its id although it was changed, an equal one because it is equal', async () => {
  const { keep, contents, ids } = talking([user('a'), user('b'), user('c'), user('c')]);
  await keep.history.mutate(([a, b, , last]) => {
    b.content = 'changed';
    return [last, b, { role: 'user', content: 'a' }, user('c'), b, user('a')];
  });
  assert.deepEqual(contents(), ['c', 'changed', 'a', 'c', 'changed', 'a']);
  assert.deepEqual(ids(), ['e4', 'e2', 'e1', 'e3', 'e5', 'e6'], 'each id once, the others are new');
  await keep.close();
});

test('entries that are no objects keep their ids in order', async () => {
  const { keep, ids } = talking(['a', 'a', 1, null]);
  await keep.history.mutate(([first, second, ...others]) => [...others, 'new', first, second]);
  assert.deepEqual(ids(), ['e3', 'e4', 'e5', 'e1', 'e2']);
  await keep.close();
});

test('null, nothing and a list that is equal are no change: nothing is written', async () => {
  const { keep, count, contents } = talking([user('a')]);
  const touch = (result) => (entries) => {
    entries[0].content = 'touched';
    return result;
  };
  for (const change of [touch(null), touch(undefined), async () => {}, (entries) => entries, () => [{ role: 'user', content: 'a' }]]) {
    assert.deepEqual(await keep.history.mutate(change), [user('a')]);
  }
  assert.equal(count('history.replace'), 0);
  assert.deepEqual(contents(), ['a']);
  await keep.close();
});

test('a mutation that throws rejects with what it threw and does not stop the next call', async () => {
  const { keep, count, contents } = talking([user('a')]);
  const fault = new Error('e');
  const failed = keep.history.mutate(() => {
    throw fault;
  });
  const next = keep.history.mutate((entries) => [...entries, user('y')]);
  await assert.rejects(failed, (error) => error === fault);
  await next;
  await keep.history.append(user('x'));
  assert.deepEqual(contents(), ['a', 'y', 'x']);
  assert.equal(count('history.replace'), 1);
  await keep.close();
});

test('what is no list of entries rejects and writes nothing', async () => {
  const { keep, count } = talking([user('a')]);
  for (const result of [{}, 'text', 1, [undefined], [() => {}]]) {
    await assert.rejects(keep.history.mutate(() => result), TypeError);
  }
  await assert.rejects(keep.history.mutate(() => [new Uint8Array(1)]), { kind: 'invalidParams' });
  assert.equal(count('history.replace'), 0);
  await keep.close();
});

test('an append that comes while a mutation waits is not lost, nor is the mutation', async () => {
  const { keep, contents } = talking([user('a')]);
  const calls = [];
  const mutation = keep.history.mutate(async (entries) => {
    calls.push(entries.length);
    await sleep(30);
    return [...entries, user('mutated')];
  });
  await sleep(10);
  await keep.history.append(user('appended'));
  await mutation;
  assert.deepEqual(contents(), ['a', 'appended', 'mutated']);
  assert.deepEqual(calls, [1, 2]);
  await keep.close();
});

test('mutations of one context run one after another', async () => {
  const { keep, contents, count } = talking();
  let running = 0;
  const one = (name) =>
    keep.history.mutate(async (entries) => {
      running += 1;
      assert.equal(running, 1);
      await sleep(2);
      running -= 1;
      return [...entries, user(name)];
    });
  await Promise.all(['a', 'b', 'c', 'd'].map(one));
  assert.deepEqual(contents(), ['a', 'b', 'c', 'd']);
  assert.equal(count('history.replace'), 4, 'none of them met another');
  await keep.close();
});

test('two contexts that mutate at the same time lose nothing', async () => {
  const { keep, contents } = talking();
  const other = connect();
  const add = (link, name) => link.history.mutate((entries) => [...entries, user(name)]);
  const names = Array.from({ length: 6 }, (_, number) => `${number}`);
  await Promise.all(names.flatMap((name) => [add(keep, `a${name}`), add(other, `b${name}`)]));
  assert.deepEqual(contents().sort(), names.flatMap((name) => [`a${name}`, `b${name}`]).sort());
  await Promise.all([keep.close(), other.close()]);
});

test('a list that never stands still is given up after some attempts', async () => {
  const { keep, conversation, count } = talking([user('a')]);
  let calls = 0;
  const restless = keep.history.mutate((entries) => {
    calls += 1;
    conversation.put([user(`${calls}`)]);
    return [...entries, user('never')];
  });
  await assert.rejects(restless, { kind: 'conflict' });
  assert.deepEqual([calls, count('history.replace')], [ATTEMPTS, ATTEMPTS]);
  await keep.close();
});

test('a refusal that is no conflict ends the mutation at once', async () => {
  const gone = { error: { code: -32003, message: 'gone', data: { kind: 'notFound' } } };
  const { keep, count } = talking([user('a')], {
    answer: ({ method }) => (method === 'history.replace' ? gone : undefined),
  });
  await assert.rejects(keep.history.mutate(() => []), { kind: 'notFound' });
  assert.equal(count('history.replace'), 1);
  await keep.close();
});

test('a mutation whose host dies with the write is applied once', async () => {
  let died = false;
  const applied = new Map(); // by op, as a host keeps it
  const { keep, contents, conversation } = talking([user('a')], {
    script: () => ({
      diesAt: (frame, host) => {
        if (died || ![frame].flat().some(({ method }) => method === 'history.replace')) return false;
        died = true;
        host.emit = () => {}; // it commits, and nothing of that arrives
        host.deliver(frame);
        return true;
      },
    }),
    answer: (request, host, { answer }) => {
      if (request.method !== 'history.replace') return undefined;
      if (!applied.has(request.op)) applied.set(request.op, answer(request, host));
      return applied.get(request.op);
    },
  });
  await keep.history.mutate((entries) => [...entries, user('b')]);
  assert.deepEqual(contents(), ['a', 'b']);
  assert.equal(conversation.revision, 2);
  await keep.close();
});
