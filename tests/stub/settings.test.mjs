/** Settings in the stub, with the worked example: what getAll gives, and what it asks the host for. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { BRIDGE_LABEL, DEFAULTS, OPTION_KEYS, SETTINGS } from '../../extension_stub/example/settings.js';
import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const KEYS = (
  'providers activeProvider activeModel pingStates contextMode maxTextChars autoSummarizeAttachments ' +
  'summarizeThresholdChars systemPrompt asr replyLanguage llmsTxtEnabled deepExtractEnabled fontSize ' +
  'sendShortcut thoughtAutoCollapse'
).split(' ');

/** Runs with the example's settings over what is stored. */
async function withStored(stored, run, settings = SETTINGS) {
  const browser = fakeBrowser();
  for (const [key, value] of Object.entries(stored)) browser.disk.items.set(key, value);
  const keep = connect({ settings });
  await run(keep.settings, browser, keep);
  await keep.close();
  browser.assertSound();
}

/** What getAll gives over what is stored. */
async function allOver(stored, settings) {
  let all;
  await withStored(stored, async (face) => (all = await face.getAll()), settings);
  return all;
}
const sent = (browser, method) =>
  browser.requests().filter((request) => request.method === method).map(({ params }) => params);

test('an empty store gives the defaults', async () => {
  const all = await allOver({});
  assert.deepEqual(all, DEFAULTS);
  assert.equal(all.activeProvider, 'hermes');
  assert.deepEqual(all.history, []);
  assert.equal(all.contextMode, 'auto');
  const types = Object.values(all.providers).map(({ type }) => type);
  assert.deepEqual(types, ['agent', 'agent', 'agent', 'agent']);
});

test('a stored provider is merged over its default fields', async () => {
  const { providers } = await allOver({ providers: { hermes: { baseUrl: 'http://h' } } });
  assert.deepEqual(providers.hermes, { ...DEFAULTS.providers.hermes, baseUrl: 'http://h' });
  assert.equal(providers.hermes.type, 'agent');
  assert.equal(providers.hermes.maxTokens, 0);
  assert.deepEqual(providers.bridge, DEFAULTS.providers.bridge);
});

test('a stored provider that the defaults do not know stays as it is', async () => {
  const mine = { type: 'llm', alias: 'Mine', models: ['a'] };
  const { providers } = await allOver({ providers: { mine } });
  assert.deepEqual(providers.mine, mine);
  assert.equal(Object.keys(providers).length, 5);
});

test('deleted models do not come back', async () => {
  const { providers } = await allOver({ providers: { hermes: {} } });
  assert.ok(!Object.values(providers).some(({ type }) => type === 'llm'));
});

test('on the wire getAll is one read of exactly the light keys, whatever else is stored', async () => {
  const stored = { history: [{ role: 'user' }], savedSessions: [{ id: 's' }], session_s: [1], activeSessionId: 's', fontSize: 18 };
  await withStored(stored, async (face, browser) => {
    const all = await face.getAll();
    const gets = browser.requests().filter(({ method }) => method !== 'host.hello');
    assert.deepEqual(gets.map(({ method, params }) => [method, params]), [['storage.get', { area: 'local', keys: KEYS }]]);
    assert.deepEqual(all.history, []);
    assert.ok(!('savedSessions' in all || 'session_s' in all || 'activeSessionId' in all));
  });
});

test('an option key is absent unless it is stored', async () => {
  assert.equal((await allOver({ fontSize: 18 })).fontSize, 18);
  const all = await allOver({});
  for (const key of OPTION_KEYS) assert.ok(!(key in all), key);
});

test('a stored null takes the place of a default, at any level', async () => {
  const all = await allOver({ systemPrompt: null, asr: { hotwords: null }, providers: null });
  assert.equal(all.systemPrompt, null);
  assert.equal(all.asr.hotwords, null);
  assert.equal(all.asr.language, 'zh');
  assert.equal(all.providers, null);
  assert.equal((await allOver({ asr: null })).asr, null);
});

test('every map is merged with its default per field, arrays are not', async () => {
  const all = await allOver({ asr: { enabled: true, language: 'en' } });
  assert.deepEqual(all.asr, { ...DEFAULTS.asr, enabled: true, language: 'en' });
  const settings = { defaults: { list: [1, 2], deep: { a: { b: 1, c: [1] } } } };
  assert.deepEqual(await allOver({ list: [3], deep: { a: { c: [] } } }, settings), { list: [3], deep: { a: { b: 1, c: [] } } });
});

test('a vendor that is gone falls back to the default connection when it is read, and only then', async () => {
  const asr = { provider: 'gone', apiKey: 'k', language: 'en', enabled: true };
  await withStored({ asr }, async (face, browser) => {
    const all = await face.getAll();
    assert.deepEqual(all.asr, { ...DEFAULTS.asr, language: 'en', enabled: true });
    assert.equal(all.asr.apiKey, '');
    assert.deepEqual(browser.disk.items.get('asr'), asr);
    assert.deepEqual(sent(browser, 'storage.set'), []);
  });
  const known = await allOver({ asr: { provider: 'ark', apiKey: 'k' } });
  assert.deepEqual([known.asr.provider, known.asr.apiKey], ['ark', 'k']);
});

