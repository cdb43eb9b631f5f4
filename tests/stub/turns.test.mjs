/** Turns in the stub: what is sent, how partial text is saved, and what holds the port. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { MOST, stayAwake } from '../../extension_stub/sidekeep/awake.js';
import { connect } from '../../extension_stub/sidekeep/index.js';
import { EVERY, Progress } from '../../extension_stub/sidekeep/progress.js';
import { fakeBrowser } from './fake_host.mjs';

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const CHAT = { style: 'chat' };
const BEGUN = {
  turnId: 't1',
  entryId: 'e7',
  conversation: 'c1',
  request: { messages: [{ role: 'user', content: 'hi' }] },
  left: { images: 1, entries: ['e2'] },
};
const RESULTS = {
  'turns.begin': BEGUN,
  'turns.edit': { ...BEGUN, undo: 'u1' },
  'turns.regenerate': { ...BEGUN, undo: 'u2' },
  'turns.progress': {},
  'turns.rescue': { overflow: false, request: null, stubbed: [], left: { images: 0, entries: [] } },
  'turns.complete': { id: 'e8', seen: ['e7'], conversation: 'c1', session: null },
  'turns.fail': { id: 'e8' },
};

/** The links of a test; a turn that is not ended would keep the process. */
const links = [];
afterEach(async () => {
  for (const { keep, turns } of links.splice(0)) {
    for (const turn of turns) await turn.fail('drop').catch(() => {});
    await keep.close();
  }
});

/** A link whose host answers turns; `result(method, params)` may give or throw another answer. */
function talking(result = () => undefined, options = {}) {
  const browser = fakeBrowser({
    script: () => ({
      answer: ({ method, params }) => {
        const special = result(method, params);
        if (special !== undefined) return special;
        return method in RESULTS ? { result: RESULTS[method] } : undefined;
      },
    }),
  });
  const keep = connect(options);
  const turns = [];
  links.push({ keep, turns });
  const begin = async (more = {}) => {
    const turn = await keep.turns.begin({ text: 'hi', target: CHAT, ...more });
    turns.push(turn);
    return turn;
  };
  const sent = (method) => browser.requests().filter((request) => request.method === method);
  return { browser, keep, begin, sent };
}

const refusal = (kind) => ({ error: { code: -32002, message: 'refused', data: { kind } } });

// --- what is sent ----------------------------------------------------------------------------------

test('every call is sent as the protocol names it, as a change that may be repeated', async () => {
  const { browser, keep, begin } = talking();
  const limits = { images: 2, tokens: 9 };
  const target = { style: 'agent', system: 's', backfill: true };
  const turn = await begin({ text: '', images: ['data:image/png;base64,AA'], target, limits, parallel: true });
  const calls = [
    [null, 'turns.begin', { images: ['data:image/png;base64,AA'], limits, parallel: true, target, text: '' }],
    [() => keep.turns.edit('e7', { text: 'x', images: [], target: CHAT }), 'turns.edit', { entryId: 'e7', images: [], target: CHAT, text: 'x' }],
    [() => keep.turns.edit('e7', { target: CHAT, limits }), 'turns.edit', { entryId: 'e7', limits, target: CHAT }],
    [() => keep.turns.regenerate('e7', { target: CHAT }), 'turns.regenerate', { entryId: 'e7', target: CHAT }],
    [() => turn.rescue({ status: 400, code: 'x', message: 'too long' }), 'turns.rescue', { error: { code: 'x', message: 'too long', status: 400 }, turnId: 't1' }],
    [() => turn.complete('a', { providerLabel: 'm' }), 'turns.complete', { content: 'a', stamps: { providerLabel: 'm' }, turnId: 't1' }],
    [() => turn.complete([{ type: 'text', text: 'a' }]), 'turns.complete', { content: [{ text: 'a', type: 'text' }], turnId: 't1' }],
    [() => turn.fail('abort', 'so far'), 'turns.fail', { partial: 'so far', reason: 'abort', turnId: 't1' }],
    [() => turn.fail('error'), 'turns.fail', { reason: 'error', turnId: 't1' }],
    [() => keep.acknowledge('t1'), 'host.acknowledge', { notice: 't1' }],
  ];
  for (const [call, method, params] of calls) {
    const result = await call?.().catch((error) => assert.equal(method, 'host.acknowledge', error));
    if (result?.turnId) links.at(-1).turns.push(result);
    const request = browser.requests().at(-1);
    assert.deepEqual([request.method, request.params], [method, params]);
    assert.equal(typeof request.op, 'number', method);
  }
  browser.assertSound();
});

