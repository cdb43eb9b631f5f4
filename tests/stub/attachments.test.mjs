/** Attachments in the stub: what is sent, and the loop that has a model condense one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect, SidekeepError } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const PAGE = { url: 'https://x/', title: 'T', mode: 'full', text: 'body' };

/** A link whose host plans these chunks (null: nothing to do), and what it was asked to write. */
function planning(chunks) {
  const browser = fakeBrowser({
    script: () => ({
      answer: ({ method }) => {
        const condense = chunks && { chunks, chars: chunks.join('').length };
        if (method === 'attachments.plan') return { result: { condense } };
        if (method === 'attachments.condense') return { result: { entries: 2 } };
        return method.startsWith('attachments.') ? { result: {} } : undefined;
      },
    }),
  });
  const keep = connect();
  const written = () =>
    browser.requests().filter(({ method }) => method === 'attachments.condense').map(({ params }) => params);
  return { browser, keep, written };
}

/** A model whose calls are answered by the test. */
class Model {
  calls = [];
  most = 0;
  open = 0;

  summarize = (text, info) => {
    this.open += 1;
    this.most = Math.max(this.most, this.open);
    return new Promise((resolve, reject) => {
      const settle = (how) => (value) => {
        this.open -= 1;
        how(value);
      };
      this.calls.push({ text, info, answer: settle(resolve), fail: settle(reject) });
    });
  };

  /** Waits until so many calls were made, and sees that no more come. */
  async made(count) {
    for (let round = 0; this.calls.length < count && round < 200; round += 1) await sleep(5);
    await sleep(20);
    assert.equal(this.calls.length, count);
  }
}

test('every call is sent as the protocol names it', async () => {
  const { browser, keep } = planning(null);
  const { attachments } = keep;
  const whole = { ...PAGE, format: 'md', block: 'Site: x\n', fallback: true, changedSince: 5, images: ['data:image/png;base64,AA'], videoSrc: { platform: 'p', tabId: 3 }, conversation: 'c' };
  const calls = [
    [() => attachments.add(PAGE), 'attachments.add', PAGE],
    [() => attachments.add(whole), 'attachments.add', whole],
    [() => attachments.add({ ...PAGE, changedSince: 'today' }), 'attachments.add', { ...PAGE, changedSince: 'today' }],
    [() => attachments.undo('a-1'), 'attachments.undo', { attachId: 'a-1' }],
    [() => attachments.undo({ last: true }), 'attachments.undo', { last: true }],
    [() => attachments.changed(PAGE), 'attachments.changed', { url: 'https://x/', mode: 'full', text: 'body' }],
    [() => attachments.condense('a-1', { summarize: () => '' }), 'attachments.plan', { attachId: 'a-1' }],
  ];
  for (const [call, method, params] of calls) {
    await call();
    const request = browser.requests().at(-1);
    assert.deepEqual([request.method, request.params], [method, params]);
    assert.equal('op' in request, method !== 'attachments.plan', method);
  }
  await keep.close();
  browser.assertSound();
});

test('an argument of the wrong type throws at once, and nothing is sent', async () => {
  const { browser, keep } = planning(['a']);
  const { attachments } = keep;
  const summarize = () => 's';
  const wrong = [
    () => attachments.add(),
    () => attachments.add({ ...PAGE, text: undefined }),
    () => attachments.add({ ...PAGE, title: null }),
    () => attachments.add({ ...PAGE, images: 'data:' }),
    () => attachments.add({ ...PAGE, images: [1] }),
    () => attachments.add({ ...PAGE, changedSince: NaN }),
    () => attachments.add({ ...PAGE, videoSrc: 'https://v/' }),
    () => attachments.add({ ...PAGE, fallback: 'yes' }),
    () => attachments.undo(),
    () => attachments.undo(null),
    () => attachments.undo({ last: false }),
    () => attachments.undo({ attachId: 'a' }),
    () => attachments.changed({ url: 'x', mode: 'full' }),
    () => attachments.condense('a'),
    () => attachments.condense('a', {}),
    () => attachments.condense(1, { summarize }),
    () => attachments.condense('a', { summarize, merge: 'x' }),
    () => attachments.condense('a', { summarize, signal: {} }),
    () => attachments.condense('a', { summarize, timeout: 0 }),
    () => attachments.condense('a', { summarize, parallel: 0 }),
  ];
  for (const call of wrong) assert.throws(call, TypeError, String(call));
  assert.equal(browser.opened, 0);
  await keep.close();
});

// --- condensing ------------------------------------------------------------------------------------

test('one chunk is exactly one call, of the chunk as it is', async () => {
  const { keep, written } = planning(['# One\n\ntext']);
  const calls = [];
  const summarize = (text, { signal, ...info }) => {
    assert.equal(signal.aborted, false);
    calls.push([text, info]);
    return 'short';
  };
  assert.deepEqual(await keep.attachments.condense('a-1', { summarize }), { entries: 2 });
  assert.deepEqual(calls, [['# One\n\ntext', { index: 0, count: 1, merge: false }]]);
  assert.deepEqual(written(), [{ attachId: 'a-1', summary: 'short' }]);
  await keep.close();
});

test('nothing to condense is no call of the model and no write', async () => {
  const { keep, written } = planning(null);
  const summarize = () => assert.fail('called');
  assert.deepEqual(await keep.attachments.condense('a-1', { summarize }), { entries: 0 });
  assert.deepEqual(written(), []);
  await keep.close();
});

