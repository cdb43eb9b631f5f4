// @ts-check
/**
 * The stub in the place of `chrome` or `browser`, for libraries that are handed one or read the global.
 *
 * Rules of this module:
 * - Everything but `storage` is the browser's own, looked up when it is used; so are `sync` and
 *   `managed`. `storage.onChanged` tells of these too.
 * - The browser's own areas are listened to only while somebody listens here, each by its own event: one
 *   for all areas would start a worker whenever the stub writes a key of its own.
 * - What is made here carries the real object with it, so that the stub goes on using that one when a
 *   script puts this one in its place (see browser.js).
 */

import { extensionApi, REAL, realStorage } from './browser.js';
import { chromeEvent } from './chrome_event.js';
import { ListenedEvent } from './events.js';
import { ACCESS_LEVELS } from './signatures.js';

/** @typedef {import('./events.js').Changes} Changes */
/** @typedef {import('./index.d.ts').AreaStorage} AreaStorage */
/** @typedef {{onChanged?: {addListener(fn: Function): void, removeListener(fn: Function): void}}} Watched */

/** The areas that are the browser's own. */
const PASSED = ['sync', 'managed'];

/** `chrome.storage.AccessLevel`: each value is its name. */
export const AccessLevel = /** @type {AreaStorage['AccessLevel']} */ (
  Object.freeze(Object.fromEntries(ACCESS_LEVELS.map((level) => [level, level])))
);

/**
 * @param {AreaStorage} storage of the stub
 * @returns {() => any} gives always the same object
 */
export function asChrome(storage) {
  /** @type {object | undefined} */
  let made;
  return () => (made ??= make(storage));
}

/** @param {AreaStorage} storage */
function make(storage) {
  const real = /** @type {Record<string, unknown>} */ (/** @type {object} */ (extensionApi()));
  const own = realStorage();
  const made = Object.create(real);
  for (const name of Object.keys(real)) if (name !== 'storage') pass(made, real, name);
  define(made, 'storage', storageOf(storage, /** @type {any} */ (own ?? {})));
  Object.defineProperty(made, REAL, { value: real });
  return made;
}

/**
 * @param {AreaStorage} storage
 * @param {Record<string, Watched | undefined>} real
 */
function storageOf(storage, real) {
  const { session, local } = storage;
  const passed = PASSED.filter((name) => real[name]);
  const made = {};
  if (real['sync']) pass(made, real, 'sync');
  define(made, 'session', session);
  if (real['managed']) pass(made, real, 'managed');
  define(made, 'local', local);
  define(made, 'onChanged', allChanges(storage, passed.map((name) => [name, real[name]])));
  define(made, 'AccessLevel', { ...AccessLevel });
  Object.defineProperty(made, REAL, { value: real });
  return made;
}

/**
 * The event of all areas, the browser's own among them.
 * @param {AreaStorage} storage
 * @param {[string, Watched | undefined][]} others
 */
function allChanges(storage, others) {
  /** @type {ListenedEvent<[Changes, string]>} */
  const event = new ListenedEvent((gained) => {
    if (gained) {
      storage.onChanged.addListener(tell);
      for (const [real, listener] of listeners) real?.onChanged?.addListener(listener);
    } else {
      storage.onChanged.removeListener(tell);
      for (const [real, listener] of listeners) real?.onChanged?.removeListener(listener);
    }
  });
  /**
   * @param {Changes} changes
   * @param {string} area
   */
  const tell = (changes, area) => void event.emit(changes, area);
  const listeners = others.map(([name, real]) => {
    const listener = (/** @type {Changes} */ changes) => tell(changes, name);
    return /** @type {const} */ ([real, listener]);
  });
  return chromeEvent(event);
}

/**
 * @param {object} made
 * @param {string} name
 * @param {unknown} value
 */
function define(made, name, value) {
  Object.defineProperty(made, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * A property that is looked up in the real object when it is used.
 * @param {object} made
 * @param {Record<string, unknown>} real
 * @param {string} name
 */
function pass(made, real, name) {
  Object.defineProperty(made, name, {
    get: () => real[name],
    set: (value) => define(made, name, value),
    enumerable: true,
    configurable: true,
  });
}
