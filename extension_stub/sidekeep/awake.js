// @ts-check
/**
 * Keeping the worker awake for the length of a piece of work, for extensions that ask for it.
 *
 * Chromium stops a worker 30 s after its last event or extension call, also in the middle of a fetch
 * or a stream. A small extension call now and then is what its documentation advises; it needs no
 * permission, no alarm and no host.
 *
 * Rules of this module:
 * - Nothing runs unless some work was given, and nothing after the last of it has ended.
 * - Work that never ends keeps the worker awake for `most` milliseconds at the longest.
 */

import { extensionApi, isBackground } from './browser.js';

/** Milliseconds between two calls. */
const EVERY = 20_000;
/** Milliseconds for which one piece of work may keep the worker awake, unless told otherwise. */
export const MOST = 600_000;

let working = 0;
/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;

/**
 * Keeps the worker awake until it is released, or nothing was heard of the work for `most`.
 * @param {number} most milliseconds
 * @param {() => void} [ended] called once, however it ends
 * @returns {{renew: () => void, release: () => void}} `renew` starts the time anew
 */
export function stayAwake(most, ended = () => {}) {
  let held = true;
  const release = () => {
    if (!held) return;
    held = false;
    clearTimeout(limit);
    working -= 1;
    if (working === 0) clearInterval(timer);
    ended();
  };
  let limit = setTimeout(release, most);
  working += 1;
  if (working === 1) timer = setInterval(touch, EVERY);
  touch();
  const renew = () => {
    if (!held) return;
    clearTimeout(limit);
    limit = setTimeout(release, most);
  };
  return { renew, release };
}

/**
 * Keeps the worker awake until the work has ended; in a page it only waits.
 * @template T
 * @param {Promise<T> | (() => T | Promise<T>)} work
 * @param {{most?: number}} [options] milliseconds
 * @returns {Promise<T>} as the work settles
 */
export async function duringTurn(work, { most = MOST } = {}) {
  if (!(most > 0 && most <= 2 ** 31 - 1)) throw new TypeError('most must be milliseconds.');
  const { release } = stayAwake(most);
  try {
    return await (typeof work === 'function' ? work() : work);
  } finally {
    release();
  }
}

function touch() {
  if (!isBackground()) return;
  const { runtime } = /** @type {{runtime: {getPlatformInfo?: () => Promise<unknown>}}} */ (
    extensionApi()
  );
  runtime.getPlatformInfo?.().catch((error) => {
    console.warn('The Sidekeep stub could not keep the worker awake:', error);
  });
}
