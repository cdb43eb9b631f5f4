// @ts-check
/**
 * Work in progress, and how long there has been no new use.
 *
 * Rules of this module:
 * - Work that goes on is use: nothing counts as unused before it ends.
 * - Only a use starts the time anew; work that merely follows an event does not.
 */

export class Uses {
  #rest;
  #ended;
  #unused;
  #count = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;

  /**
   * @param {number} rest milliseconds after the last use that `unused` is called
   * @param {() => void} ended called when no work is left
   * @param {() => void} unused
   */
  constructor(rest, ended, unused) {
    this.#rest = rest;
    this.#ended = ended;
    this.#unused = unused;
  }

  /** Whether no work is in progress. */
  get none() {
    return this.#count === 0;
  }

  /** Work begins; `end` is to be called once for it. */
  begin() {
    this.#count += 1;
  }

  /** Work has ended, well or not. */
  end() {
    this.#count -= 1;
    if (this.#count === 0) this.#ended();
  }

  /** Starts the time anew. */
  restart() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#count > 0) this.restart();
      else this.#unused();
    }, this.#rest);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
