/** `@extend-chrome/storage`: buckets within an area, changes by functions, streams. */

import { getBucket, storage } from '@extend-chrome/storage';

export const heard = [];

const shared = getBucket('shared');

export const hear = () => void shared.changeStream.subscribe(({ value }) => heard.push(value.newValue));

export const tell = (value) => shared.set({ value });

export const read = async () => (await shared.get()).value;

export async function work() {
  const bucket = getBucket('counts');
  const changes = [];
  const values = [];
  const subscriptions = [
    bucket.changeStream.subscribe((change) => changes.push(change)),
    bucket.valueStream.subscribe((value) => values.push(value)),
  ];
  await bucket.set({ runs: 1, name: 'first' });
  // Made at once, composed into one change.
  const increment = ({ runs }) => ({ runs: runs + 1 });
  await Promise.all(Array.from({ length: 5 }, () => bucket.set(increment)));
  await bucket.update(async ({ runs }) => ({ runs: runs * 10 }));
  await bucket.remove('name');
  for (const subscription of subscriptions) subscription.unsubscribe();
  const withDefault = await bucket.get({ runs: 0, missing: 'default' });

  await storage.local.set({ other: [1, 2] });
  const cleared = getBucket('cleared');
  await cleared.set({ x: 1 });
  await cleared.clear();
  return {
    changes,
    last: values.at(-1),
    withDefault,
    keys: await bucket.getKeys(),
    got: await bucket.get((all) => Object.keys(all).length),
    refused: await bucket.set(() => 5).catch((error) => error.message),
  };
}
