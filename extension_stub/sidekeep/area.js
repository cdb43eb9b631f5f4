// @ts-check
/**
 * What the calls of a storage area do, in the promise form: conversion, merging of defaults, and what
 * `chrome.storage` lacks, changes in one step and changes that depend on a revision.
 *
 * Rules of this module:
 * - Arguments are converted before the method returns: changing them afterwards has no effect.
 * - Defaults are merged here, the host knows nothing of them.
 * - The calls of one area settle in call order, refused ones too.
 * - Which arguments go together, callbacks and the shape of the area are those of storage_area.js.
 */

import { decodeBuffers } from './buffers.js';
import { SidekeepError } from './errors.js';
import { checkedKeys, invocationError, noChoice } from './signatures.js';
import { isArray, mergeDefaults, put } from './trees.js';
import { checkedKey, checkedUpdate } from './update.js';
import { convertDefaults, convertItems, convertSessionItems, Measure, ThrowingGetter } from './values.js';

/** @typedef {'get' | 'getKeys' | 'set' | 'update' | 'remove' | 'clear' | 'getBytesInUse'} HostMethod */

/**
 * Who carries calls to the host: the calls of this context, or those of a relay.
 * @typedef {object} Carrier
 * @property {(method: string, params: object, measure: Measure, lane: string | null, view?: (result: any) => any)
 *   => Promise<any>} call
 * @property {(lane: string, error: SidekeepError) => Promise<any>} refuse a call that fails before it is sent
 */

export class Area {
  #calls;
  #name;

  /**
   * @param {Carrier} calls
   * @param {import('./events.js').AreaName} name
   */
  constructor(calls, name) {
    this.#calls = calls;
    this.#name = name;
  }

  /**
   * @param {undefined | string | unknown[] | object} keys undefined: everything; an object names keys and
   *   gives their defaults
   * @returns {Promise<Record<string, any>>} what is stored, objects merged over their defaults
   */
  get(keys) {
    if (typeof keys === 'object' && !isArray(keys)) return this.#withDefaults(keys);
    return this.#send('get', { keys: chosen('get', keys) }, ({ items }) => this.#decoded(items));
  }

  /** @returns {Promise<string[]>} every key, in byte order */
  getKeys() {
    return this.#send('getKeys', {}, ({ keys }) => keys);
  }

  /**
   * @param {object} items values by key; what JSON cannot carry is skipped as in the real area
   * @param {Record<string, number>} [expect] revisions that must be the present ones
   * @returns {Promise<any>} fulfilled when the host has the change on disk; with `expect`, with the new
   *   revisions
   */
  set(items, expect) {
    return this.#sendConverted('set', items, (converted) => ({ items: converted, expect }), (result) =>
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
    const { kind, operand, expect } = checkedUpdate(checkedKey(key), change);
    /** @param {Record<string, unknown>} converted */
    const params = (converted) => {
      if (!('operand' in converted)) throw new SidekeepError('invalidParams', `${kind}: not a value.`);
      return { key, [kind]: converted['operand'], expect };
    };
    return this.#sendConverted('update', { operand }, params, (result) => result);
  }

  /**
   * @param {null | string | string[]} [keys] null or undefined: everything
   * @returns {Promise<{items: Record<string, any>, revisions: Record<string, number>}>} values with
   *   their revisions, of one moment; 0 for a key that was named and does not exist
   */
  getWithRevisions(keys) {
    const list = typeof keys === 'string' ? [keys] : (keys ?? null);
    if (list !== null && !Array.isArray(list)) throw new TypeError('keys must be a string or an array of strings.');
    const named = list && findable(checkedKeys('get', list));
    return this.#send('get', { keys: named, revisions: true }, ({ items, revisions }) => {
      for (const key of named ?? []) if (!Object.hasOwn(revisions, key)) put(revisions, key, 0);
      return { items: this.#decoded(items), revisions };
    });
  }

  /**
   * @param {string | unknown[]} keys
   * @returns {Promise<void>}
   */
  remove(keys) {
    return this.#send('remove', { keys: chosen('remove', keys) }, nothing);
  }

  /** @returns {Promise<void>} */
  clear() {
    return this.#send('clear', {}, nothing);
  }

  /**
   * @param {undefined | string | unknown[]} keys undefined: everything
   * @returns {Promise<number>} bytes of the keys in UTF-8 and of the values as JSON text
   */
  getBytesInUse(keys) {
    return this.#send('getBytesInUse', { keys: chosen('getBytesInUse', keys) }, ({ bytes }) => bytes);
  }

  /** @param {object} defaults */
  #withDefaults(defaults) {
    let converted;
    try {
      converted = convertDefaults(defaults);
    } catch (error) {
      if (error instanceof ThrowingGetter) throw noChoice('get');
      return this.#calls.refuse(this.#name, refusal(error));
    }
    return this.#send('get', { keys: Object.keys(converted) }, ({ items }) =>
      mergeDefaults(converted, this.#decoded(items)),
    );
  }

  /**
   * @param {'set' | 'update'} method
   * @param {object} values
   * @param {(converted: Record<string, unknown>) => Record<string, unknown>} params of the call
   * @param {(result: any) => any} view
   * @returns {Promise<any>}
   */
  #sendConverted(method, values, params, view) {
    const measure = new Measure();
    const convert = this.#name === 'session' ? convertSessionItems : convertItems;
    let converted;
    try {
      converted = params(convert(values, measure));
    } catch (error) {
      if (error instanceof ThrowingGetter && method === 'set') {
        throw invocationError('set', `Error at parameter 'items': ${error.message}`);
      }
      return this.#calls.refuse(this.#name, refusal(error));
    }
    const { key, expect, ...change } = converted;
    const whole = { area: this.#name, ...change, ...convertItems({ key, expect }, measure) };
    return this.#calls.call(`storage.${method}`, whole, measure, this.#name, view);
  }

  /**
   * @param {HostMethod} method
   * @param {Record<string, unknown>} params
   * @param {(result: any) => any} view what the caller gets of the result
   * @returns {Promise<any>}
   */
  #send(method, params, view) {
    const measure = new Measure();
    const whole = { area: this.#name, ...convertItems(params, measure) };
    return this.#calls.call(`storage.${method}`, whole, measure, this.#name, view);
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
 * @param {'get' | 'remove' | 'getBytesInUse'} method
 * @param {undefined | string | unknown[]} keys
 * @returns {string[] | null} null: everything
 */
function chosen(method, keys) {
  if (keys === undefined) return null;
  return findable(typeof keys === 'string' ? [keys] : checkedKeys(method, keys));
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
