// @ts-check
/**
 * A storage area with the shape and behaviour of one of `chrome.storage`, promise form, and what
 * that lacks: changes in one step, and changes that depend on a revision.
 *
 * Rules of this module:
 * - Wrong argument types throw a TypeError at once, worded as Chromium words it; nothing is sent.
 * - Arguments are converted before the method returns: changing them afterwards has no effect.
 * - Defaults are merged here, the host knows nothing of them.
 * - The calls of one area settle in call order, refused ones too.
 * - What the real areas do not have is not enumerable, so that the shape stays theirs.
 */

import { decodeBuffers } from './buffers.js';
import { SidekeepError } from './errors.js';
import { mergeDefaults, put } from './trees.js';
import { checkedExpectations, checkedKey, checkedUpdate } from './update.js';
import { convertDefaults, convertItems, convertSessionItems, Measure, ThrowingGetter } from './values.js';

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
   * @param {import('./events.js').AreaName} name
   * @param {StorageAreaShape['onChanged']} onChanged
   */
  constructor(calls, name, onChanged) {
    this.#calls = calls;
    this.#name = name;
    this.onChanged = onChanged;
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
    if (typeof keys === 'string') return this.#items(calls, findable([keys]));
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
   * @param {{expect: Record<string, number>}} [condition] revisions that must be the present ones
   * @param {...never} surplus
   * @returns {Promise<any>} fulfilled when the host has the change on disk; with a condition, with
   *   the new revisions
   */
  set(items, condition, ...surplus) {
    const calls = this.#calls;
    const expect = checkedExpectations(condition);
    checkCount('set', expect ? surplus : [/** @type {any} */ (condition), ...surplus]);
    if (typeof items !== 'object' || items === null || Array.isArray(items)) throw mismatch('set');
    return this.#sendConverted(calls, 'set', items, (converted) => ({ items: converted, expect }), (result) =>
      expect ? { revisions: result.revisions } : undefined,
    );
  }

  /**
   * Changes one value in one step, whoever else changes it at the same time.
   * @param {string} key
   * @param {import('./index.d.ts').Update} change
   * @returns {Promise<import('./index.d.ts').UpdateResult>}
   */
  update(key, change) {
    const calls = this.#calls;
    const { kind, operand, expect } = checkedUpdate(checkedKey(key), change);
    /** @param {Record<string, unknown>} converted */
    const params = (converted) => {
      if (!('operand' in converted)) throw new SidekeepError('invalidParams', `${kind}: not a value.`);
      return { key, [kind]: converted['operand'], expect };
    };
    return this.#sendConverted(calls, 'update', { operand }, params, (result) => result);
  }

  /**
   * @param {null | string | string[]} [keys] null or undefined: everything
   * @returns {Promise<{items: Record<string, any>, revisions: Record<string, number>}>} values with
   *   their revisions, of one moment; 0 for a key that was named and does not exist
   */
  getWithRevisions(keys) {
    const calls = this.#calls;
    const list = typeof keys === 'string' ? [keys] : (keys ?? null);
    if (list !== null && !Array.isArray(list)) throw new TypeError('keys must be a string or an array of strings.');
    const named = list && checkKeys('get', list);
    return this.#send(calls, 'get', { keys: named, revisions: true }, ({ items, revisions }) => {
      for (const key of named ?? []) if (!Object.hasOwn(revisions, key)) put(revisions, key, 0);
      return { items: this.#decoded(items), revisions };
    });
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
    const list = typeof keys === 'string' ? findable([keys]) : checkKeys('remove', keys);
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
    else if (typeof list === 'string') list = findable([list]);
    else if (list !== null) throw mismatch('getBytesInUse');
    return this.#send(calls, 'getBytesInUse', { keys: list }, ({ bytes }) => bytes);
  }

  /**
   * @param {Calls} calls
   * @param {null | string[]} keys
   */
  #items(calls, keys) {
    return this.#send(calls, 'get', { keys }, ({ items }) => this.#decoded(items));
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
      if (error instanceof ThrowingGetter) throw noChoice('get');
      return calls.refuse(this.#name, refusal(error));
    }
    return this.#send(calls, 'get', { keys: Object.keys(converted) }, ({ items }) =>
      mergeDefaults(converted, this.#decoded(items)),
    );
  }

  /**
   * @param {Calls} calls
   * @param {'set' | 'update'} method
   * @param {object} values
   * @param {(converted: Record<string, unknown>) => Record<string, unknown>} params of the call
   * @param {(result: any) => any} view
   * @returns {Promise<any>}
   */
  #sendConverted(calls, method, values, params, view) {
    const measure = new Measure();
    const convert = this.#name === 'session' ? convertSessionItems : convertItems;
    let converted;
    try {
      converted = params(convert(values, measure));
    } catch (error) {
      if (error instanceof ThrowingGetter && method === 'set') {
        throw invocationError('set', `Error at parameter 'items': ${error.message}`);
      }
      return calls.refuse(this.#name, refusal(error));
    }
    const { key, expect, ...change } = converted;
    const whole = { area: this.#name, ...change, ...convertItems({ key, expect }, measure) };
    return calls.call(`storage.${method}`, whole, measure, this.#name, view);
  }

  /**
   * @param {Calls} calls
   * @param {keyof typeof SIGNATURES} method
   * @param {Record<string, unknown>} params
   * @param {(result: any) => any} view what the caller gets of the result
   * @returns {Promise<any>}
   */
  #send(calls, method, params, view) {
    const measure = new Measure();
    const whole = { area: this.#name, ...convertItems(params, measure) };
    return calls.call(`storage.${method}`, whole, measure, this.#name, view);
  }

  /**
   * @param {Record<string, any>} items from the host
   * @returns {Record<string, any>} the same
   */
  #decoded(items) {
    if (this.#name === 'session') decodeBuffers(items);
    return items;
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
 * @returns {string[]} those that can be found
 */
function checkKeys(method, keys) {
  // Array.from visits holes too, which are no strings either.
  const checked = Array.from(keys, (key) => {
    if (typeof key === 'string') return key;
    throw noChoice(method);
  });
  return findable(checked);
}

/** @param {keyof typeof SIGNATURES} method */
function noChoice(method) {
  return invocationError(method, "Error at parameter 'keys': Value did not match any choice.");
}

/**
 * As in the real area, a key with half a surrogate pair is stored with U+FFFD in its place and is
 * found under that name alone.
 * @param {string[]} keys
 * @returns {string[]}
 */
function findable(keys) {
  return keys.filter((key) => key.isWellFormed());
}

/**
 * @param {unknown} error what the conversion threw
 * @returns {SidekeepError}
 */
function refusal(error) {
  if (error instanceof SidekeepError) return error;
  throw error;
}
