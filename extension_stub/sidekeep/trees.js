// @ts-check
/**
 * Trees of plain values: their order, how they are copied and merged.
 */

/** @typedef {ArrayBuffer | ArrayBufferView} BinaryBuffer */

/**
 * Sets an own property, `__proto__` like any other.
 * @param {Record<string, unknown>} object
 * @param {string} key
 * @param {unknown} value
 */
export function put(object, key, value) {
  if (key === '__proto__') {
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  } else {
    object[key] = value;
  }
}

/**
 * What an object has under a key of an application's. A plain look-up of `constructor`, `valueOf` or
 * `__proto__` finds what every object inherits.
 * @template T
 * @param {Record<string, T>} object
 * @param {string} key
 * @returns {T | undefined} undefined: nothing of its own
 */
export function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * Compares as UTF-8 bytes would; JavaScript's own order puts U+E000…U+FFFF after surrogate pairs.
 * @param {string} left
 * @param {string} right
 * @returns {number}
 */
export function byCodePoint(left, right) {
  if (left === right) return 0;
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return rank(a) - rank(b);
  }
  return left.length - right.length;
}

/**
 * @param {number} unit
 * @returns {number} surrogates above every other UTF-16 unit
 */
function rank(unit) {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/**
 * @param {object} object
 * @returns {object is BinaryBuffer}
 */
export function isBuffer(object) {
  return ArrayBuffer.isView(object) || tame(() => object instanceof ArrayBuffer, false);
}

/**
 * @param {unknown} value
 * @returns {value is unknown[]}
 */
export function isArray(value) {
  return tame(() => Array.isArray(value), false);
}

/**
 * Asks an object something that a proxy may refuse, as one that was revoked does.
 * @template T
 * @param {() => T} ask
 * @param {T} refused what is taken for the answer then
 * @returns {T}
 */
export function tame(ask, refused) {
  try {
    return ask();
  } catch {
    return refused;
  }
}

/**
 * A copy of a tree; strings, which cannot be changed, are shared.
 * @template T
 * @param {T} value
 * @param {(text: string) => string} [onText] what becomes of the strings that are values
 * @returns {T}
 */
export function copied(value, onText) {
  if (typeof value === 'string') return onText ? /** @type {T} */ (onText(value)) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof ArrayBuffer) return /** @type {T} */ (value.slice(0));
  if (Array.isArray(value)) return /** @type {T} */ (value.map((part) => copied(part, onText)));
  /** @type {Record<string, unknown>} */
  const result = {};
  for (const [key, part] of Object.entries(value)) put(result, key, copied(part, onText));
  return /** @type {T} */ (result);
}

/**
 * What `get` with defaults gives: stored values over defaults, objects merged at every level, keys
 * sorted.
 * @param {Record<string, unknown>} defaults converted
 * @param {Record<string, unknown>} stored
 * @returns {Record<string, unknown>}
 */
export function mergeDefaults(defaults, stored) {
  /** @type {Record<string, unknown>} */
  const result = {};
  for (const key of Object.keys({ ...defaults, ...stored }).sort(byCodePoint)) {
    const fallback = own(defaults, key);
    if (!Object.hasOwn(stored, key)) {
      put(result, key, fallback);
      continue;
    }
    const value = stored[key];
    const merged =
      isDictionary(fallback) && isDictionary(value) ? mergeDefaults(fallback, value) : value;
    put(result, key, merged);
  }
  return result;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isDictionary(value) {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isBuffer(value)
  );
}
