/** `localforage` with its driver for extensions: one key after the other, as `localStorage` has it. */

import localforage from 'localforage';
import { local as driver } from 'localforage-webextensionstorage-driver';

const ready = (async () => {
  await localforage.defineDriver(driver);
  await localforage.setDriver(driver._driver);
})();

export async function tell(value) {
  await ready;
  await localforage.setItem('shared', value);
}

export async function read() {
  await ready;
  return localforage.getItem('shared');
}

/** @param {number} size of a big value, in characters */
export async function work(size) {
  await ready;
  await localforage.setItem('gone', 1);
  await localforage.clear();
  await localforage.setItem('number', 1.5);
  await localforage.setItem('list', [1, null, { deep: ['x'] }]);
  await localforage.setItem('text', 'Grüße 😀');
  await localforage.setItem('removed', true);
  await localforage.removeItem('removed');
  const seen = [];
  await localforage.iterate((value, key, number) => {
    seen.push([number, key, value]);
  });
  const inCallback = await new Promise((done) => {
    localforage.getItem('list', (error, value) => done([error, value]));
  });
  const outcomes = {
    driver: localforage.driver(),
    seen,
    inCallback,
    missing: await localforage.getItem('missing'),
    keys: await localforage.keys(),
    second: await localforage.key(1),
    length: await localforage.length(),
    refusal: await localforage.setItem('bytes', new Uint8Array(4)).catch((error) => error.message),
  };
  // It comes last: the driver reads the whole area for every call.
  const big = 'x'.repeat(size);
  await localforage.setItem('big', big);
  return { ...outcomes, whole: (await localforage.getItem('big')) === big };
}
