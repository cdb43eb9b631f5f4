// @ts-check
/**
 * How arguments of an area's methods are told apart and refused, as Chromium does it.
 *
 * Rules of this module (measured on Chromium 156):
 * - An argument that does not fit may be skipped if it is optional; undefined and null stand for an
 *   optional one. What is left over, or cannot be placed, is "No matching signature."
 * - What is wrong inside an argument is found after all have been placed, and names the parameter.
 * - Everything here throws a TypeError at once, in the promise form and in the callback form.
 */

import { isArray } from './trees.js';

/** @typedef {'get' | 'getKeys' | 'set' | 'remove' | 'clear' | 'getBytesInUse' | 'setAccessLevel'} Method */
/** @typedef {(...args: any[]) => void} Callback */
/** @typedef {'TRUSTED_CONTEXTS' | 'TRUSTED_AND_UNTRUSTED_CONTEXTS'} AccessLevel */

/**
 * @typedef {object} Parameter
 * @property {string} name
 * @property {string} type as Chromium prints it
 * @property {boolean} optional
 * @property {(value: unknown) => boolean} fits
 */

/** @type {Parameter} */
const CALLBACK = {
  name: 'callback',
  type: 'function',
  optional: true,
  fits: (value) => typeof value === 'function',
};

/**
 * @param {string} name
 * @param {string} type
 * @param {boolean} optional
 * @param {Parameter['fits']} fits
 * @returns {Parameter}
 */
const parameter = (name, type, optional, fits) => ({ name, type, optional, fits });

/** @param {unknown} value */
const isObject = (value) => typeof value === 'object' && value !== null && !isArray(value);
/** @param {unknown} value */
const isKeys = (value) => typeof value === 'string' || isArray(value);

/** @type {Record<Method, Parameter[]>} */
const SIGNATURES = {
  get: [parameter('keys', '[string|array|object]', true, (value) => isKeys(value) || isObject(value)), CALLBACK],
  getKeys: [CALLBACK],
  set: [parameter('items', 'object', false, isObject), CALLBACK],
  remove: [parameter('keys', '[string|array]', false, isKeys), CALLBACK],
  clear: [CALLBACK],
  getBytesInUse: [parameter('keys', '[string|array]', true, isKeys), CALLBACK],
  setAccessLevel: [parameter('accessOptions', 'object', false, isObject), CALLBACK],
};

/** The levels, in the order in which Chromium names them. */
export const ACCESS_LEVELS = /** @type {readonly AccessLevel[]} */ (
  Object.freeze(['TRUSTED_AND_UNTRUSTED_CONTEXTS', 'TRUSTED_CONTEXTS'])
);

/**
 * Places the arguments of a call.
 * @param {Method} method
 * @param {unknown[]} given
 * @returns {{first: any, callback: Callback | undefined}} `first` is undefined where it was left out
 * @throws {TypeError} if they cannot be placed
 */
export function placed(method, given) {
  const signature = SIGNATURES[method];
  const values = resolve(given, signature);
  if (!values) throw invocationError(method, 'No matching signature.');
  const callback = /** @type {Callback | undefined} */ (values.at(-1));
  return { first: signature.length > 1 ? values[0] : undefined, callback };
}

/**
 * @param {unknown[]} given
 * @param {Parameter[]} expected
 * @returns {unknown[] | null} one value per parameter, undefined where it was left out
 */
function resolve(given, expected) {
  const [next, ...others] = expected;
  if (!next) return given.length === 0 ? [] : null;
  if (given.length > expected.length) return null;
  if (given.length > 0) {
    const [value, ...rest] = given;
    const absent = next.optional && (value === undefined || value === null);
    if (absent || next.fits(value)) {
      const placedRest = resolve(rest, others);
      if (placedRest) return [absent ? undefined : value, ...placedRest];
    }
  }
  if (!next.optional) return null;
  const skipped = resolve(given, others);
  return skipped && [undefined, ...skipped];
}

/**
 * @param {Method} method
 * @param {unknown[]} keys an array
 * @returns {string[]} the same
 * @throws {TypeError} if one of them is no string
 */
export function checkedKeys(method, keys) {
  // Array.from visits holes too, which are no strings either.
  return Array.from(keys, (key) => {
    if (typeof key === 'string') return key;
    throw noChoice(method);
  });
}

/**
 * @param {object} options of `setAccessLevel`
 * @returns {AccessLevel}
 * @throws {TypeError} if they are not `{accessLevel}` with one of the levels
 */
export function checkedAccessLevel(options) {
  /** @type {AccessLevel | undefined} */
  let level;
  for (const name of script(() => Object.keys(options))) {
    if (name !== 'accessLevel') throw wrongLevel(`Unexpected property: '${name}'.`);
    level = knownLevel(script(() => /** @type {{accessLevel?: unknown}} */ (options).accessLevel));
  }
  if (level) return level;
  throw wrongLevel("Missing required property 'accessLevel'.");
}

/**
 * @param {unknown} level
 * @returns {AccessLevel | undefined} undefined where there is none
 * @throws {TypeError} if it is no level
 */
function knownLevel(level) {
  if (level === undefined || level === null) return undefined;
  const known = ACCESS_LEVELS.find((one) => one === level);
  if (known) return known;
  const wrong =
    typeof level === 'string'
      ? `Value must be one of ${ACCESS_LEVELS.join(', ')}.`
      : `Invalid type: expected storage.AccessLevel, found ${typeName(level)}.`;
  throw wrongLevel(`Error at property 'accessLevel': ${wrong}`);
}

/**
 * @template T
 * @param {() => T} run reads what a script may have made to throw
 * @returns {T}
 */
function script(run) {
  try {
    return run();
  } catch {
    throw wrongLevel('Script threw an error.');
  }
}

/** @param {string} ending */
function wrongLevel(ending) {
  return invocationError('setAccessLevel', `Error at parameter 'accessOptions': ${ending}`);
}

/**
 * @param {unknown} value neither null nor undefined nor a string
 * @returns {string} as Chromium names its type
 */
function typeName(value) {
  if (isArray(value)) return 'array';
  const type = typeof value;
  if (type === 'number') return Object.is(value, /** @type {number} */ (value) | 0) ? 'integer' : 'number';
  return type === 'object' || type === 'function' || type === 'boolean' ? type : 'other';
}

/** @param {Method} method */
export function noChoice(method) {
  return invocationError(method, "Error at parameter 'keys': Value did not match any choice.");
}

/**
 * @param {Method} method
 * @param {string} ending
 * @returns {TypeError}
 */
export function invocationError(method, ending) {
  const parameters = SIGNATURES[method].map(({ name, type, optional }) => `${optional ? 'optional ' : ''}${type} ${name}`);
  return new TypeError(`Error in invocation of storage.${method}(${parameters.join(', ')}): ${ending}`);
}
