/** The token of the profile, the token of the context, and the public surface. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import { CODES } from '../../extension_stub/sidekeep/errors.js';
import { newToken, PROFILE_KEY, profileToken } from '../../extension_stub/sidekeep/identity.js';
import * as stub from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

/** `navigator.locks` of one browser: requests of one name run one after the other. */
function fakeLocks() {
  let tail = Promise.resolve();
  return {
    request: (_name, run) => {
      const result = tail.then(run);
      tail = result.catch(() => {});
      return result;
    },
  };
}

const withLocks = async (locks, run) => {
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  try {
    return await run();
  } finally {
    delete globalThis.navigator;
  }
};

test('tokens are words the protocol allows, and differ', () => {
  const tokens = Array.from({ length: 100 }, newToken);
  for (const token of tokens) assert.match(token, /^[A-Za-z0-9_-]{22}$/);
  assert.equal(new Set(tokens).size, 100);
});

test('contexts that start together agree on one profile token', async () => {
  const browser = fakeBrowser();
  await withLocks(fakeLocks(), async () => {
    const tokens = await Promise.all(Array.from({ length: 10 }, profileToken));
    assert.equal(new Set(tokens).size, 1);
    assert.equal(browser.real[PROFILE_KEY], tokens[0]);
  });
});

test('a token that is there is kept, one that is damaged is replaced', async () => {
  const browser = fakeBrowser();
  browser.real[PROFILE_KEY] = 'mine';
  assert.equal(await profileToken(), 'mine');
  browser.real[PROFILE_KEY] = '../elsewhere';
  assert.match(await profileToken(), /^[A-Za-z0-9_-]{22}$/);
});

test('a real storage that keeps nothing is an error, not a token for one run', async () => {
  fakeBrowser();
  globalThis.chrome.storage.local.set = async () => {};
  await assert.rejects(profileToken(), { kind: 'unavailable' });
});

test('two links of one context share the profile and have clients of their own', async () => {
  const browser = fakeBrowser();
  const links = [stub.connect(), stub.connect()];
  for (const link of links) await link.storage.local.getKeys();
  const hellos = browser.requests().filter(({ method }) => method === 'host.hello');
  assert.equal(new Set(hellos.map(({ params }) => params.profile)).size, 1);
  assert.equal(new Set(hellos.map(({ params }) => params.client)).size, 2);
  await Promise.all(links.map((link) => link.close()));
});

test('the module exports connect and the error class', () => {
  assert.deepEqual(Object.keys(stub).sort(), ['SidekeepError', 'connect']);
  const error = new stub.SidekeepError('busy', 'Later.', { next: 'Wait.' });
  assert.ok(error instanceof Error);
  assert.deepEqual([error.code, error.kind, error.next], [-32004, 'busy', 'Wait.']);
});

test('options of the wrong type throw', () => {
  for (const options of [{ host: 'Bad Host' }, { host: 5 }, { timeout: 0 }, { timeout: '1' }, { timeout: NaN }, { idle: -1 }, { window: 0 }, { window: 65 }]) {
    assert.throws(() => stub.connect(options), TypeError, JSON.stringify(options));
  }
  assert.doesNotThrow(() => stub.connect({ idle: Infinity, timeout: 1, window: 64, host: 'a.b_c' }));
});

test('keep.call checks its arguments and converts as set does', async () => {
  const browser = fakeBrowser();
  const keep = stub.connect();
  assert.throws(() => keep.call(5), TypeError);
  assert.throws(() => keep.call('host.ping', []), TypeError);
  await assert.rejects(keep.call('host.ping', { a: new Uint8Array(1) }), { kind: 'invalidParams' });
  await keep.call('host.ping', { date: new Date(), skipped: undefined });
  assert.deepEqual(browser.requests().at(-1).params, { date: {} });
  await assert.rejects(keep.call('no.such'), { kind: 'methodNotFound', code: -32601 });
  await keep.close();
});

test('the codes are those of the protocol page', async () => {
  const page = await readFile(new URL('../../docs/protocol.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| (-32\d+) \| `(\w+)` \|/gm)].map(([, code, kind]) => [kind, Number(code)]);
  assert.ok(rows.length >= 15);
  assert.deepEqual(Object.fromEntries(rows), CODES);
});
