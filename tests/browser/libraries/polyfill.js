/** `webextension-polyfill`: promises over the callback form, `lastError` as a rejection. */

import browser from 'webextension-polyfill';

export const heard = [];

export const hear = () =>
  browser.storage.onChanged.addListener((changes, area) => {
    if (area === 'local' && changes.shared) heard.push(changes.shared.newValue);
  });

export const tell = (value) => browser.storage.local.set({ shared: value });

export const read = async () => (await browser.storage.local.get('shared')).shared;

/** Whether it wraps `chrome`; where there is a `browser` it hands that out. */
export const wraps = () => browser !== chrome;

export async function work() {
  const { local, session } = browser.storage;
  const changes = [];
  const listener = (change) => changes.push(change);
  local.onChanged.addListener(listener);
  await local.set({ a: 1, b: { c: [null, 'x'] }, gone: true });
  await local.remove(['gone', 'missing']);
  local.onChanged.removeListener(listener);
  await local.set({ d: 'unheard' });
  const refusal = await local.set({ bytes: new ArrayBuffer(4) }).catch((error) => error.message);
  let thrown = 'nothing';
  try {
    await local.get(5);
  } catch (error) {
    thrown = error.name;
  }
  await session.set({ tab: 7 });
  return {
    changes,
    withDefaults: await local.get({ a: 0, b: { e: 1 }, z: 'default' }),
    all: await local.get(null),
    bytes: await local.getBytesInUse(['a', 'd']),
    session: await session.get(),
    refusal,
    thrown,
    lastError: 'lastError' in chrome.runtime,
    id: browser.runtime.id,
  };
}
