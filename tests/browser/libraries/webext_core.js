/** `@webext-core/storage`: typed areas over `webextension-polyfill`, and one over an area it is given. */

import { defineExtensionStorage, localExtStorage, sessionExtStorage } from '@webext-core/storage';

export const heard = [];

export const hear = () => void localExtStorage.onChange('shared', (value) => heard.push(value));

export const tell = (value) => localExtStorage.setItem('shared', value);

export const read = () => localExtStorage.getItem('shared');

export async function work() {
  const missing = await localExtStorage.getItem('count');
  const changes = [];
  const stop = localExtStorage.onChange('count', (value, former) =>
    changes.push([former ?? null, value ?? null]),
  );
  await localExtStorage.setItem('count', 1);
  await localExtStorage.setItem('other', { deep: [true] });
  await localExtStorage.setItem('count', 2);
  await localExtStorage.removeItem('count');
  stop();
  await localExtStorage.setItem('count', 3);
  await localExtStorage.setItem('nothing', undefined);

  await sessionExtStorage.setItem('old', 1);
  await sessionExtStorage.clear();
  await sessionExtStorage.setItem('tab', 7);
  const own = defineExtensionStorage(chrome.storage.session);
  await own.setItem('tab', (await own.getItem('tab')) + 1);
  return {
    missing,
    changes,
    other: await localExtStorage.getItem('other'),
    tab: await sessionExtStorage.getItem('tab'),
  };
}
