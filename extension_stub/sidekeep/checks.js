// @ts-check
/**
 * Checks of arguments, for calls that `chrome.storage` does not have.
 *
 * Rules of this module:
 * - What has the wrong type throws a TypeError that names the argument; nothing is sent.
 * - An optional argument may be undefined, never null: null is what a call answers where there is
 *   nothing, and must not turn into "all" or "the newest".
 */

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {string}
 */
export function checkedText(name, value) {
  if (typeof value === 'string') return value;
  throw new TypeError(`${name} must be a text.`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {string | undefined}
 */
export function optionalText(name, value) {
  return value === undefined ? undefined : checkedText(name, value);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} [least]
 * @param {number} [most]
 * @returns {number}
 */
export function checkedWhole(name, value, least = 0, most = Number.MAX_SAFE_INTEGER) {
  if (Number.isSafeInteger(value)) {
    const number = /** @type {number} */ (value);
    if (number >= least && number <= most) return number;
  }
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw new TypeError(`${name} must be a whole number ${range}.`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} [least]
 * @param {number} [most]
 * @returns {number | undefined}
 */
export function optionalWhole(name, value, least, most) {
  return value === undefined ? undefined : checkedWhole(name, value, least, most);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {boolean | undefined}
 */
export function optionalFlag(name, value) {
  if (value === undefined || typeof value === 'boolean') return value;
  throw new TypeError(`${name} must be true or false.`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {Record<string, unknown>} an object that is no array
 */
export function checkedFields(name, value) {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return /** @type {Record<string, unknown>} */ (value);
  }
  throw new TypeError(`${name} must be an object.`);
}

/**
 * The fields of optional options.
 * @param {unknown} value
 * @returns {Record<string, unknown>}
 */
export function checkedOptions(value) {
  return value === undefined ? {} : checkedFields('The options', value);
}

/**
 * @param {unknown} value
 * @returns {unknown} a value that JSON can carry at all
 */
export function checkedEntry(value) {
  const type = typeof value;
  const isValue = type === 'number' ? Number.isFinite(value) : ['string', 'boolean', 'object'].includes(type);
  if (isValue) return value;
  throw new TypeError('An entry must be a value that JSON can carry.');
}

/**
 * @param {unknown} value one entry, or an array of them
 * @returns {unknown[]}
 */
export function checkedEntries(value) {
  // Array.from visits holes too, which are no values.
  return Array.isArray(value) ? Array.from(value, checkedEntry) : [checkedEntry(value)];
}

const PIXELS = ['full', 'bounded', 'thumbnail', 'none'];

/**
 * @param {unknown} given which entries are to be listed, and how their pictures are delivered
 * @returns {Record<string, unknown>}
 */
export function checkedList(given) {
  const { offset, limit, before, after, pixels, budget } = checkedOptions(given);
  if ([offset, before, after].filter((one) => one !== undefined).length > 1) {
    throw new TypeError('Only one of offset, before and after may be given.');
  }
  if (pixels !== undefined && !PIXELS.includes(/** @type {string} */ (pixels))) {
    throw new TypeError(`pixels must be one of ${PIXELS.join(', ')}.`);
  }
  return {
    offset: optionalWhole('offset', offset, Number.MIN_SAFE_INTEGER),
    limit: optionalWhole('limit', limit),
    before: optionalText('before', before),
    after: optionalText('after', after),
    pixels,
    budget: optionalWhole('budget', budget),
  };
}