test('a former default label of the bridge is read as the present one, any other label stays', async () => {
  for (const [alias, expected] of [['Agent Bridge', BRIDGE_LABEL], ['My Bridge', 'My Bridge']]) {
    const { providers } = await allOver({ providers: { bridge: { alias } } });
    assert.equal(providers.bridge.alias, expected);
  }
});

test('choosing a provider is one change of two keys; no model is an empty one', async () => {
  await withStored({}, async (face, browser) => {
    const model = async () => (await face.getAll()).activeModel;
    await face.setActiveProvider('p', 'm');
    assert.equal(await model(), 'm');
    await face.setActiveProvider('q');
    assert.equal(await model(), '');
    await face.setActiveProvider('q', null);
    assert.deepEqual(
      sent(browser, 'storage.set').map(({ items }) => items),
      [
        { activeProvider: 'p', activeModel: 'm' },
        { activeProvider: 'q', activeModel: '' },
        { activeProvider: 'q', activeModel: '' },
      ],
    );
    await face.setContextMode('none');
    assert.equal(browser.disk.items.get('contextMode'), 'none');
  });
});

test('one key gives its value, several give an object, an object gives defaults', async () => {
  await withStored({ k: 1, o: { a: 1 } }, async (face) => {
    assert.equal(await face.get('k'), 1);
    assert.equal(await face.get('missing'), undefined);
    assert.equal(await face.get('toString'), undefined);
    assert.deepEqual(await face.get(['k']), { k: 1 });
    assert.deepEqual(await face.get({ k: 0, o: { b: 2 }, missing: 3 }), { k: 1, o: { a: 1, b: 2 }, missing: 3 });
  });
});

test('a key and a value, or an object, are stored in one call', async () => {
  await withStored({}, async (face, browser) => {
    await face.set('k', 1);
    await face.set({ k: 1, j: 2 });
    await face.set('__proto__', 3);
    const items = sent(browser, 'storage.set').map((params) => JSON.stringify(params.items));
    assert.deepEqual(items, ['{"k":1}', '{"j":2,"k":1}', '{"__proto__":3}']);
    await face.remove('k');
    await face.remove(['j']);
    assert.ok(!browser.disk.items.has('k') && !browser.disk.items.has('j'));
  });
});

test('what was given out is nobody else’s: neither the defaults nor the next answer change with it', async () => {
  const defaults = { list: [1], map: { a: {} } };
  await withStored(
    {},
    async (face) => {
      defaults.list.push('changed after connect');
      for (let round = 0; round < 2; round += 1) {
        const all = await face.getAll();
        assert.deepEqual(all, { list: [1], map: { a: {} } });
        all.list.push(2);
        all.map.a.x = 1;
      }
    },
    { defaults },
  );
});

test('the hook gets objects of its own, and what it returns is the answer', async () => {
  const seen = [];
  const settings = {
    defaults: { a: { b: 1 } },
    merge: (merged, stored, defaults) => {
      seen.push(structuredClone([merged, stored, defaults]));
      defaults.a.b = 'changed';
      merged.a.c = 'changed';
      return { merged, more: true };
    },
  };
  await withStored(
    { a: { x: 2 } },
    async (face) => {
      const expected = { merged: { a: { b: 1, c: 'changed', x: 2 } }, more: true };
      assert.deepEqual([await face.getAll(), await face.getAll()], [expected, expected]);
      assert.deepEqual(seen[1], [{ a: { b: 1, x: 2 } }, { a: { x: 2 } }, { a: { b: 1 } }]);
    },
    settings,
  );
});

test('conversations cannot be named as settings, and arguments of the wrong type throw at once', async () => {
  fakeBrowser();
  const bad = [
    null,
    {},
    { defaults: [] },
    { defaults: {}, options: 'a' },
    { defaults: {}, options: [1] },
    { defaults: {}, options: ['history'] },
    { defaults: {}, options: ['session_1'] },
    { defaults: {}, options: ['savedSessions'] },
    { defaults: { savedSessions: [] } },
    { defaults: { session_x: [] } },
    { defaults: {}, merge: 1 },
  ];
  for (const settings of bad) assert.throws(() => connect({ settings }), TypeError, JSON.stringify(settings));
  await withStored({}, async (face, browser) => {
    for (const keys of [null, undefined, 1, [1], [null]]) assert.throws(() => face.get(keys), TypeError);
    for (const items of [null, undefined, 1, []]) assert.throws(() => face.set(items), TypeError);
    assert.throws(() => face.set('k'), TypeError);
    assert.throws(() => face.remove(null), TypeError);
    assert.throws(() => face.setActiveProvider(), TypeError);
    assert.throws(() => face.setActiveProvider('p', 1), TypeError);
    assert.throws(() => face.setContextMode(null), TypeError);
    assert.deepEqual(browser.requests(), []);
  });
  const plain = connect();
  assert.throws(() => plain.settings.getAll(), /connect\({ settings/);
  await plain.close();
});

test('a failed read rejects; no defaults are given in place of settings that could not be read', async () => {
  fakeBrowser({ script: () => ({ missing: 'Specified native messaging host not found.' }) });
  const keep = connect({ settings: SETTINGS });
  await assert.rejects(keep.settings.getAll(), { kind: 'unavailable' });
  await keep.close();
});
