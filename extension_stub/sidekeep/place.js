// @ts-check
/**
 * Where the worker keeps the places it has heard up to, across its sleeps: the browser's own session
 * area, which lives exactly as long as there can be something that was missed.
 *
 * Rules of this module:
 * - At most one write is on its way, however many events come; the newest places follow it.
 * - The two sides of a split extension have keys of their own.
 * - A place that cannot be kept costs the events of one sleep, not the call that is being made.
 */

import { extensionApi, isIncognito } from './browser.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./watcher.js').Place} Place */

/** The stub's own key in the real session area. */
export const PLACE_KEY = 'sidekeep:heard';

export class PlaceStore {
  #loaded = false;
  #writing = false;
  /** @type {Record<string, Place> | null} what is to be written next */
  #next = null;

  /**
   * @returns {Promise<[AreaName, Place][]>} what was kept; nothing after the first time
   */
  async load() {
    if (this.#loaded) return [];
    this.#loaded = true;
    try {
      const key = keyOfThisSide();
      const kept = (await extensionApi().storage?.session?.get(key))?.[key] ?? {};
      return /** @type {[AreaName, Place][]} */ (
        Object.entries(/** @type {object} */ (kept)).filter(([, place]) => isPlace(place))
      );
    } catch (error) {
      console.warn('The Sidekeep stub could not read what it had heard:', error);
      return [];
    }
  }

  /** @param {Map<AreaName, Place>} places */
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
        await extensionApi().storage?.session?.set({ [keyOfThisSide()]: places });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not note what it has heard:', error);
    }
    this.#writing = false;
  }
}

function keyOfThisSide() {
  return isIncognito() ? `${PLACE_KEY}:incognito` : PLACE_KEY;
}

/** @param {unknown} value */
function isPlace(value) {
  return typeof value === 'object' && value !== null && Number.isInteger(/** @type {any} */ (value).seq);
}
