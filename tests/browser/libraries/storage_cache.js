/** `webext-storage-cache`: values that expire, functions whose results are kept. */

import { CachedFunction, CachedValue, globalCache } from 'webext-storage-cache';

const later = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const shared = new CachedValue('shared');

export const tell = (value) => shared.set(value);

export const read = () => shared.get();

export async function work() {
  const kept = new CachedValue('kept', { maxAge: { days: 2 } });
  await kept.set({ models: ['a', 'b'] });
  const brief = new CachedValue('brief', { maxAge: { milliseconds: 1 } });
  await brief.set('soon gone');
  await later(20);
  const expired = await brief.get();

  let asked = 0;
  const models = new CachedFunction('models', {
    updater: async (server) => ({ server, asked: (asked += 1) }),
  });
  const both = await Promise.all([models.get('one'), models.get('one')]);
  const other = await models.get('two');
  const again = await models.get('one');
  const fresh = await models.getFresh('one');
  await models.applyOverride(['three'], { server: 'three', asked: 0 });
  await models.delete('two');
  const cached = [await models.getCached('three'), await models.getCached('two')];

  // Old, but good enough while a new one is made.
  const stale = new CachedFunction('stale', {
    updater: async () => (asked += 1),
    maxAge: { milliseconds: 1 },
    staleWhileRevalidate: { days: 1 },
  });
  const handedOut = [await stale.get()];
  await later(20);
  handedOut.push(await stale.get());
  while ((await stale.getCached()) === handedOut[1]) await later(5);
  return { expired, both, other, again, fresh, cached, handedOut, renewed: await stale.getCached() };
}

export async function clear() {
  await chrome.storage.local.set({ 'not cached': 1 });
  await globalCache.clear();
}
