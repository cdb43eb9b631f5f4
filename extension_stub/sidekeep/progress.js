// @ts-check
/**
 * Saving the text of an answer while it streams, cheaply: it may be called with every word.
 *
 * Rules of this module:
 * - At most one call is under way, and none sooner than EVERY after the last; the newest text wins.
 * - A text that could not be saved does not end the stream: `failure` says why, and the next text
 *   tries again.
 */

/** Milliseconds between the beginnings of two calls. */
export const EVERY = 300;

export class Progress {
  #save;
  /** @type {string | undefined} the newest text of all */
  #newest = undefined;
  /** @type {string | undefined} the same, if it was not sent */
  #unsaved = undefined;
  #underWay = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pause = undefined;
  #ended = false;
  /** @type {unknown} why the newest call failed, null if it did not */
  failure = null;

  /** @param {(text: string) => Promise<unknown>} save */
  constructor(save) {
    this.#save = save;
  }

  /** @param {string} text the whole text so far */
  put(text) {
    if (this.#ended) return;
    this.#newest = text;
    this.#unsaved = text;
    this.#next();
  }

  /** What came so far is void. */
  reset() {
    this.#newest = undefined;
    this.#unsaved = undefined;
  }

  /**
   * No more is saved.
   * @returns {string | undefined} the newest text, undefined if there was none
   */
  end() {
    this.#ended = true;
    clearTimeout(this.#pause);
    return this.#newest;
  }

  #next() {
    if (this.#ended || this.#underWay || this.#pause !== undefined || this.#unsaved === undefined) return;
    const text = this.#unsaved;
    this.#unsaved = undefined;
    this.#underWay = true;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#next();
    }, EVERY);
    this.#save(text).then(
      () => {
        this.failure = null;
        this.#underWay = false;
        this.#next();
      },
      (error) => {
        this.failure = error;
        this.#underWay = false;
        this.#next();
      },
    );
  }
}
