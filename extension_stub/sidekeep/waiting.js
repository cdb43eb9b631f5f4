// @ts-check
/**
 * A call that has not been handed to anybody yet, and what becomes of it.
 *
 * Rules of this module:
 * - It settles once. What a result looks like to the caller is the view's, as in call.js.
 */

import { SidekeepError } from './errors.js';

/** @typedef {import('./values.js').Measure} Measure */

export class Waiting {
  /** @type {(value: any) => void} */
  resolve = () => {};
  /** @type {(error: Error) => void} */
  reject = () => {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** @type {SidekeepError | null} it fails in its turn */
  error = null;

  /**
   * @param {number} number in call order
   * @param {string} method
   * @param {any} params
   * @param {Measure} measure
   * @param {string | null} lane
   * @param {(result: any) => any} view
   */
  constructor(number, method, params, measure, lane, view) {
    this.number = number;
    this.method = method;
    this.params = params;
    this.measure = measure;
    this.lane = lane;
    this.view = view;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** @param {Promise<any>} result of the call, as the host gives it */
  async settle(result) {
    try {
      this.resolve(this.view(await result));
    } catch (error) {
      this.reject(/** @type {Error} */ (error));
    }
  }

  /** @param {SidekeepError} error unless it fails for a reason of its own */
  fail(error) {
    clearTimeout(this.timer);
    this.reject(this.error ?? error.copy());
  }

  /**
   * Hands it to the calls of the host.
   * @param {import('./area.js').Carrier} calls
   */
  forward(calls) {
    clearTimeout(this.timer);
    if (this.error) {
      calls.refuse(/** @type {string} */ (this.lane), this.error).catch(this.reject);
      return;
    }
    // In the view, so that calls settle in call order (see call.js).
    const view = (/** @type {any} */ result) => this.resolve(this.view(result));
    calls.call(this.method, this.params, this.measure, this.lane, view).catch(this.reject);
  }
}
