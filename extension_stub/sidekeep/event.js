// @ts-check
/**
 * An event with the shape of the browser's: addListener, removeListener, hasListener, hasListeners.
 *
 * Rules of this module:
 * - Listeners are called in the order they were added; adding one twice counts once.
 * - A listener that throws is reported to the console and does not keep the others from hearing.
 */

/**
 * @template {unknown[]} Args
 * @implements {ListenerSet<Args>}
 */
export class Event {
  /** @type {Set<(...args: Args) => void>} */
  #listeners = new Set();

  /** @param {(...args: Args) => void} listener */
  addListener(listener) {
    if (typeof listener !== 'function') throw new TypeError('A listener must be a function.');
    this.#listeners.add(listener);
  }

  /** @param {(...args: Args) => void} listener */
  removeListener(listener) {
    this.#listeners.delete(listener);
  }

  /**
   * @param {(...args: Args) => void} listener
   * @returns {boolean}
   */
  hasListener(listener) {
    return this.#listeners.has(listener);
  }

  /** @returns {boolean} */
  hasListeners() {
    return this.#listeners.size > 0;
  }

  /**
   * Calls every listener.
   * @param {Args} args
   */
  emit(...args) {
    for (const listener of [...this.#listeners]) {
      try {
        listener(...args);
      } catch (error) {
        console.error('A listener of the Sidekeep stub failed:', error);
      }
    }
  }
}

/**
 * @template {unknown[]} Args
 * @typedef {import('./index.d.ts').ListenerSet<Args>} ListenerSet
 */
