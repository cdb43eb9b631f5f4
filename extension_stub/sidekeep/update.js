// @ts-check
/**
 * The arguments of the changes that `chrome.storage` does not have.
 *
 * Rules of this module:
 * - Arguments of the wrong type throw a TypeError at once; nothing is sent.
 * - What a change does to a value is the host's to know.
 */

/** @typedef {import('./index.d.ts').Update} Update */

const KINDS = /** @type {const} */ (['increment', 'push', 'merge', 'value']);

/**
 * @param {unknown} key
 * @returns {string}
 */
export function checkedKey(key) {
  if (typeof key === 'string') return key;
  throw new TypeError('The key must be a string.');
}

/**
 * @param {string} key
 * @param {unknown} change
 * @returns {{kind: typeof KINDS[number], operand: unknown, expect: number | undefined}}
 */
export function checkedUpdate(key, change) {
  if (typeof change !== 'object' || change === null) throw new TypeError('The change must be an object.');
  const fields = /** @type {Record<string, unknown>} */ (change);
  const given = KINDS.filter((kind) => kind in fields);
  const kind = given[0];
  if (!kind || given.length > 1) {
    throw new TypeError('The change must have exactly one of increment, push, merge, value.');
  }
  const operand = fields[kind];
  if (kind === 'increment' && !Number.isFinite(operand)) {
    throw new TypeError('increment must be a finite number.');
  }
  if (kind === 'merge' && (typeof operand !== 'object' || operand === null || Array.isArray(operand))) {
    throw new TypeError('merge must be an object.');
  }
  const { expect } = fields;
  return { kind, operand, expect: expect === undefined ? undefined : checkedRevision(key, expect) };
}

/**
 * @param {unknown} condition the second argument of `set`
 * @returns {Record<string, number> | undefined} undefined if it is no condition
 */
export function checkedExpectations(condition) {
  if (typeof condition !== 'object' || condition === null || !('expect' in condition)) return undefined;
  const { expect } = condition;
  if (typeof expect !== 'object' || expect === null || Array.isArray(expect)) {
    throw new TypeError('expect must be an object of revisions by key.');
  }
  const entries = Object.entries(expect).map(([key, revision]) => [key, checkedRevision(key, revision)]);
  return Object.fromEntries(entries);
}

/**
 * @param {string} key
 * @param {unknown} revision
 * @returns {number}
 */
function checkedRevision(key, revision) {
  if (Number.isSafeInteger(revision) && /** @type {number} */ (revision) >= 0) {
    return /** @type {number} */ (revision);
  }
  throw new TypeError(`The expected revision of ${JSON.stringify(key.slice(0, 64))} must be a whole number.`);
}
