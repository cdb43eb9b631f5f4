/** What the stub leaves alone: importing and connecting touch nothing, and nothing keeps a worker awake. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

const FOLDER = new URL('../../extension_stub/sidekeep/', import.meta.url);

/** An object that records every way that is gone into it. */
function recorder(path, seen) {
  return new Proxy(() => {}, {
    get: (_target, name) => {
      if (typeof name === 'symbol') return undefined;
      seen.push(`${path}.${name}`);
      return recorder(`${path}.${name}`, seen);
    },
    apply: () => {
      seen.push(`${path}()`);
      return undefined;
    },
  });
}

test('importing the stub looks at nothing of the browser, connecting adds no listener and opens no port', async () => {
  const seen = [];
  const timers = [];
  const real = { setTimeout, setInterval, queueMicrotask, addEventListener: globalThis.addEventListener };
  for (const name of Object.keys(real)) {
    globalThis[name] = (...args) => {
      timers.push(name);
      return real[name]?.(...args);
    };
  }
  globalThis.chrome = recorder('chrome', seen);
  try {
    const { connect } = await import(`${FOLDER}index.js`);
    assert.deepEqual(seen, []);
    const keep = connect({ siteCache: { byUrl: true } });
    assert.deepEqual([seen.filter((path) => path.endsWith('()')), timers], [[], []]);
    keep.status();
    keep.storage.local.onChanged.hasListeners();
    assert.deepEqual([seen.filter((path) => path.endsWith('()')), timers], [[], []]);
    connect({ wake: true });
    assert.deepEqual(
      seen.filter((path) => path.endsWith('()')),
      ['chrome.storage.session.onChanged.addListener()'],
      'only what was asked for, in the first turn',
    );
  } finally {
    Object.assign(globalThis, real);
    delete globalThis.chrome;
  }
});

test('no module of the stub awaits at its top level, where listeners of the extension would come too late', () => {
  for (const name of readdirSync(FOLDER).filter((one) => one.endsWith('.js'))) {
    const source = readFileSync(new URL(name, FOLDER), 'utf8');
    assert.doesNotMatch(source, /^(?:const .*= )?await /m, name);
  }
});

test('the stub makes no alarm', () => {
  for (const name of readdirSync(FOLDER)) {
    assert.doesNotMatch(readFileSync(new URL(name, FOLDER), 'utf8'), /\balarms\./, name);
  }
});

test('work that was asked to keep the worker awake does so until it ends, however it ends', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  let calls = 0;
  globalThis.chrome = { runtime: { id: 'x', getPlatformInfo: async () => void (calls += 1) } };
  const { connect } = await import(`${FOLDER}index.js`);
  const keep = connect();
  const after = (milliseconds) => {
    const before = calls;
    context.mock.timers.tick(milliseconds);
    return calls - before;
  };
  assert.equal(after(60_000), 0);
  let end;
  const work = keep.duringTurn(() => new Promise((done) => (end = done)));
  let fail;
  const other = keep.duringTurn(new Promise((_done, failed) => (fail = failed)));
  assert.equal(after(60_000), 3);
  fail(new Error('aborted'));
  await assert.rejects(other, /aborted/);
  assert.equal(after(60_000), 3, 'the other one goes on');
  end('value');
  assert.equal(await work, 'value');
  assert.equal(after(60_000), 0);
  keep.duringTurn(new Promise(() => {}), { most: 50_000 });
  assert.equal(after(50_000), 2);
  assert.equal(after(60_000), 0, 'work that never ends does not keep the worker for ever');
  await assert.rejects(keep.duringTurn(async () => {}, { most: 0 }), TypeError);
  delete globalThis.chrome;
});
