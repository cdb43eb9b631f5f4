// @ts-check
/**
 * Calls of one turn, served by the real areas in call order.
 *
 * Rules of this module:
 * - Calls that take one step of the browser are under way together: its areas keep their order. One that
 *   takes more is alone.
 * - They settle in call order, each after listeners have heard what it changed.
 */

import { isMoved, readState } from './move_state.js';
import { isOneStep, noteAgain, serve } from './real_calls.js';

/** @typedef {import('./waiting.js').Waiting} Waiting */
/** @typedef {import('./real_calls.js').Notes} Notes */

/**
 * Serves calls while the gate keeps the data where it is.
 * @param {Waiting[]} batch
 * @param {boolean} moving whether changes have to be noted
 * @param {() => Promise<void>} told awaited before each settles: listeners have heard what it changed; never rejects
 */
export async function serveAll(batch, moving, told) {
  const results = await start(batch, moving ? [] : null);
  await settle(batch, results, told);
}

/**
 * Serves calls where no lock keeps the data where it is: the incognito side of a split extension.
 * @param {Waiting[]} batch
 * @param {() => Promise<void>} told awaited before each settles: listeners have heard what it changed; never rejects
 * @returns {Promise<import('./move_state.js').Moved | null>} not null: the data moved meanwhile, and the calls
 *   are not settled
 */
export async function serveUnlocked(batch, told) {
  /** @type {Notes} */
  const notes = [];
  const results = await start(batch, notes);
  await Promise.allSettled(results);
  let state = await readState();
  if (state && !isMoved(state)) {
    await noteAgain(notes); // they may have been taken for those of an earlier change
    state = await readState();
  }
  if (isMoved(state)) return state;
  await settle(batch, results, told);
  return null;
}

/**
 * @param {Waiting[]} batch
 * @param {Notes | null} notes
 * @returns {Promise<Promise<any>[]>} the results, in the order of the calls
 */
async function start(batch, notes) {
  /** @type {Promise<any>[]} */
  const results = [];
  for (const call of batch) {
    const alone = !call.error && !isOneStep(call.method, notes !== null);
    if (alone) await Promise.allSettled(results);
    const result = call.error ? Promise.reject(call.error) : serve(call.method, call.params, notes);
    result.catch(() => {}); // whoever called gets it
    results.push(result);
    if (alone) await Promise.allSettled([result]);
  }
  return results;
}

/**
 * @param {Waiting[]} batch
 * @param {Promise<any>[]} results
 * @param {() => Promise<void>} told
 */
async function settle(batch, results, told) {
  for (const [index, call] of batch.entries()) {
    const result = /** @type {Promise<any>} */ (results[index]);
    await Promise.allSettled([result]);
    await told();
    await call.settle(result);
  }
}
