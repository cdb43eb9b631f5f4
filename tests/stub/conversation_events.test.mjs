/** Events of conversations in the stub: what is asked of the host, from where, and what is told. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { PLACE_KEY } from '../../extension_stub/sidekeep/place.js';
import { browserWithConversation } from './fake_conversations.mjs';

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
/** Long enough for all that is on its way to arrive. */
const settle = () => sleep(60);

function start({ settings, ...options } = {}) {
  const { browser, conversation } = browserWithConversation(options);
  const keep = connect(settings);
  const heard = [];
  const hear = (link = keep) => {
    link.history.onChanged.addListener(({ what, ids }) => heard.push(`history ${what} ${ids}`));
    link.sessions.onChanged.addListener(({ what, ids }) => heard.push(`sessions ${what} ${ids}`));
  };
  return { browser, conversation, keep, heard, hear };
}
const append = (id) => ['history.changed', { what: 'append', ids: [id] }];
const save = (id) => ['sessions.changed', { what: 'save', ids: [id] }];
const methods = (browser) => browser.requests().map(({ method }) => method);

test('where nobody listens nothing is watched', async () => {
  const { browser, keep } = start();
  keep.storage.local.onChanged.hasListeners();
  await keep.history.append('a');
  keep.history.onChanged.removeListener(() => {});
  await settle();
  assert.ok(!methods(browser).includes('history.watch'));
  await keep.close();
});

test('a listener gets what changed, frozen, before the promise of the call that changed it', async () => {
  const { browser, keep } = start();
  const heard = [];
  keep.history.onChanged.addListener((change) => heard.push(change));
  await keep.history.append('a').then(() => heard.push('settled'));
  assert.deepEqual(heard, [{ what: 'append', ids: ['e1'], revision: 1, conversation: 'c1' }, 'settled']);
  assert.ok(Object.isFrozen(heard[0]) && Object.isFrozen(heard[0].ids));
  assert.deepEqual(methods(browser), ['host.hello', 'history.watch', 'history.append']);
  assert.ok(!('op' in browser.requests()[1]));
  await keep.close();
  browser.assertSound();
});

test('the event has the shape of the browser’s', async () => {
  const { keep } = start();
  const { onChanged } = keep.sessions;
  const listener = () => {};
  assert.equal(onChanged.hasListeners(), false);
  onChanged.addListener(listener);
  onChanged.addListener(listener);
  assert.deepEqual([onChanged.hasListener(listener), onChanged.hasListeners()], [true, true]);
  onChanged.removeListener(listener);
  assert.deepEqual([onChanged.hasListener(listener), onChanged.hasListeners()], [false, false]);
  await keep.close();
});

test('listeners of both events share one watch, and each hears its own', async () => {
  const { conversation, keep, heard, hear } = start();
  hear();
  await settle();
  conversation.change(append('e9'), save('s1'));
  conversation.change(['sessions.changed', { what: 'delete', ids: ['s1', 's2'] }]);
  await settle();
  assert.deepEqual(conversation.watches, [{}]);
  assert.deepEqual(heard, ['history append e9', 'sessions save s1', 'sessions delete s1,s2']);
  await keep.close();
});

test('a lost port is watched again from what was heard; nothing is lost and nothing doubled', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  hear();
  await keep.history.append('first');
  const expected = ['history append e1'];
  for (let round = 1; round <= 6; round += 1) {
    browser.kill();
    conversation.change(append(`missed${round}`), save(`s${round}`)); // while no port is open
    await sleep(90);
    conversation.change(append(`live${round}`));
    await settle();
    expected.push(`history append missed${round}`, `sessions save s${round}`, `history append live${round}`);
  }
  assert.deepEqual(heard, expected);
  await keep.close();
  browser.assertSound();
});

test('a port that ends between two notifications of one change loses none and doubles none', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  hear();
  await keep.history.append('first');
  const host = browser.hosts.at(-1);
  const emit = host.emit;
  host.emit = (message) => {
    if (message.method === 'sessions.changed') return; // the port ends before it
    emit(message);
  };
  conversation.change(append('e9'), save('s1'));
  await sleep(5);
  browser.kill();
  await sleep(120);
  conversation.change(append('e10'));
  await settle();
  assert.deepEqual(heard, ['history append e1', 'history append e9', 'sessions save s1', 'history append e10']);
  assert.deepEqual(conversation.watches.at(-1), { since: 1, store: 'first' });
  await keep.close();
});

