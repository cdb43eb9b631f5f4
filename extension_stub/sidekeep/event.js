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
   * Calls every listener that there is now: one that is removed meanwhile still hears, one that is added
   * does not.
   * @param {Args} args
   * @returns {unknown[]} what they returned, without undefined
   */
  emit(...args) {
    const results = [];
    for (const listener of [...this.#listeners]) {
      try {
        /** @type {unknown} */
        const result = Reflect.apply(listener, globalThis, args);
        if (result !== undefined) results.push(result);
      } catch (error) {
        const text = error instanceof Error ? (error.stack ?? String(error)) : `Uncaught ${String(error)}`;
        console.error(`Error in event handler: ${text}`);
      }
    }
    return results;
  }
}

/**
 * @template {unknown[]} Args
 * @typedef {import('./index.d.ts').ListenerSet<Args>} ListenerSet
 */
