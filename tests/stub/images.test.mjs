/** Pictures in the stub: thumbnails, drawn entries, and that nothing drawn is stored. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const THUMBNAIL = 'data:image/jpeg;base64,/9j/thumbnail';
const token = (name) => `sidekeep:${name.padEnd(60, '0')}`;
const picture = (name, url = token(name)) => ({ type: 'image_url', image_url: { url } });

/** A result of history.list with a picture of each state. */
function listed() {
  const left = (id, at, name, more) => ({
    id,
    path: ['content', at, 'image_url', 'url'],
    ref: token(name),
    bytes: 400_000,
    mime: 'image/png',
    ...more,
  });
  return {
    entries: [
      { id: 'e1', entry: { role: 'user', content: [{ type: 'text', text: token('text') }, picture('ready'), picture('pending')] } },
      { id: 'e2', entry: { role: 'assistant', content: 'no picture' } },
      { id: 'e3', entry: { role: 'user', content: [picture('broken'), picture('whole', 'data:image/png;base64,AAAA'), picture('left')] } },
    ],
    images: [
      left('e1', 1, 'ready', { state: 'ready', thumbnail: THUMBNAIL }),
      left('e1', 2, 'pending', { state: 'pending' }),
      left('e3', 0, 'broken', { state: 'none', reason: 'no picture' }),
      left('e3', 2, 'left', { state: 'left' }),
    ],
    total: 3,
    conversation: 'c',
    revision: 9,
  };
}

function linked(answer = () => ({ result: {} })) {
  const browser = fakeBrowser({
    script: () => ({ answer: (request) => (request.method === 'host.hello' ? undefined : answer(request)) }),
  });
  return { browser, keep: connect() };
}

test('a thumbnail is a data URL, or the reason why there is none', async () => {
  const { keep } = linked(({ params }) => ({ result: params.ref === 'r1' ? { url: THUMBNAIL } : { none: 'too many pixels' } }));
  assert.deepEqual(await keep.images.thumbnail('r1'), { url: THUMBNAIL, reason: null });
  assert.deepEqual(await keep.images.thumbnail('r2'), { url: null, reason: 'too many pixels' });
  await keep.close();
});

test('entries are drawn with thumbnails where there are, and with what is the matter where not', async () => {
  const { keep } = linked();
  const result = listed();
  const before = structuredClone(result);
  const [first, second, third] = keep.images.shown(result);
  const urls = (entry) => entry.content.map(({ image_url: image }) => image?.url);
  assert.deepEqual(urls(first.entry), [undefined, `${THUMBNAIL}#sidekeep:shown`, 'sidekeep:shown:pending']);
  assert.equal(first.entry.content[0].text, token('text'), 'only what was left out is replaced');
  assert.deepEqual(urls(third.entry), ['sidekeep:shown:none', 'data:image/png;base64,AAAA', 'sidekeep:shown:left']);
  assert.deepEqual([first.id, second, third.images], ['e1', { id: 'e2', entry: result.entries[1].entry, images: [] }, result.images.slice(2)]);
  for (const { entry } of [first, second, third]) entry.content = 'changed';
  assert.deepEqual(result, before, 'the drawn ones are copies');
  await keep.close();
});

test('a drawn entry is not stored, by whichever way, copied or not', async () => {
  const { browser, keep } = linked();
  const { history, sessions, storage } = keep;
  const [{ entry: ready }, { entry: plain }, { entry: none }] = keep.images.shown(listed());
  const copies = [ready, none, { ...ready }, structuredClone(ready), { quoted: ready.content[1].image_url.url }, ready.content[2]];
  for (const entry of copies) {
    const ways = [
      () => history.append(entry),
      () => history.append([plain, entry]),
      () => history.update('e1', { entry }),
      () => history.update('e1', { merge: { entry } }),
      () => history.replace([{ id: 'e1', entry }], { expect: 9 }),
      () => sessions.append('s', entry),
      () => storage.local.set({ history: [entry] }),
      () => storage.local.update('history', { push: entry }),
      () => keep.call('history.append', { entries: [entry] }),
    ];
    for (const way of ways) assert.throws(way, /keep\.images\.shown/);
  }
  await assert.rejects(history.mutate.call(history, () => [ready]));
  assert.deepEqual(browser.requests().filter(({ method }) => !['host.hello', 'history.list'].includes(method)), []);
  await history.append([plain, 'data:image/png;base64,AAAA', 'see #sidekeep:shown', 'sidekeep:shown', token('x')]);
  await storage.session.set({ drawn: ready });
  await keep.close();
});

test('entries as they were listed are stored with their tokens', async () => {
  const { browser, keep } = linked();
  const { entries, revision } = listed();
  await keep.history.replace(entries, { expect: revision });
  assert.deepEqual(browser.requests().at(-1).params.entries, entries);
  await keep.close();
});
