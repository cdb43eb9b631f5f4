/** The stub in the place of `chrome`. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';
import { FakeEvent } from './fake_ports.mjs';

/** A browser with `sync`, `managed` and an event of all areas, of which it is noted who listens. */
function start() {
  const browser = fakeBrowser();
  const { storage } = globalThis.chrome;
  storage.sync = { onChanged: new FakeEvent(), get: async () => ({ real: 1 }) };
  storage.managed = { onChanged: new FakeEvent() };
  storage.onChanged = new FakeEvent();
  storage.local.onChanged = new FakeEvent();
  globalThis.chrome.tabs = { query: () => 'tabs' };
  return { browser, storage, keep: connect() };
}

test('it has the areas of the stub among those of the browser, in the order of the browser', async () => {
  const { storage, keep } = start();
  const made = keep.asChrome();
  assert.equal(keep.asChrome(), made);
  assert.deepEqual(Object.keys(made.storage), ['sync', 'session', 'managed', 'local', 'onChanged', 'AccessLevel']);
  assert.equal(made.storage.local, keep.storage.local);
  assert.equal(made.storage.sync, storage.sync);
  assert.equal(made.runtime, chrome.runtime);
  assert.equal(made.tabs.query(), 'tabs');
  await keep.close();
});

test('the event of all areas listens to the browser only while somebody listens, and never to all of it', async () => {
  const { storage, keep } = start();
  const { onChanged } = keep.asChrome().storage;
  const events = [storage.sync.onChanged, storage.managed.onChanged, storage.onChanged, storage.local.onChanged];
  const listening = () => events.map(({ listeners }) => listeners.length);
  assert.deepEqual(listening(), [0, 0, 0, 0]);
  const heard = [];
  const listener = (changes, area) => heard.push([changes, area]);
  onChanged.addListener(listener);
  assert.deepEqual(listening(), [1, 1, 0, 0], 'in the first turn');
  storage.sync.onChanged.emit({ a: { newValue: 1 } });
  assert.deepEqual(heard, [[{ a: { newValue: 1 } }, 'sync']]);
  onChanged.removeListener(listener);
  assert.deepEqual(listening(), [0, 0, 0, 0]);
  assert.equal(keep.storage.onChanged.hasListeners(), false);
  await keep.close();
});

test('the stub goes on using the real areas where a script put it in their place', async () => {
  for (const place of ['chrome', 'storage']) {
    const { browser, keep } = start();
    const made = keep.asChrome();
    if (place === 'chrome') globalThis.chrome = made;
    else chrome.storage = made.storage;
    await chrome.storage.local.set({ a: 1 });
    const second = connect();
    assert.deepEqual(await second.storage.local.get('a'), { a: 1 });
    assert.deepEqual(Object.keys(browser.real), ['sidekeep:profile']);
    assert.equal(connect().asChrome().storage.sync, made.storage.sync);
    assert.deepEqual(await chrome.storage.sync.get(), { real: 1 });
    await Promise.all([keep.close(), second.close()]);
    browser.assertSound();
  }
});
