// @ts-check
/**
 * Which parts that arrived are acknowledged, and when ("Parts" in docs/protocol.md).
 *
 * Rules of this module:
 * - An acknowledgement covers all earlier parts of its message, so several parts share one: each
 *   costs a message through the browser's processes, a tenth of the time that a part itself takes.
 * - Never more than a quarter of the window is held back, counted over all messages, so the other
 *   side always has room to send on. What completes a message is acknowledged at once.
 */

/** Shares of a window that may be held back. */
const SHARES = 4;

/** @typedef {{ack: {of: number, i: number}}} Acknowledgement */

/** The acknowledgements that one port owes. */
export class Acknowledgements {
  /** @type {Map<number, number>} the last part that arrived, by the number of its message */
  #owed = new Map();
  #parts = 0;
  #due = false;

  /**
   * Counts a part that arrived.
   * @param {{of: number, i: number}} head
   * @param {boolean} complete its message is whole with it
   * @param {number} window how many parts the other side may leave unacknowledged
   */
  add({ of, i }, complete, window) {
    this.#owed.set(of, i);
    this.#parts += 1;
    if (complete || this.#parts * SHARES >= window) this.#due = true;
  }

  /** @returns {Acknowledgement[]} what is to be posted now: all that is owed, or nothing */
  take() {
    if (!this.#due) return [];
    const all = [...this.#owed].map(([of, i]) => ({ ack: { of, i } }));
    this.#owed.clear();
    this.#parts = 0;
    this.#due = false;
    return all;
  }
}
