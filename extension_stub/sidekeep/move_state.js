// @ts-check
/**
 * Where the data of a profile is: in the browser's own areas, or with the host. One key of the real local
 * area says it, for every context, for good.
 *
 * | `sidekeep:move` | the truth | originals |
 * | --- | --- | --- |
 * | absent | the real areas | |
 * | `moving` | the real areas; keys that change are noted, to be copied again | |
 * | `moved`, `left: true` | the host | are being removed |
 * | `moved` | the host | gone |
 *
 * Rules of this module:
 * - While calls are served by the real areas the gate is shared; it is exclusive while the state changes.
 *   So no call straddles a change, and what a killed context held is free.
 * - The state needs less room the further it goes: a real area that is full can still be left.
 * - Locks do not reach the incognito side of a split extension: see fallback.js.
 */

import { extensionApi, realStorage } from './browser.js';
import { explainLoss, SidekeepError } from './errors.js';

/** @typedef {import('./browser.js').RealArea} RealArea */
/** @typedef {import('./events.js').AreaName} AreaName */

/** What the stub's own keys in the real areas begin with. */
export const OWN_PREFIX = 'sidekeep:';
export const MOVE_KEY = 'sidekeep:move';
/** Before the name of a key that has changed since the move began. */
export const NOTE_PREFIX = 'sidekeep:again:';

/** The names of the locks. */
const GATE = 'sidekeep:gate';
export const MOVER = 'sidekeep:mover';
export const UPDATE = 'sidekeep:update';

/**
 * The data is with the host.
 * @typedef {object} Moved
 * @property {'moved'} state
 * @property {number} time milliseconds since 1970
 * @property {Record<string, number>} seq what the host had done last, per area
 * @property {Record<string, string>} stores the files that these numbers belong to
 * @property {true} [left] originals are still being removed
 */

/** @typedef {Moved | {state: 'moving', room: string} | null} MoveState */

/** The move has begun; it takes as much room as what comes after it. @type {MoveState} */
export const MOVING = Object.freeze({ state: 'moving', room: ' '.repeat(300) });

/**
 * @param {AreaName} name
 * @returns {RealArea}
 * @throws {SidekeepError} `unavailable` where there is none
 */
export function realArea(name) {
  const area = realStorage()?.[name];
  if (area) return area;
  if (!extensionApi().runtime.id) throw fromBrowser('Extension context invalidated.');
  throw new SidekeepError('unavailable', `The browser gives this context no ${name} storage area.`, {
    next: 'Add "storage" to the permissions of the manifest.',
  });
}

/**
 * @returns {Promise<MoveState>}
 * @throws {SidekeepError} `unavailable` if the real area cannot be read
 */
export async function readState() {
  try {
    return stateIn((await realArea('local').get(MOVE_KEY))[MOVE_KEY]);
  } catch (error) {
    throw fromBrowser(error);
  }
}

/**
 * @param {unknown} value under MOVE_KEY
 * @returns {MoveState}
 */
export function stateIn(value) {
  const state = /** @type {MoveState | undefined} */ (value)?.state;
  return state === 'moved' || state === 'moving' ? /** @type {MoveState} */ (value) : null;
}

/**
 * @param {MoveState} state
 * @returns {state is Moved}
 */
export function isMoved(state) {
  return state?.state === 'moved';
}

/**
 * @template T
 * @param {'shared' | 'exclusive'} mode
 * @param {() => Promise<T>} run
 * @returns {Promise<T>}
 */
export function throughGate(mode, run) {
  return withLock(GATE, run, mode);
}

/**
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} run
 * @param {'shared' | 'exclusive'} [mode]
 * @returns {Promise<T>}
 */
export function withLock(name, run, mode = 'exclusive') {
  const locks = globalThis.navigator?.locks;
  if (!locks) throw new SidekeepError('unavailable', 'This context has no locks (navigator.locks).');
  return /** @type {Promise<T>} */ (locks.request(name, { mode }, run));
}

/**
 * @param {unknown} error what the browser's own storage threw
 * @returns {SidekeepError}
 */
export function fromBrowser(error) {
  if (error instanceof SidekeepError) return error;
  const text = error instanceof Error ? error.message : String(error);
  if (/context invalidated/i.test(text)) return explainLoss(text, '').error;
  if (/quota/i.test(text)) {
    return new SidekeepError('quota', text, {
      next: 'Install the Sidekeep host (./install.sh), which has no such limit, or remove something.',
    });
  }
  return new SidekeepError('internal', `The browser's own storage failed: ${text}`);
}