test('a turn says what the host answered, and of a change in place how to undo it', async () => {
  const { keep, begin } = talking();
  const turn = await begin();
  assert.deepEqual({ ...turn, request: turn.request, left: turn.left }, { ...turn, ...BEGUN });
  assert.equal('undo' in turn, false);
  for (const [again, undo] of [[keep.turns.edit('e7', { target: CHAT }), 'u1'], [keep.turns.regenerate('e7', { target: CHAT }), 'u2']]) {
    links.at(-1).turns.push(await again);
    assert.equal((await again).undo, undo);
  }
  assert.deepEqual(await turn.complete('x'), RESULTS['turns.complete']);
});

test('an argument of the wrong type throws at once, and nothing is sent', async () => {
  const { browser, keep, begin } = talking();
  const { turns } = keep;
  const turn = await begin();
  const before = browser.requests().length;
  const wrong = [
    () => turns.begin(),
    () => turns.begin({ text: 'x' }),
    () => turns.begin({ target: CHAT }),
    () => turns.begin({ text: 'x', target: {} }),
    () => turns.begin({ text: 'x', target: 'chat' }),
    () => turns.begin({ text: 'x', target: CHAT, images: 'data:' }),
    () => turns.begin({ text: 'x', target: CHAT, images: [null] }),
    () => turns.begin({ text: 'x', target: CHAT, images: new Array(1) }),
    () => turns.begin({ text: 'x', target: CHAT, limits: 8 }),
    () => turns.begin({ text: 'x', target: CHAT, limits: null }),
    () => turns.begin({ text: 'x', target: CHAT, parallel: 1 }),
    () => turns.edit({ target: CHAT }),
    () => turns.edit('e1'),
    () => turns.edit('e1', { text: null, target: CHAT }),
    () => turns.regenerate(7, { target: CHAT }),
    () => turns.regenerate('e1', {}),
    () => turn.progress(),
    () => turn.complete(),
    () => turn.complete('x', null),
    () => turn.fail(),
    () => turn.fail('because'),
    () => turn.fail('abort', null),
  ];
  for (const call of wrong) assert.throws(call, TypeError, String(call));
  await assert.rejects(turn.rescue('too long'), TypeError);
  await assert.rejects(keep.acknowledge(), TypeError);
  assert.equal(browser.requests().length, before);
});

test('any error may be given to rescue: what is no status, code or message of a server is left out', async () => {
  const { sent, begin } = talking();
  const turn = await begin();
  await turn.rescue(Object.assign(new Error('too long'), { status: '400', code: null }));
  await turn.rescue({ code: 413, message: 4 });
  assert.deepEqual(sent('turns.rescue').map(({ params }) => params.error), [{ message: 'too long' }, { code: 413 }]);
});

test('after a rescue the turn has the smaller request, and what came before it is void', async () => {
  const smaller = { overflow: true, request: { messages: [] }, stubbed: ['e2'], left: { images: 0, entries: [] } };
  const { sent, begin } = talking((method) => (method === 'turns.rescue' ? { result: smaller } : undefined));
  const turn = await begin();
  turn.progress('of the first try');
  assert.deepEqual(await turn.rescue({ status: 413 }), smaller);
  assert.deepEqual([turn.request, turn.left], [smaller.request, smaller.left]);
  await turn.fail('abort');
  assert.deepEqual(sent('turns.fail')[0].params, { reason: 'abort', turnId: 't1' });
});

test('a rescue that gives nothing leaves the request as it was', async () => {
  const { begin } = talking();
  const turn = await begin();
  await turn.rescue({ message: 'no' });
  assert.deepEqual(turn.request, BEGUN.request);
});

// --- partial text ----------------------------------------------------------------------------------

test('of many texts the first and then the newest are saved, one call at a time', async () => {
  const { browser, sent, begin } = talking((method) => (method === 'turns.progress' ? null : undefined));
  const turn = await begin();
  for (let words = 1; words <= 50; words += 1) turn.progress('w '.repeat(words));
  await sleep(EVERY + 100);
  turn.progress('last');
  await sleep(100);
  assert.deepEqual(sent('turns.progress').map(({ params }) => params.text), ['w ']);
  const { id } = sent('turns.progress')[0];
  browser.hosts[0].emit({ jsonrpc: '2.0', id, result: {} });
  await sleep(50);
  assert.deepEqual(sent('turns.progress').map(({ params }) => params.text), ['w ', 'last']);
  browser.hosts[0].emit({ jsonrpc: '2.0', id: sent('turns.progress')[1].id, result: {} });
});

test('no text is saved sooner than the pause after the one before, and none twice', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const texts = [];
  const progress = new Progress(async (text) => void texts.push(text));
  const pass = async (milliseconds) => {
    context.mock.timers.tick(milliseconds);
    await new Promise(setImmediate);
  };
  progress.put('a');
  await pass(0);
  progress.put('ab');
  progress.put('abc');
  await pass(EVERY - 1);
  assert.deepEqual(texts, ['a']);
  await pass(1);
  assert.deepEqual(texts, ['a', 'abc']);
  await pass(10 * EVERY);
  assert.deepEqual(texts, ['a', 'abc']);
  progress.put('abcd');
  assert.deepEqual(texts, ['a', 'abc', 'abcd'], 'at once after a pause');
});

