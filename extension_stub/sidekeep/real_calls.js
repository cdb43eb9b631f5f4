// @ts-check
/**
 * The calls of a storage area as the host knows them, answered by the browser's own area.
 *
 * Rules of this module:
 * - Parameters and results are those of docs/protocol.md; conversion, merging and views are the caller's.
 * - The stub's own keys are not there: they are neither given nor listed, measured, removed or cleared,
 *   and setting one is refused.
 * - With notes each change also writes, with it or before it, which keys it changed (move_state.js). A note
 *   is one item per key, with another value each time.
 * - What needs revisions is `unavailable`: the browser's areas have none.
 */

import { decodeBuffers } from './buffers.js';
import { SidekeepError } from './errors.js';
import { fromBrowser, NOTE_PREFIX, OWN_PREFIX, realArea, UPDATE, withLock } from './move_state.js';
import { byCodePoint, copied, own, put } from './trees.js';
import { convertItems, convertSessionItems, Measure } from './values.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {Record<string, any>} Items */
/** @typedef {[AreaName, string[]][]} Notes keys that were noted */

/** What the real areas serve. */
export const SERVED = Object.freeze(
  ['get', 'getKeys', 'getBytesInUse', 'set', 'remove', 'clear', 'update'].map((name) => `storage.${name}`),
);

/**
 * @param {string} method
 * @returns {boolean} whether a host can be asked it before the data has moved there
 */
export function isOfHostItself(method) {
  return method.startsWith('host.') && method !== 'host.adopt';
}

/**
 * @param {string} method one of SERVED
 * @param {boolean} noting
 * @returns {boolean} whether one step of the browser does it, so that later calls need not wait
 */
export function isOneStep(method, noting) {
  if (method === 'storage.update' || method === 'storage.clear') return false;
  return !(noting && method === 'storage.remove');
}

/**
 * @param {string} method one of SERVED
 * @param {any} params
 * @param {Notes | null} notes is added to; null: nothing is noted
 * @returns {Promise<any>} what the host would answer
 * @throws {SidekeepError}
 */
export async function serve(method, params, notes) {
  /** @type {AreaName} */
  const area = params.area;
  if (params.revisions || params.expect !== undefined) {
    throw new SidekeepError('unavailable', 'Revisions need the Sidekeep host, which was not reached yet.', {
      next: 'Install the host (./install.sh), or use calls without revisions.',
    });
  }
  try {
    switch (method) {
      case 'storage.get':
        return { items: await get(area, params.keys) };
      case 'storage.getKeys':
        return { keys: await keysOf(area) };
      case 'storage.getBytesInUse':
        return { bytes: await bytesOf(area, params.keys === null ? await keysOf(area) : listed(params.keys)) };
      case 'storage.set':
        await set(area, params.items, notes);
        return {};
      case 'storage.update':
        return await withLock(UPDATE, () => update(area, params, notes));
      case 'storage.remove':
        await remove(area, listed(params.keys), notes);
        return {};
      default:
        await remove(area, await keysOf(area), notes);
        return {};
    }
  } catch (error) {
    throw fromBrowser(error);
  }
}

/**
 * The keys of a real area without the stub's own. A browser that cannot list them has to give everything
 * once; there is no other way to learn them.
 * @param {AreaName} area
 * @returns {Promise<string[]>} in byte order
 */
export async function keysOf(area) {
  return (await allKeys(area)).filter((key) => !isOwn(key)).sort(byCodePoint);
}

/**
 * @param {AreaName} area
 * @returns {Promise<Map<string, unknown>>} keys that were noted, and the values of the notes
 */
export async function readNotes(area) {
  const names = (await allKeys(area)).filter((key) => key.startsWith(NOTE_PREFIX));
  const notes = names.length > 0 ? await realArea(area).get(names) : {};
  return new Map(Object.entries(notes).map(([name, value]) => [name.slice(NOTE_PREFIX.length), value]));
}

/**
 * Notes keys once more.
 * @param {Notes} notes
 */
export async function noteAgain(notes) {
  for (const [area, keys] of notes) await realArea(area).set(notesOf(keys));
}

/**
 * @param {AreaName} area
 * @param {string} key
 * @returns {Promise<{items: Items, measure: Measure}>} the item as it travels to the host; no item if
 *   there is none
 * @throws {SidekeepError} `invalidParams` if the host cannot hold it as it is
 */
export async function itemOf(area, key) {
  const found = await realArea(area).get(key);
  const measure = new Measure();
  const convert = area === 'session' ? convertSessionItems : convertItems;
  let reason = 'it is none that JSON can hold';
  try {
    const items = convert(found, measure);
    if (area === 'session' || same(found, items)) return { items, measure };
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error);
  }
  throw new SidekeepError('invalidParams', `The host cannot keep the value of ${shown(key)}: ${reason}`, {
    next: 'Store it in another form; until then everything stays where it is.',
  });
}

/**
 * Takes the notes of keys away.
 * @param {AreaName} area
 * @param {string[]} keys
 */
