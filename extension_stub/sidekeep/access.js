// @ts-check
/**
 * Whom the areas are open to: the access levels, kept where content scripts cannot reach.
 *
 * The browser remembers its own levels for good, over reloads, updates and restarts, and so does this. It
 * keeps them in a database of the extension's origin: content scripts can write the real local area, and
 * could open the session area for themselves if the levels lay there.
 *
 * Rules of this module:
 * - Nothing is opened before a level is set or asked for, and nothing stays open.
 * - A level that cannot be read is the stricter one: a failure rejects, and who asks refuses.
 */

import { isEmbedded } from './browser.js';
import { SidekeepError } from './errors.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./signatures.js').AccessLevel} AccessLevel */

const DATABASE = 'sidekeep';
const TABLE = 'access';

/** The levels where none was set, as in Chromium. */
const DEFAULTS = Object.freeze(
  /** @type {Record<AreaName, AccessLevel>} */ ({
    local: 'TRUSTED_AND_UNTRUSTED_CONTEXTS',
    session: 'TRUSTED_CONTEXTS',
  }),
);

/**
 * @param {AreaName} area
 * @param {AccessLevel} level
 * @returns {Promise<void>} fulfilled when every context goes by it
 * @throws {SidekeepError} `unavailable` if it cannot be kept; `forbidden` in a page inside one of the web,
 *   which has a database of its own
 */
export async function setAccessLevel(area, level) {
  if (isEmbedded()) {
    throw new SidekeepError('forbidden', 'A page inside a page of the web cannot set the storage access level.', {
      next: 'Set it in the worker, or in a page of the extension that stands by itself.',
    });
  }
  await withTable('readwrite', (table) => table.put(level, area));
}

/**
 * @param {AreaName} area
 * @returns {Promise<boolean>} whether content scripts may use it
 * @throws {SidekeepError} `unavailable` if that is not known
 */
export async function isOpenToContent(area) {
  const level = (await withTable('readonly', (table) => table.get(area))) ?? DEFAULTS[area];
  return level === 'TRUSTED_AND_UNTRUSTED_CONTEXTS';
}

/**
 * @param {IDBTransactionMode} mode
 * @param {(table: IDBObjectStore) => IDBRequest} run
 * @returns {Promise<unknown>} the result
 */
async function withTable(mode, run) {
  try {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(TABLE);
    const database = /** @type {IDBDatabase} */ (await settled(opening));
    try {
      const transaction = database.transaction(TABLE, mode, { durability: 'strict' });
      const request = run(transaction.objectStore(TABLE));
      await new Promise((done, fail) => {
        transaction.oncomplete = done;
        transaction.onabort = () => fail(transaction.error);
      });
      return request.result;
    } finally {
      database.close();
    }
  } catch (error) {
    throw new SidekeepError('unavailable', `The access levels cannot be reached: ${String(error)}`, {
      next: 'Restart the browser and try again.',
    });
  }
}

/**
 * @param {IDBRequest} request
 * @returns {Promise<unknown>}
 */
function settled(request) {
  return new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}