test('nothing is saved after the end, and a failure keeps the newest text', async () => {
  const { sent, begin } = talking();
  for (const end of [(turn) => turn.complete('done'), (turn) => turn.fail('abort'), (turn) => turn.fail('drop')]) {
    const turn = await begin();
    const before = sent('turns.progress').length;
    turn.progress('one');
    turn.progress('one two');
    await end(turn);
    turn.progress('too late');
    await sleep(EVERY + 50);
    assert.equal(sent('turns.progress').length, before + 1);
  }
  assert.deepEqual(
    sent('turns.fail').map(({ params }) => [params.reason, params.partial]),
    [['abort', 'one two'], ['drop', undefined]],
  );
});

test('a text that cannot be saved does not disturb the stream, says why, and the next one tries again', async () => {
  let full = true;
  const { sent, begin } = talking((method) => (method === 'turns.progress' && full ? refusal('diskFull') : undefined));
  const turn = await begin();
  assert.equal(turn.unsaved, null);
  turn.progress('one');
  await sleep(EVERY + 50);
  assert.equal(turn.unsaved.kind, 'diskFull');
  assert.equal(sent('turns.progress').length, 1, 'it is not tried without end');
  full = false;
  turn.progress('one two');
  await sleep(50);
  assert.equal(turn.unsaved, null);
  assert.deepEqual(sent('turns.progress').map(({ params }) => params.text), ['one', 'one two']);
});

// --- the port and the worker -----------------------------------------------------------------------

test('a turn keeps its port open until it is completed or failed, and no longer', async () => {
  for (const end of ['complete', 'fail']) {
    const { browser, keep, begin } = talking(() => undefined, { idle: 20 });
    const turn = await begin();
    await sleep(120);
    assert.equal(keep.status().state, 'connected');
    await (end === 'complete' ? turn.complete('x') : turn.fail('error'));
    await sleep(120);
    assert.equal(keep.status().state, 'idle');
    assert.equal(browser.opened, 1);
  }
});

test('a turn whose end failed is held on, unless the host says that it is over', async () => {
  let kind = 'diskFull';
  const { keep, begin } = talking((method) => (method === 'turns.complete' && kind ? refusal(kind) : undefined), { idle: 20 });
  const first = await begin();
  await assert.rejects(first.complete('x'), { kind });
  await sleep(120);
  assert.equal(keep.status().state, 'connected');
  kind = null;
  await first.complete('x');
  await sleep(120);
  assert.equal(keep.status().state, 'idle');
  for (kind of ['conflict', 'notFound']) {
    const turn = await begin();
    await assert.rejects(turn.complete('x'), { kind });
    await sleep(120);
    assert.equal(keep.status().state, 'idle', kind);
  }
});

test('a port that is lost during a turn is opened again though no call waits, by the same client', async () => {
  const { browser, begin, sent } = talking();
  const turn = await begin();
  browser.kill();
  await sleep(200);
  assert.equal(browser.opened, 2);
  const clients = sent('host.hello').map(({ params }) => params.client);
  assert.equal(clients.length, 2);
  assert.equal(clients[0], clients[1]);
  await turn.complete('x');
  browser.kill();
  await sleep(200);
  assert.equal(browser.opened, 2, 'not after its end');
});

test('completing whose answer got lost is repeated as the same operation', async () => {
  let lost = true;
  const { browser, begin, sent } = talking((method) => {
    if (method !== 'turns.complete' || !lost) return undefined;
    lost = false;
    setTimeout(() => browser.kill());
    return null;
  });
  const turn = await begin();
  assert.deepEqual(await turn.complete('x'), RESULTS['turns.complete']);
  const [first, second] = sent('turns.complete');
  assert.equal(first.op, second.op);
});

test('a turn keeps the worker awake and its port open there too, and lets it sleep afterwards', async (context) => {
  const { begin } = talking(); // without a document this context counts as a worker
  let calls = 0;
  globalThis.chrome.runtime.getPlatformInfo = async () => void (calls += 1);
  context.mock.timers.enable({ apis: ['setInterval'] });
  const turn = await begin();
  assert.equal(calls, 1);
  context.mock.timers.tick(60_000);
  assert.equal(calls, 4);
  await turn.complete('x');
  context.mock.timers.tick(600_000);
  assert.equal(calls, 4);
});

test('a turn that is forgotten lets go after a while; as long as its text grows it does not', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  let ended = 0;
  const { renew, release } = stayAwake(MOST, () => (ended += 1));
  context.mock.timers.tick(MOST - 1);
  renew();
  context.mock.timers.tick(MOST - 1);
  assert.equal(ended, 0);
  context.mock.timers.tick(1);
  assert.equal(ended, 1);
  renew();
  release();
  context.mock.timers.tick(2 * MOST);
  assert.equal(ended, 1);
});
