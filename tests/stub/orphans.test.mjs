/** A context whose extension was reloaded: it says so once and does nothing any more. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const ORPHANED = { name: 'SidekeepError', kind: 'orphaned', code: -32011, next: /Reload/ };
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** The extension is reloaded: the browser takes the id away and ends the ports. */
function orphan(browser, text = '') {
  delete chrome.runtime.id;
  if (text) {
    chrome.runtime.connectNative = () => {
      browser.opened += 1;
      throw new Error(text);
    };
  }
  browser.kill('');
}

test('each pending call rejects once as orphaned, reads and changes, and no port is opened', async () => {
  const browser = fakeBrowser({ script: () => ({ answer: ({ method }) => (method === 'host.hello' ? undefined : null) }) });
  const keep = connect();
  const settled = [];
  const calls = [keep.storage.local.get('a'), keep.storage.local.set({ a: 1 }), keep.storage.session.getKeys(), keep.call('host.ping')];
  for (const call of calls) call.then(() => settled.push('value'), (error) => settled.push(error.kind));
  await pause(10);
  orphan(browser);
  for (const call of calls) await assert.rejects(call, ORPHANED);
  assert.deepEqual(settled, ['orphaned', 'orphaned', 'orphaned', 'orphaned']);
  const { opened } = browser;
  for (let left = 20; left > 0; left -= 1) await assert.rejects(keep.storage.local.get('a'), ORPHANED);
  await assert.rejects(keep.retry(), ORPHANED);
  assert.equal(browser.opened, opened);
  assert.equal(keep.status().state, 'closed');
  assert.equal(keep.status().kind, 'orphaned');
  await keep.close();
  assert.equal(keep.status().kind, 'orphaned');
});

test('a listener of an orphan opens nothing any more', async () => {
  const browser = fakeBrowser();
  const keep = connect();
  keep.storage.local.onChanged.addListener(() => {});
  await keep.storage.local.getKeys();
  orphan(browser);
  const { opened } = browser;
  keep.storage.session.onChanged.addListener(() => {});
  await pause(700); // longer than the first waits
  assert.equal(browser.opened, opened);
  await keep.close();
});

test('an orphan that had no port is told at its next call', async () => {
  const browser = fakeBrowser();
  const keep = connect({ idle: 1 });
  await keep.storage.local.getKeys();
  await pause(20);
  assert.equal(keep.status().state, 'idle');
  delete chrome.runtime.id;
  await assert.rejects(keep.storage.local.get('a'), ORPHANED);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('an orphan whose port the browser does not end is told when its time is up, or by its next call', async () => {
  for (const next of [false, true]) {
    const browser = fakeBrowser({ script: () => ({ answer: ({ method }) => (method === 'host.hello' ? undefined : null) }) });
    const keep = connect({ timeout: next ? 10_000 : 100 });
    const calls = [keep.storage.local.get('a'), keep.storage.local.set({ a: 1 })];
    await pause(20);
    delete chrome.runtime.id;
    if (next) await assert.rejects(keep.storage.session.get('b'), ORPHANED);
    for (const call of calls) await assert.rejects(call, ORPHANED);
    assert.equal(browser.opened, 1);
    await keep.close();
  }
});

test('what the browser throws at an orphan is recognised', async () => {
  const browser = fakeBrowser({ script: () => ({ throws: 'Extension context invalidated.' }) });
  const keep = connect();
  await assert.rejects(keep.storage.local.get('a'), ORPHANED);
  assert.equal(browser.opened, 1);
  await keep.close();
});

test('a callback of an orphan has lastError', async () => {
  const browser = fakeBrowser();
  const keep = connect();
  await keep.storage.local.getKeys();
  orphan(browser);
  const message = await new Promise((done) => keep.storage.local.get('a', () => done(chrome.runtime.lastError?.message)));
  assert.match(message, /reloaded/);
  await keep.close();
});
