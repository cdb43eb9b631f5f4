/** `webext-storage`: single items with defaults, maps of items, changes until a signal ends them. */

import { StorageItem, StorageItemMap } from 'webext-storage';

export const heard = [];

export const hear = () => new StorageItem('shared').onChanged((value) => heard.push(value));

export const tell = (value) => new StorageItem('shared').set(value);

export const read = () => new StorageItem('shared').get();

export async function work() {
  const theme = new StorageItem('theme', { defaultValue: 'system' });
  const before = [await theme.has(), await theme.get()];
  const changes = [];
  const end = new AbortController();
  theme.onChanged((value) => changes.push(value ?? null), end.signal);
  await theme.set('dark');
  await theme.set(undefined);
  await theme.set('light');
  end.abort();
  await theme.set('dark');

  const notes = new StorageItemMap('notes', { defaultValue: 'empty' });
  const noted = [];
  const stop = new AbortController();
  notes.onChanged((key, value) => noted.push([key, value ?? null]), stop.signal);
  for (const key of ['a', 'b', 'c:::d']) await notes.set(key, `about ${key}`);
  await notes.remove('b');
  stop.abort();
  const fallback = await notes.get('b');
  const entries = [];
  for await (const entry of notes) entries.push(entry);

  const forgotten = new StorageItemMap('forgotten');
  await forgotten.set('x', 1);
  await forgotten.clear();

  const tab = new StorageItem('tab', { area: 'session' });
  await tab.set({ id: 7 });
  return { before, changes, noted, fallback, entries, tab: await tab.get() };
}
