// @ts-check
/**
 * Calls that settle in the order in which they were made.
 *
 * Rules of this module:
 * - The calls of one lane (one storage area) settle in call order: an outcome that came early waits
 *   for those before it. Calls that are not in order settle when their outcome comes.
 */

/** @typedef {import('./call.js').Call} Call */

export class Lanes {
  /** @type {Map<string, Call[]>} not settled, by lane, in call order */
  #lanes = new Map();

  /**
   * Gives a call its place; at once when it is made.
   * @param {Call} call
   */
  enter(call) {
    if (call.lane === null || !call.inOrder) return;
    const lane = this.#lanes.get(call.lane);
    if (lane) lane.push(call);
    else this.#lanes.set(call.lane, [call]);
  }

  /**
   * Settles what can be settled now that a call has its outcome.
   * @param {Call} call
   */
  leave(call) {
    if (call.lane === null || !call.inOrder) {
      call.settle();
      return;
    }
    const lane = this.#lanes.get(call.lane) ?? [];
    const end = lane.findIndex((other) => !other.outcome);
    for (const ready of lane.splice(0, end < 0 ? lane.length : end)) ready.settle();
  }
}
