// @ts-check
/**
 * Conversion of values as the real `local` area does it, and the size of their JSON text.
 *
 * The serialiser of a native port behaves like JSON.stringify (Date becomes a string, `toJSON` is
 * honoured, typed arrays become objects of indices); `chrome.storage` does not. So every value is
 * converted here first, in one pass, into a tree of plain objects, arrays, strings, finite numbers,
 * booleans and null, that later changes of the original cannot reach.
 *
 * Rules of this module (measured on Chromium 156):
 * - undefined, functions, symbols, bigints, NaN and ±Infinity: skipped as a property, null as an
 *   array element. -0 is 0.
 * - Objects become their own enumerable string-keyed properties, keys sorted by code point; `toJSON`
 *   is ignored; a getter is read once and gives null if it throws. Objects of the platform are {}.
 * - The outermost object is a list of items: it may be of the platform, and none of its getters may
 *   throw.
 * - A back reference is null; a shared reference is copied.
 * - Half surrogate pairs become U+FFFD. Strings are not copied otherwise.
 * - ArrayBuffers, typed arrays and DataViews fail the whole call in the local area; the session
 *   area keeps their bytes (see buffers.js).
 * - A picture as it is drawn is not stored in place of the picture (see drawn.js).
 */

import { bytesOf, encodeBuffer, escapeText } from './buffers.js';
import { refuseDrawn } from './drawn.js';
import { SidekeepError } from './errors.js';
import { byCodePoint, isArray, isBuffer, put, tame } from './trees.js';

/** Deepest value: the host refuses texts nested deeper than 200, request and parameters included. */
export const DEPTH_LIMIT = 196;

const SKIP = Symbol('not a value');

/**
 * What is known of the JSON text of a converted value without writing it: `units` UTF-16 units
 * inside strings (1 to 6 bytes each) and at most `other` bytes outside of them.
 */
export class Measure {
  units = 0;
  other = 0;

  /** About how many bytes the JSON text has; exact for ASCII without escapes. */
  get estimate() {
    return this.units + this.other;
  }

  /** The JSON text has at most so many bytes. */
  get most() {
    return this.units * 6 + this.other;
  }
}

/**
 * Converts what `storage.set`, or any method of the host, is given.
 * @param {object} items an object or array; its own enumerable string keys are taken
 * @param {Measure} measure is added to
 * @returns {Record<string, unknown>} a new plain object
 * @throws {SidekeepError} `invalidParams` for binary buffers, `tooLarge` for too deep nesting
 * @throws {TypeError} for an entry as it is drawn
 */
export function convertItems(items, measure) {
  return new Conversion(measure, refuseBuffer, refuseDrawn).outermost(items);
}

/**
 * Converts what `set` of the session area is given: as `convertItems`, with buffers as text.
 * @param {object} items
 * @param {Measure} measure is added to
 * @returns {Record<string, unknown>} a new plain object
 * @throws {SidekeepError} `tooLarge` for too deep nesting
 */
export function convertSessionItems(items, measure) {
  return new Conversion(measure, encodeBuffer, escapeText).outermost(items);
}

/**
 * Converts the defaults that `storage.get` is given. They are not sent, so binary buffers may
 * stand in them; as in the real area each comes back as an ArrayBuffer.
 * @param {object} defaults
 * @returns {Record<string, unknown>} a new plain object
 * @throws {SidekeepError} `tooLarge` for too deep nesting
 */
export function convertDefaults(defaults) {
  return new Conversion(new Measure(), copyBuffer).outermost(defaults);
}

/** @typedef {import('./trees.js').BinaryBuffer} BinaryBuffer */

/**
 * @param {BinaryBuffer} _buffer
 * @returns {never}
 */
function refuseBuffer(_buffer) {
  throw new SidekeepError('invalidParams', 'Cannot serialize value to JSON', {
    next: 'Store binary data as a string, for instance as a data URL.',
  });
}

/**
 * @param {BinaryBuffer} buffer
 * @returns {ArrayBufferLike}
 */
function copyBuffer(buffer) {
  return bytesOf(buffer).slice().buffer;
}

/** A getter of the outermost object threw; `cause` is what it threw. */
export class ThrowingGetter extends Error {}

/** One pass over one argument. */
class Conversion {
  #measure;
  /** @type {Set<object>} objects whose properties are being read */
  #open = new Set();
  #onBuffer;
  #onText;

  /**
   * @param {Measure} measure
   * @param {(buffer: BinaryBuffer) => unknown} onBuffer what becomes of binary buffers
   * @param {(text: string) => string} [onText] what becomes of strings that are values
   */
  constructor(measure, onBuffer, onText = (text) => text) {
    this.#measure = measure;
    this.#onBuffer = onBuffer;
    this.#onText = onText;
  }