export async function forgetNotes(area, keys) {
  await realArea(area).remove(keys.map((key) => NOTE_PREFIX + key));
}

/**
 * @param {AreaName} area
 * @param {string[]} keys bytes of the items, about, as far as the browser tells
 * @returns {Promise<number>}
 */
export async function bytesOf(area, keys) {
  const real = realArea(area);
  if (keys.length === 0) return 0;
  if (real.getBytesInUse) return real.getBytesInUse(keys);
  const texts = Object.entries(await real.get(keys)).map(([key, value]) => key + JSON.stringify(value));
  return new TextEncoder().encode(texts.join('')).length;
}

/**
 * Whether two trees of plain values are equal; a member that is undefined counts as absent.
 * @param {any} left
 * @param {any} right
 * @returns {boolean}
 */
export function same(left, right) {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    const both = Array.isArray(left) && Array.isArray(right) && left.length === right.length;
    return both && left.every((part, index) => same(part, right[index]));
  }
  if (!isPlain(left) || !isPlain(right)) return false;
  const keys = Object.keys(left).filter((key) => left[key] !== undefined);
  if (keys.length !== Object.keys(right).filter((key) => right[key] !== undefined).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && same(left[key], right[key]));
}

/** @param {string} key */
export function isOwn(key) {
  return key.startsWith(OWN_PREFIX);
}

/**
 * @param {AreaName} area
 * @param {null | string | string[]} keys null: everything
 * @returns {Promise<Items>}
 */
async function get(area, keys) {
  const wanted = keys === null ? null : listed(keys);
  const found = await realArea(area).get(wanted);
  const named = Object.keys(found).filter((key) => !isOwn(key)).sort(byCodePoint);
  /** @type {Items} */
  const items = {};
  for (const key of named) put(items, key, found[key]);
  return area === 'session' ? convertSessionItems(items, new Measure()) : items;
}

/**
 * @param {AreaName} area
 * @param {Items} given
 * @param {Notes | null} notes
 */
async function set(area, given, notes) {
  const own = Object.keys(given).find(isOwn);
  if (own !== undefined) {
    throw new SidekeepError('forbidden', `Keys that begin with ${OWN_PREFIX} belong to the stub.`, {
      next: 'Use another key.',
    });
  }
  const items = area === 'session' ? /** @type {Items} */ (decodeBuffers(copied(given))) : given;
  const keys = Object.keys(items);
  notes?.push([area, keys]);
  await realArea(area).set(notes ? { ...items, ...notesOf(keys) } : items);
}

/**
 * @param {AreaName} area
 * @param {string[]} keys
 * @param {Notes | null} notes
 */
async function remove(area, keys, notes) {
  const real = realArea(area);
  notes?.push([area, keys]);
  if (notes && keys.length > 0) await real.set(notesOf(keys));
  await real.remove(keys);
}

/**
 * @param {AreaName} area
 * @param {{key: string, increment?: number, push?: unknown, merge?: object, value?: unknown}} change
 * @param {Notes | null} notes
 */
async function update(area, { key, ...change }, notes) {
  const old = own(await get(area, key), key);
  const value = changed(key, old, change);
  /** @type {Items} */
  const items = {};
  put(items, key, value);
  await set(area, items, notes);
  return 'increment' in change ? { value, revision: 0 } : { revision: 0 };
}

/**
 * @param {string} key
 * @param {unknown} old undefined if there is none
 * @param {{increment?: number, push?: unknown, merge?: object, value?: unknown}} change
 * @returns {unknown}
 * @throws {SidekeepError} `conflict` if the old value is of another type
 */
function changed(key, old, change) {
  if ('value' in change) return change.value;
  if (change.increment !== undefined && (old === undefined || typeof old === 'number')) {
    return (old ?? 0) + change.increment;
  }
  if ('push' in change && (old === undefined || Array.isArray(old))) return [...(old ?? []), change.push];
  if (change.merge && (old === undefined || isPlain(old))) return { .../** @type {object} */ (old), ...change.merge };
  throw new SidekeepError('conflict', `The value of ${shown(key)} is of another type.`, {
    next: 'Read it before changing it.',
  });
}

/**
 * @param {string[]} keys
 * @returns {Items}
 */
function notesOf(keys) {
  const value = crypto.randomUUID();
  return Object.fromEntries(keys.map((key) => [NOTE_PREFIX + key, value]));
}

/**
 * @param {AreaName} area
 * @returns {Promise<string[]>}
 */
async function allKeys(area) {
  const real = realArea(area);
  return real.getKeys ? real.getKeys() : Object.keys(await real.get(null));
}

/**
 * @param {string | string[]} keys
 * @returns {string[]} without the stub's own
 */
function listed(keys) {
  return (typeof keys === 'string' ? [keys] : keys).filter((key) => !isOwn(key));
}

/**
 * @param {unknown} value
 * @returns {value is Items}
 */
function isPlain(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** @param {string} key */
function shown(key) {
  return JSON.stringify(key.slice(0, 64));
}
