/** `@wxt-dev/storage`: items with fallbacks, versions and migrations, metadata, snapshots, watches. */

import { storage } from '@wxt-dev/storage';

export const heard = [];

export const hear = () => void storage.watch('local:shared', (value) => heard.push(value));

export const tell = (value) => storage.setItem('local:shared', value);

export const read = () => storage.getItem('local:shared');

export async function work() {
  const visits = storage.defineItem('local:visits', { fallback: 0 });
  const first = await visits.getValue();
  const changes = [];
  const unwatch = visits.watch((value, former) => changes.push([former, value]));
  await visits.setValue(1);
  await visits.setValue((await visits.getValue()) + 1);
  unwatch();
  await visits.setValue(3);
  await visits.setMeta({ day: 'Monday', gone: 1 });
  await visits.removeMeta('gone');

  // Two callers at once make one device name.
  let made = 0;
  const device = storage.defineItem('local:device', { init: () => `device ${(made += 1)}` });
  const devices = await Promise.all([device.getValue(), device.getValue()]);

  await storage.setItem('local:draft', 'old text');
  const draft = storage.defineItem('local:draft', {
    version: 3,
    migrations: { 2: (text) => ({ text }), 3: (value) => ({ ...value, tags: [] }) },
  });

  await storage.setItems([
    { key: 'local:theme', value: 'dark' },
    { key: 'session:tab', value: { open: [1, null] } },
    { key: 'session:scroll', value: 0.5 },
  ]);
  const several = await storage.getItems(['session:tab', 'local:theme', 'local:missing']);
  await storage.removeItem('session:scroll');

  const migrated = await draft.getValue();
  const snapshot = await storage.snapshot('local', { excludeKeys: ['visits'] });
  await storage.removeItem('local:draft', { removeMeta: true });
  const removed = await storage.getItem('local:draft$');
  await storage.restoreSnapshot('local', { ...snapshot, theme: 'light' });
  return { first, changes, meta: await visits.getMeta(), devices, migrated, several, snapshot, removed };
}
