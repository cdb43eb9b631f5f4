/** `@plasmohq/storage`: values as JSON text, namespaces, watches, and its encrypted storage. */

import { Storage } from '@plasmohq/storage';
import { SecureStorage } from '@plasmohq/storage/secure';

export const heard = [];

// Its default area is sync, which stays the browser's own.
const shared = () => new Storage({ area: 'local' });

export const hear = () => void shared().watch({ shared: ({ newValue }) => heard.push(newValue) });

export const tell = (value) => shared().set('shared', value);

export const read = () => shared().get('shared');

export async function work() {
  const storage = new Storage({ area: 'local' });
  storage.setNamespace('panel:');
  const changes = [];
  const watch = { width: ({ newValue, oldValue }) => changes.push([oldValue ?? null, newValue ?? null]) };
  storage.watch(watch);
  await storage.set('width', 300);
  await storage.set('width', 320);
  await storage.remove('width');
  storage.unwatch(watch);
  await storage.set('width', 340);
  await storage.setMany({ open: true, note: 'Grüße, 世界 😀', nested: { list: [1, null, { a: 2 }] } });
  const all = await storage.getAll();
  const some = await storage.getMany(['open', 'nested', 'missing']);
  await storage.removeMany(['open', 'nested']);

  const secure = new SecureStorage({ area: 'local' });
  await secure.setPassword('correct horse', { namespace: 'secret', iterations: 1000 });
  await secure.set('key', { token: 'the secret token' });
  const opened = await secure.get('key');

  const session = new Storage({ area: 'session' });
  await session.set('tab', 7);
  return { changes, all, some, opened, session: await session.getAll() };
}
