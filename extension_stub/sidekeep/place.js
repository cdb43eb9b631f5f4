// @ts-check
/**
 * Where the worker keeps the places it has heard up to, across its sleeps: the browser's own session
 * area, which lives exactly as long as there can be something that was missed.
 *
 * Rules of this module:
 * - At most one write is on its way, however many events come; the newest places follow it.
 * - The two sides of a split extension have keys of their own.
 * - A place that comes from elsewhere (the session area, a content script) is looked at before it is
 *   used: the host refuses a watch from a place that is none, with all that is watched.
 * - A place that cannot be kept costs the events of one sleep, not the call that is being made.
 */

import { isIncognito, realStorage } from './browser.js';

/**
 * Up to where somebody has heard: a sequence number in the file that `store` names. `told`: so many of
 * the things that this number stands for were told; absent: all of them.
 * @typedef {{seq: number, store?: string, told?: number}} Place
 */

/** The stub's own key in the real session area. */
export const PLACE_KEY = 'sidekeep:heard';

/** Characters of the name of a file, at the most; those of the host have 16. */
const EPOCH_LIMIT = 64;

/** @template {string} Name of what there are places in */
export class PlaceStore {
  #ending;
  #loaded = false;
  #writing = false;
  /** @type {Record<string, Place> | null} what is to be written next */
  #next = null;

  /** @param {string} [ending] of the key: each listener that has places has a key of its own */
  constructor(ending = '') {
    this.#ending = ending;
  }

  /**
   * @returns {Promise<[Name, Place][]>} what was kept; nothing after the first time
   */
  async load() {
    if (this.#loaded) return [];
    this.#loaded = true;
    try {
      const key = this.#key;
      const kept = (await realStorage()?.session?.get(key))?.[key] ?? {};
      return /** @type {[Name, Place][]} */ (
        Object.entries(/** @type {object} */ (kept)).filter(([, place]) => isPlace(place))
      );
    } catch (error) {
      console.warn('The Sidekeep stub could not read what it had heard:', error);
      return [];
    }
  }

  /** @param {Map<Name, Place>} places */
  save(places) {
    this.#next = Object.fromEntries(places);
    if (!this.#writing) this.#write();
  }

  async #write() {
    this.#writing = true;
    try {
      while (this.#next) {
        const places = this.#next;
        this.#next = null;
        await realStorage()?.session?.set({ [this.#key]: places });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not note what it has heard:', error);
    }
    this.#writing = false;
  }

  get #key() {
    const key = PLACE_KEY + this.#ending;
    return isIncognito() ? `${key}:incognito` : key;
  }
}

/**
 * @param {unknown} value
 * @returns {value is Place}
 */
export function isPlace(value) {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, store, told } = /** @type {Record<string, unknown>} */ (value);
  return (
    isCount(seq) &&
    (store === undefined || (typeof store === 'string' && store.length <= EPOCH_LIMIT)) &&
    (told === undefined || isCount(told))
  );
}

/**
 * @param {unknown} value
 * @returns {boolean}
 */
function isCount(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
}
