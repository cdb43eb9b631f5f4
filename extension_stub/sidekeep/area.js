// @ts-check
/**
 * A storage area with the shape and behaviour of one of `chrome.storage`, promise form.
 *
 * Rules of this module:
 * - Wrong argument types throw a TypeError at once, worded as Chromium words it; nothing is sent.
 * - Arguments are converted before the method returns: changing them afterwards has no effect.
 * - Defaults are merged here, the host knows nothing of them.
 * - The calls of one area settle in call order, refused ones too.
 */

import { SidekeepError } from './errors.js';
import { convertDefaults, convertItems, Measure, mergeDefaults } from './values.js';

/** @typedef {import('./calls.js').Calls} Calls */
/** @typedef {import('./index.d.ts').StorageArea} StorageAreaShape */

/** The signatures as Chromium prints them. */
const SIGNATURES = {
  get: 'optional [string|array|object] keys, optional function callback',
  getKeys: 'optional function callback',
  set: 'object items, optional function callback',
  remove: '[string|array] keys, optional function callback',
  clear: 'optional function callback',
  getBytesInUse: 'optional [string|array] keys, optional function callback',
};

/** @implements {StorageAreaShape} */
export class StorageArea {
  #calls;
  #name;

  /**
   * @param {Calls} calls
   * @param {'local'} name of the area
   */
  constructor(calls, name) {
    this.#calls = calls;
    this.#name = name;
  }

  /**
   * @param {null | string | string[] | object} [keys] null or undefined: everything; an object
   *   names keys and gives their defaults
   * @param {...never} surplus
   * @returns {Promise<Record<string, any>>} what is stored, objects merged over their defaults
   */
  get(keys, ...surplus) {
    const calls = this.#calls;
    checkCount('get', surplus);
    if (keys === undefined || keys === null) return this.#items(calls, null);
    if (typeof keys === 'string') return this.#items(calls, keys);
    if (typeof keys !== 'object') throw mismatch('get');
    if (Array.isArray(keys)) return this.#items(calls, checkKeys('get', keys));
    return this.#withDefaults(calls, keys);
  }

  /**
   * @param {...never} surplus
   * @returns {Promise<string[]>} every key, in byte order
   */
  getKeys(...surplus) {
    const calls = this.#calls;
    checkCount('getKeys', surplus);
    return this.#send(calls, 'getKeys', {}, ({ keys }) => keys);
  }

  /**
   * @param {object} items values by key; what JSON cannot carry is skipped as in the real area
   * @param {...never} surplus
   * @returns {Promise<void>} fulfilled when the host has the change on disk
   */
  set(items, ...surplus) {
    const calls = this.#calls;
    checkCount('set', surplus);
    if (typeof items !== 'object' || items === null || Array.isArray(items)) throw mismatch('set');
    const measure = new Measure();
    let converted;
    try {
      converted = convertItems(items, measure);
    } catch (error) {
      return calls.refuse(this.#name, refusal(error));
    }
    return this.#send(calls, 'set', { items: converted }, nothing, measure);
  }

  /**
   * @param {string | string[]} keys
   * @param {...never} surplus
   * @returns {Promise<void>}
   */
  remove(keys, ...surplus) {
    const calls = this.#calls;
    checkCount('remove', surplus);
    if (typeof keys !== 'string' && !Array.isArray(keys)) throw mismatch('remove');
    const list = typeof keys === 'string' ? keys : checkKeys('remove', keys);
    return this.#send(calls, 'remove', { keys: list }, nothing);
  }

  /**
   * @param {...never} surplus
   * @returns {Promise<void>}
   */
  clear(...surplus) {
    const calls = this.#calls;
    checkCount('clear', surplus);
    return this.#send(calls, 'clear', {}, nothing);
  }

  /**
   * @param {null | string | string[]} [keys] null or undefined: everything
   * @param {...never} surplus
   * @returns {Promise<number>} bytes of the keys in UTF-8 and of the values as JSON text
   */
  getBytesInUse(keys, ...surplus) {
    const calls = this.#calls;
    checkCount('getBytesInUse', surplus);
    let list = keys ?? null;
    if (Array.isArray(list)) list = checkKeys('getBytesInUse', list);
    else if (list !== null && typeof list !== 'string') throw mismatch('getBytesInUse');
    return this.#send(calls, 'getBytesInUse', { keys: list }, ({ bytes }) => bytes);
  }

  /**
   * @param {Calls} calls
   * @param {null | string | string[]} keys
   */
  #items(calls, keys) {
    return this.#send(calls, 'get', { keys }, ({ items }) => items);
  }

  /**
   * @param {Calls} calls
   * @param {object} defaults
   */
  #withDefaults(calls, defaults) {
    let converted;
    try {
      converted = convertDefaults(defaults);
    } catch (error) {
      return calls.refuse(this.#name, refusal(error));
    }
    return this.#send(calls, 'get', { keys: Object.keys(converted) }, ({ items }) =>
      mergeDefaults(converted, items),
    );
  }

  /**
   * @param {Calls} calls
   * @param {keyof typeof SIGNATURES} method
   * @param {Record<string, unknown>} params
   * @param {(result: any) => any} view what the caller gets of the result
   * @param {Measure} [measure] of a converted parameter; keys are converted and measured here
   * @returns {Promise<any>}
   */
  #send(calls, method, params, view, measure = new Measure()) {
    const converted = 'items' in params ? params : convertItems(params, measure);
    const whole = { area: this.#name, ...converted };
    return calls.call(`storage.${method}`, whole, measure, this.#name, view);
  }
}

/** The view of a change: it has no result. */
function nothing() {
  return undefined;
}

/**
 * @param {keyof typeof SIGNATURES} method
 * @param {string} ending
 * @returns {TypeError}
 */
function invocationError(method, ending) {
  const call = `storage.${method}(${SIGNATURES[method]})`;
  return new TypeError(`Error in invocation of ${call}: ${ending}`);
}

/** @param {keyof typeof SIGNATURES} method */
function mismatch(method) {
  return invocationError(method, 'No matching signature.');
}

/**
 * @param {keyof typeof SIGNATURES} method
 * @param {unknown[]} surplus arguments; an absent callback may be given as undefined or null
 */
function checkCount(method, surplus) {
  if (surplus.length > 1 || (surplus[0] ?? null) !== null) throw mismatch(method);
}

/**
 * @param {keyof typeof SIGNATURES} method
 * @param {unknown[]} keys
 * @returns {string[]} a copy
 */
function checkKeys(method, keys) {
  // Array.from visits holes too, which are no strings either.
  return Array.from(keys, (key) => {
    if (typeof key === 'string') return key;
    throw invocationError(method, "Error at parameter 'keys': Value did not match any choice.");
  });
}

/**
 * @param {unknown} error what the conversion threw
 * @returns {SidekeepError}
 */
function refusal(error) {
  if (error instanceof SidekeepError) return error;
  throw error;
}
