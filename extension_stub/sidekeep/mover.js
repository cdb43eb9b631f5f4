// @ts-check
/**
 * Attempts of one context to reach the host and to move the data there.
 *
 * Rules of this module:
 * - At most one attempt is under way; who asks meanwhile gets its outcome.
 * - When a host may be tried again is the link's to know; a move that failed waits in the same way.
 */

import { Backoff } from './backoff.js';
import { Move } from './move.js';
import { fromBrowser } from './move_state.js';
import { convertItems, Measure } from './values.js';

/** @typedef {import('./calls.js').Calls} Calls */
/** @typedef {import('./errors.js').SidekeepError} SidekeepError */
/** @typedef {import('./move_state.js').Moved} Moved */

/**
 * Whose attempts they are.
 * @typedef {object} MoveOwner
 * @property {(done: number, of: number) => void} moving items that were copied, and items in all
 * @property {(mark: Moved) => void} moved
 * @property {(error: SidekeepError, reached: boolean) => void} failed `reached`: a host was there
 */

export class Mover {
  #calls;
  #owner;
  #backoff = new Backoff();
  /** @type {Promise<void> | null} */
  #underWay = null;
  /** @type {SidekeepError | null} */
  #failure = null;
  /** whether the host answered to the attempt that is under way */
  reached = false;

  /**
   * @param {Calls} calls
   * @param {MoveOwner} owner
   */
  constructor(calls, owner) {
    this.#calls = calls;
    this.#owner = owner;
  }

  /** Why the data could not be moved, as long as it is not tried again. */
  get refusal() {
    return this.#backoff.wait > 0 ? this.#failure : null;
  }

  /** Makes an attempt if its time has come; the owner hears of the outcome. */
  attempt() {
    if (!this.#underWay && this.#backoff.wait === 0) this.reach().catch(() => {});
  }

  /**
   * @returns {Promise<void>} fulfilled when the data is with the host
   * @throws {SidekeepError} why it is not
   */
  reach() {
    this.#underWay ??= this.#move();
    return this.#underWay;
  }

  /** Forgets failures, those of an attempt that is under way too: it may have begun before the host was there. */
  async retry() {
    await this.#underWay?.catch(() => {});
    this.#backoff.reset();
    this.#calls.retry();
  }

  async #move() {
    let release = () => {};
    try {
      await this.#calls.call('host.ping', {}, new Measure(), null);
      this.reached = true;
      release = this.#calls.hold();
      this.#owner.moving(0, 0);
      const move = new Move(
        (method, params, measure) => this.#call(method, params, measure),
        (done, of) => this.#owner.moving(done, of),
      );
      this.#owner.moved(await move.run());
      this.#backoff.reset();
    } catch (thrown) {
      const error = fromBrowser(thrown);
      if (this.reached) {
        this.#backoff.failed();
        this.#failure = error;
      }
      this.#owner.failed(error, this.reached);
      throw error;
    } finally {
      release();
      this.reached = false;
      this.#underWay = null;
    }
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {Measure} [measure]
   */
  #call(method, params, measure) {
    if (measure) return this.#calls.call(method, params, measure, null);
    const whole = new Measure();
    return this.#calls.call(method, convertItems(params, whole), whole, null);
  }
}