  /**
   * @param {unknown} value
   * @param {number} depth
   * @returns {unknown} SKIP where the real area keeps nothing
   */
  value(value, depth) {
    switch (typeof value) {
      case 'string':
        return this.#string(this.#onText(value));
      case 'number':
        if (!Number.isFinite(value)) return SKIP;
        this.#measure.other += 25;
        return value === 0 ? 0 : value;
      case 'boolean':
        this.#measure.other += 6;
        return value;
      case 'object':
        if (value === null || this.#open.has(value)) {
          this.#measure.other += 5;
          return null;
        }
        if (isBuffer(value)) return this.#buffer(value);
        if (depth > DEPTH_LIMIT) {
          throw new SidekeepError('tooLarge', `A value is nested deeper than ${DEPTH_LIMIT}.`, {
            next: 'Store it in a flatter form.',
          });
        }
        return isArray(value) ? this.#array(value, depth) : this.#dictionary(value, depth);
      default:
        return SKIP;
    }
  }

  /** @param {BinaryBuffer} buffer */
  #buffer(buffer) {
    const kept = this.#onBuffer(buffer);
    return typeof kept === 'string' ? this.#string(kept) : kept;
  }

  /**
   * The items of a call. The outermost object is not itself noted as being read: the real area does
   * not count it when it looks for back references.
   * @param {object} items
   * @returns {Record<string, unknown>}
   * @throws {ThrowingGetter} if one of its own getters throws
   */
  outermost(items) {
    return this.#properties(items, 1, (error) => {
      throw new ThrowingGetter('Script threw an error.', { cause: error });
    });
  }

  /**
   * @param {object} object
   * @param {number} depth
   * @returns {Record<string, unknown>}
   */
  #dictionary(object, depth) {
    if (isPlatformObject(object)) {
      this.#measure.other += 3;
      return {};
    }
    this.#open.add(object);
    const result = this.#properties(object, depth, () => null);
    this.#open.delete(object);
    return result;
  }

  /**
   * @param {object} object
   * @param {number} depth
   * @param {(error: unknown) => unknown} onThrow what a getter that throws gives
   * @returns {Record<string, unknown>}
   */
  #properties(object, depth, onThrow) {
    /** @type {Record<string, unknown>} */
    const result = {};
    this.#measure.other += 3;
    let sorted = true;
    let last = '';
    /** @type {string[]} */
    let keys = [];
    try {
      keys = Object.keys(object);
    } catch (error) {
      onThrow(error); // a proxy
    }
    for (const key of keys) {
      let property;
      try {
        property = /** @type {Record<string, unknown>} */ (object)[key];
      } catch (error) {
        property = onThrow(error);
      }
      const converted = this.value(property, depth + 1);
      if (converted === SKIP) continue;
      this.#measure.other += 4;
      const name = this.#string(key);
      sorted &&= byCodePoint(last, name) <= 0;
      last = name;
      put(result, name, converted);
    }
    return sorted ? result : inOrder(result);
  }

  /**
   * @param {unknown[]} array
   * @param {number} depth
   * @returns {unknown[]}
   */
  #array(array, depth) {
    const result = [];
    this.#measure.other += 3;
    this.#open.add(array);
    // A getter may change its length, as in the real area.
    for (let index = 0; index < array.length; index += 1) {
      let element;
      try {
        element = array[index];
      } catch {
        element = null; // a getter that throws, as among properties
      }
      const converted = this.value(element, depth + 1);
      this.#measure.other += converted === SKIP ? 5 : 1;
      result.push(converted === SKIP ? null : converted);
    }
    this.#open.delete(array);
    return result;
  }

  /**
   * @param {string} string
   * @returns {string}
   */
  #string(string) {
    this.#measure.units += string.length;
    this.#measure.other += 3;
    return string.isWellFormed() ? string : string.toWellFormed();
  }
}

/**
 * The same properties in the order of the code points of their keys.
 * @param {Record<string, unknown>} object
 * @returns {Record<string, unknown>}
 */
function inOrder(object) {
  /** @type {Record<string, unknown>} */
  const result = {};
  for (const key of Object.keys(object).sort(byCodePoint)) put(result, key, object[key]);
  return result;
}

/** Classes of the language itself; objects of these keep their own properties. */
const LANGUAGE_CLASSES = new Set([
  'BigInt',
  'FinalizationRegistry',
  'Iterator',
  'Map',
  'Promise',
  'Set',
  'SharedArrayBuffer',
  'Symbol',
  'WeakMap',
  'WeakRef',
  'WeakSet',
]);

/**
 * Whether the object belongs to the browser (an element, an event, `location`, …). Some of these
 * have enumerable properties of their own, and the real area stores none of them.
 * @param {object} object
 * @returns {boolean}
 */
function isPlatformObject(object) {
  const tag = tame(() => /** @type {{[Symbol.toStringTag]?: unknown}} */ (object)[Symbol.toStringTag], undefined);
  if (typeof tag !== 'string' || LANGUAGE_CLASSES.has(tag) || isBuffer(object)) return false;
  const platformClass = /** @type {Record<string, unknown>} */ (globalThis)[tag];
  return typeof platformClass === 'function' && object instanceof platformClass;
}
