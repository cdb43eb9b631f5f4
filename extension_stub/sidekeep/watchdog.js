// @ts-check
/**
 * One timer for the deadlines of all open calls.
 *
 * Rules of this module:
 * - Deadlines may move later at any time; they are asked for again when the timer fires.
 * - A timer that fires much too late was held up with its whole context (sleep, debugger). What
 *   arrived meanwhile is still queued behind it, so it waits once more before anything is late.
 */

/** Milliseconds by which a timer may be late without having been held up. */
const HELD_UP = 1000;

export class Watchdog {
  #earliest;
  #onDue;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;
  #due = Infinity;
  /** waiting once more after being held up */
  #patient = false;

  /**
   * @param {() => number} earliest the earliest deadline by performance.now(), Infinity if none
   * @param {(now: number) => void} onDue called when it has passed
   */
  constructor(earliest, onDue) {
    this.#earliest = earliest;
    this.#onDue = onDue;
  }

  /** Looks at the deadlines; to be called when a new one may be the earliest. */
  watch() {
    if (this.#patient) return;
    const due = this.#earliest();
    if (due < this.#due) this.#set(due);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#patient = false;
    this.#due = Infinity;
  }

  /** @param {number} due */
  #set(due) {
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, due - performance.now()));
  }

  #fire() {
    const now = performance.now();
    if (now - this.#due > HELD_UP && !this.#patient) {
      this.#patient = true;
      this.#set(now + HELD_UP);
      return;
    }
    this.#patient = false;
    this.#due = Infinity;
    this.#onDue(now);
    this.watch();
  }
}