test('a first watch that may have been lost with an event is told as a gap to both', async () => {
  const { keep, heard, hear } = start({ script: (number) => (number === 0 ? { diesAt: () => true } : {}) });
  hear();
  await keep.history.list();
  assert.deepEqual(heard, ['history gap ', 'sessions gap ']);
  await keep.close();
});

test('what the journal has no longer is a gap, told once to both, and is listened to from then on', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  const gaps = [];
  keep.history.onChanged.addListener((change) => change.what === 'gap' && gaps.push(change));
  hear();
  await keep.history.append('first');
  browser.kill();
  conversation.change(append('e8'));
  conversation.change(append('e9'));
  conversation.oldest = 3;
  await sleep(120);
  conversation.change(append('e10'));
  await settle();
  assert.deepEqual(heard, ['history append e1', 'history gap ', 'sessions gap ', 'history append e10']);
  assert.deepEqual(gaps, [{ what: 'gap', ids: [], revision: 3, conversation: 'c1' }]);
  await keep.close();
});

test('another file is a gap, told once; its numbers are another count', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  hear();
  for (const content of ['a', 'b', 'c']) await keep.history.append(content);
  heard.length = 0;
  browser.kill();
  conversation.epoch = 'restored';
  conversation.revision = 1;
  conversation.journal = [];
  await sleep(120);
  conversation.change(append('e7'));
  await settle();
  assert.deepEqual(heard, ['history gap ', 'sessions gap ', 'history append e7']);
  browser.kill();
  await sleep(120);
  assert.deepEqual(conversation.watches.at(-1), { since: 1, store: 'restored' });
  assert.equal(heard.length, 3);
  await keep.close();
});

test('a new listener hears what happens from then on, also after one that went', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  const first = () => {};
  keep.history.onChanged.addListener(first);
  await settle();
  keep.history.onChanged.removeListener(first);
  conversation.change(append('unheard'));
  await settle();
  hear(); // on the same port, which still tells
  conversation.change(append('e2'));
  await settle();
  browser.kill();
  conversation.change(append('e3'));
  await sleep(120);
  assert.deepEqual(heard, ['history append e2', 'history append e3']);
  await keep.close();
});

test('a listener that comes after a port without listeners hears nothing of the time before', async () => {
  const { browser, conversation, keep, heard, hear } = start();
  const first = () => {};
  keep.history.onChanged.addListener(first);
  await settle();
  keep.history.onChanged.removeListener(first);
  browser.kill();
  conversation.change(append('unheard'));
  await sleep(80);
  hear();
  await settle();
  conversation.change(append('e2'));
  await settle();
  assert.deepEqual(heard, ['history append e2']);
  assert.deepEqual(conversation.watches, [{}, {}]);
  await keep.close();
});

test('a background hears in its next life what it missed, from the place it kept', async () => {
  const { conversation, keep, heard, hear } = start();
  const session = {};
  globalThis.chrome.storage.session = {
    get: async (key) => (key in session ? { [key]: session[key] } : {}),
    set: async (items) => void Object.assign(session, structuredClone(items)),
  };
  hear();
  await keep.history.append('a');
  await settle();
  assert.deepEqual(session[`${PLACE_KEY}:history`], { history: { seq: 1, told: 1, store: 'first' } });
  await keep.close();
  conversation.change(append('e2'), save('s'));
  const next = connect();
  hear(next);
  await sleep(120);
  assert.deepEqual(heard, ['history append e1', 'history append e2', 'sessions save s']);
  await next.close();
});

test('a page that listens to conversations keeps its port and opens a lost one again', async () => {
  globalThis.document = {};
  try {
    const { browser, conversation, keep, heard, hear } = start({ settings: { idle: 10 } });
    hear();
    await sleep(60);
    assert.equal(keep.status().state, 'connected');
    browser.kill();
    conversation.change(append('e1'));
    await sleep(200);
    assert.equal(keep.status().state, 'connected');
    assert.deepEqual(heard, ['history append e1']);
    await keep.close();
  } finally {
    delete globalThis.document;
  }
});

test('a host that knows no conversations costs the events, not the calls, and is asked once', async () => {
  const { browser, keep, hear } = start({
    answer: ({ method }) =>
      method === 'history.watch' ? { error: { code: -32601, message: 'no', data: { kind: 'methodNotFound' } } } : undefined,
  });
  hear();
  await keep.history.append('a');
  await settle();
  assert.equal(methods(browser).filter((method) => method === 'history.watch').length, 1);
  await keep.close();
});
