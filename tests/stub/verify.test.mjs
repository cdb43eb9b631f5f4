/** The check of the store in the stub: its report, its progress, and who hears of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as passed } from 'node:timers/promises';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const CHECKED = { items: 1, lists: 0, entries: 0, records: 1, blobs: 0, blobBytes: 0, journal: 1 };
const SOUND = { ok: true, checked: CHECKED, problems: [] };

const progress = (done, of, method = 'host.verify') => ({
  jsonrpc: '2.0',
  method: 'host.progress',
  params: { method, done, of },
});

/** A browser whose host begins a check and answers it when `end` is called. */
function checking(options) {
  const running = [];
  const browser = fakeBrowser({
    script: () => ({
      answer: (request, host) => {
        if (request.method !== 'host.verify') return undefined;
        running.push({ request, host });
        return null;
      },
    }),
  });
  const keep = connect(options);
  const begun = async (count = 1) => {
    while (running.length < count) await passed(1);
    return running[count - 1].host;
  };
  const end = (report) => {
    for (const { request, host } of running.splice(0)) host.emit({ jsonrpc: '2.0', id: request.id, result: report });
  };
  return { browser, keep, begun, end, running };
}

test('the report of the host is answered, and how many problems are left out', async () => {
  const { browser, keep, begun, end } = checking();
  const problem = { code: 'damaged', text: 'record 7: not what was written', record: 7 };
  const check = keep.verify();
  await begun();
  end({ ok: false, checked: CHECKED, problems: [problem] });
  assert.deepEqual(await check, { ok: false, checked: CHECKED, problems: [problem], more: 0 });
  assert.equal(browser.requests().find(({ method }) => method === 'host.verify').op, undefined, 'it changes nothing');
  await keep.close();
  browser.assertSound();
});

test('progress is heard while the check is open, of checks only', async () => {
  const { keep, begun, end } = checking();
  const heard = [];
  const check = keep.verify({ onProgress: (told) => heard.push(told) });
  const host = await begun();
  for (const word of [progress(0, 9), progress(3, 4, 'backup.create'), progress(9, 9)]) host.emit(word);
  end(SOUND);
  await check;
  host.emit(progress(1, 9));
  await passed(5);
  assert.deepEqual(heard, [
    { done: 0, of: 9 },
    { done: 9, of: 9 },
  ]);
  await keep.close();
});

test('a check that goes on is not given up, one of which nothing is heard is', async () => {
  const { keep, begun, end } = checking({ timeout: 200 });
  const check = keep.verify();
  const host = await begun();
  for (let done = 0; done < 10; done += 1) {
    host.emit(progress(done, 10));
    await passed(50);
  }
  end(SOUND);
  assert.equal((await check).ok, true);
  await assert.rejects(keep.verify(), { kind: 'unavailable' });
  await keep.close();
});

test('a check whose port is lost begins again on the next one', async () => {
  const { browser, keep, begun, end } = checking();
  const check = keep.verify();
  await begun();
  browser.kill();
  await begun(2);
  end(SOUND);
  assert.equal((await check).ok, true);
  await keep.close();
});

test('an argument of the wrong type throws at once', () => {
  const { keep } = checking();
  assert.throws(() => keep.verify({ onProgress: 1 }), TypeError);
  assert.throws(() => keep.verify(null), TypeError);
});