test('several chunks are one call each, some at a time, and one that merges them in their order', async () => {
  const { keep, written } = planning(['a', 'b', 'c', 'd']);
  const model = new Model();
  const done = keep.attachments.condense('a-1', { summarize: model.summarize, parallel: 2 });
  await model.made(2);
  model.calls[1].answer('B');
  await model.made(3);
  model.calls[2].answer('C');
  await model.made(4);
  model.calls[3].answer('D');
  await sleep(20);
  assert.equal(model.calls.length, 4, 'the merge waits for all');
  model.calls[0].answer('A');
  await model.made(5);
  assert.deepEqual(
    model.calls.map(({ text, info: { index, count, merge } }) => [text, index, count, merge]),
    [
      ['[Segment 1/4]\na', 0, 4, false],
      ['[Segment 2/4]\nb', 1, 4, false],
      ['[Segment 3/4]\nc', 2, 4, false],
      ['[Segment 4/4]\nd', 3, 4, false],
      ['[Segment 1]\nA\n\n[Segment 2]\nB\n\n[Segment 3]\nC\n\n[Segment 4]\nD', 0, 4, true],
    ],
  );
  assert.deepEqual(written(), []);
  model.calls[4].answer('all');
  assert.deepEqual(await done, { entries: 2 });
  assert.equal(model.most, 2);
  assert.deepEqual(written(), [{ attachId: 'a-1', summary: 'all' }]);
  await keep.close();
});

test('a function of its own may merge', async () => {
  const { keep, written } = planning(['a', 'b']);
  const merge = (text, info) => `merged ${info.merge} of ${info.count}: ${text.length}`;
  await keep.attachments.condense('a-1', { summarize: (text) => text.at(-1), merge });
  assert.deepEqual(written(), [{ attachId: 'a-1', summary: 'merged true of 2: 28' }]);
  await keep.close();
});

test('a call that fails, is blank or no text, ends all: no write, no further call, the others are told', async () => {
  const refused = new Error('429');
  const failures = [
    [(call) => call.fail(refused), (error) => error === refused],
    [(call) => call.answer(' \n'), (error) => error instanceof SidekeepError && error.kind === 'unavailable'],
    [(call) => call.answer(null), (error) => error instanceof TypeError],
  ];
  for (const [fail, expected] of failures) {
    const { keep, written } = planning(['a', 'b', 'c']);
    const model = new Model();
    const done = keep.attachments.condense('a-1', { summarize: model.summarize, parallel: 2 });
    await model.made(2);
    fail(model.calls[1]);
    await assert.rejects(done, expected);
    assert.equal(model.calls[0].info.signal.aborted, true);
    model.calls[0].answer('late');
    await model.made(2);
    assert.deepEqual(written(), []);
    await keep.close();
  }
});

test('a merge that fails writes nothing', async () => {
  const { keep, written } = planning(['a', 'b']);
  const summarize = (_text, { merge }) => (merge ? '' : 'part');
  await assert.rejects(keep.attachments.condense('a-1', { summarize }), { kind: 'unavailable' });
  const throwing = (_text, { merge }) => {
    if (merge) throw new RangeError('at once');
    return 'part';
  };
  await assert.rejects(keep.attachments.condense('a-1', { summarize: throwing }), RangeError);
  assert.deepEqual(written(), []);
  await keep.close();
});

test('a call that takes too long ends all, and is told', async () => {
  const { keep, written } = planning(['a', 'b']);
  const model = new Model();
  const done = keep.attachments.condense('a-1', { summarize: model.summarize, timeout: 60 });
  await assert.rejects(done, { kind: 'unavailable', message: 'No summary came within 0.06 s.' });
  assert.ok(model.calls.every(({ info }) => info.signal.aborted));
  assert.deepEqual(written(), []);
  await keep.close();
});

test('each call has the whole time', async () => {
  const { keep, written } = planning([...'abcdefghijklmno']);
  const summarize = async () => {
    await sleep(100);
    return 's';
  };
  await keep.attachments.condense('a-1', { summarize, timeout: 1200, parallel: 1 });
  assert.equal(written().length, 1);
  await keep.close();
});

test('it can be ended at any time: before, between, and just before the write', async () => {
  const why = new Error('closed');
  {
    const { browser, keep } = planning(['a']);
    const signal = AbortSignal.abort(why);
    await assert.rejects(keep.attachments.condense('a-1', { summarize: () => 's', signal }), why);
    assert.equal(browser.opened, 0);
    await keep.close();
  }
  for (const answered of [0, 1, 2]) {
    const { keep, written } = planning(['a', 'b']);
    const model = new Model();
    const stop = new AbortController();
    const done = keep.attachments.condense('a-1', { summarize: model.summarize, signal: stop.signal });
    await model.made(2);
    for (const call of model.calls.slice(0, answered)) call.answer('part');
    await model.made(answered === 2 ? 3 : 2);
    stop.abort(why);
    await assert.rejects(done, why);
    assert.ok(model.calls.slice(answered).every(({ info }) => info.signal.aborted));
    assert.deepEqual(written(), []);
    await keep.close();
  }
  {
    const { keep, written } = planning(['a']);
    const stop = new AbortController();
    const summarize = () => {
      queueMicrotask(() => stop.abort(why));
      return 's';
    };
    await assert.rejects(keep.attachments.condense('a-1', { summarize, signal: stop.signal }), why);
    assert.deepEqual(written(), []);
    await keep.close();
  }
});
