// @ts-check
/**
 * One call to the host: its request, how large it is, and its promise.
 *
 * Rules of this module:
 * - The request is kept until the call is settled, so that it can be sent again on another port
 *   under the same id and the same `op`.
 * - A call settles once; what comes later is dropped.
 */

import { SidekeepError } from './errors.js';
import { settlesInOrder } from './methods.js';
import { MESSAGE_LIMIT } from './parts.js';

/** @typedef {import('./values.js').Measure} Measure */
/** @typedef {import('./parts.js').Cut} Cut */
/** @typedef {import('./channel.js').Outcome} Outcome */
/** @typedef {{jsonrpc: '2.0', id: number, method: string, params: object, op?: number}} Request */

/** Bytes of a request outside its parameters, at the most, for method names of usual length. */
const ENVELOPE = 160;

export class Call {
  /** @type {boolean | undefined} */
  #big;
  /** @type {Cut | undefined} */
  #cut;
  #measure;
  #view;
  /** @type {Promise<any>} */
  promise;
  /** @type {(value: any) => void} */
  #resolve = () => {};
  /** @type {(error: Error) => void} */
  #reject = () => {};

  /** what came of it; it settles when the calls of its lane before it have settled
   * @type {Outcome | undefined} */
  outcome = undefined;
  settled = false;
  /** when it was last known to make progress before it was posted; by performance.now() */
  since = performance.now();
  /** posted on the present port */
  posted = false;
  /** a host may have seen it, on this port or an earlier one */
  exposed = false;
  /** ports that were lost after it was posted on them */
  losses = 0;

  /**
   * @param {Request} request
   * @param {Measure} measure of the parameters
   * @param {string | null} lane calls of one lane take effect in call order
   * @param {(result: any) => any} view what the caller gets of the host's result; applied here,
   *   since a promise derived from this one would settle later than those of its lane
   */
  constructor(request, measure, lane, view) {
    this.request = request;
    this.lane = lane;
    this.#view = view;
    this.#measure = measure;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get id() {
    return this.request.id;
  }

  /** Whether it settles after those of its lane that were made before it. */
  get inOrder() {
    return this.lane !== null && settlesInOrder(this.request.method);
  }

  get mutates() {
    return this.request.op !== undefined;
  }

  /** Bytes of the JSON text, about. */
  get bytes() {
    return this.#measure.estimate + ENVELOPE;
  }

  /** Whether it has to travel in parts. */
  get big() {
    this.#big ??= this.#isBig();
    return this.#big;
  }

  #isBig() {
    if (this.#cut || this.#measure.units > MESSAGE_LIMIT) return true;
    if (this.#measure.most + ENVELOPE <= MESSAGE_LIMIT) return false;
    return new TextEncoder().encode(JSON.stringify(this.request)).length > MESSAGE_LIMIT;
  }

  /**
   * The request cut for parts; once cut it stays so, for a later port too.
   * @param {(message: object) => Cut} cut
   * @returns {Cut}
   */
  cut(cut) {
    this.#cut ??= cut(this.request);
    return this.#cut;
  }

  /**
   * How the call fails when it is not sent again after its port was lost.
   * @param {SidekeepError} error why the port is gone
   * @returns {SidekeepError}
   */
  gaveUp(error) {
    if (!this.mutates || !this.exposed || error.kind === 'orphaned') return error.copy();
    return outcomeUnknown(error.message);
  }

  /**
   * How the call fails when no answer came in time.
   * @param {number} timeout in milliseconds
   * @returns {SidekeepError}
   */
  timedOut(timeout) {
    const text = `The host did not answer for ${Math.round(timeout / 100) / 10} s.`;
    if (this.mutates && (this.posted || this.exposed)) return outcomeUnknown(text);
    return new SidekeepError('unavailable', text, {
      next: 'Try again; if it stays so, restart the browser or run "sidekeep doctor".',
    });
  }

  /** Settles the promise with the outcome. */
  settle() {
    if (this.settled || !this.outcome) return;
    this.settled = true;
    if ('error' in this.outcome) {
      this.#reject(this.outcome.error);
      return;
    }
    let value;
    try {
      value = this.#view(this.outcome.result);
    } catch {
      this.#reject(new SidekeepError('internal', `The host's answer is not that of ${this.request.method}.`));
      return;
    }
    this.#resolve(value);
  }
}

/**
 * @param {string} text why
 * @returns {SidekeepError}
 */
function outcomeUnknown(text) {
  return new SidekeepError('unknown', `${text} Whether the change took effect is not known.`, {
    next: 'Read the value before changing it again.',
  });
}
