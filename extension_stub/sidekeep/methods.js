// @ts-check
/**
 * What the stub has to know of the host's methods.
 *
 * Rules of this module:
 * - A method that is not known to only read is taken to change something: it is sent with an `op`
 *   and is applied once however often it is sent, which does a read no harm.
 * - Calls of one lane leave in call order, also when one of them takes long to send: conversations
 *   are part of the local area, site caches of the session area. Only the calls of the areas, which
 *   have that from `chrome.storage`, and of site caches settle in call order too.
 */

/** The name of the ports between content scripts and the relay, if no other is given on both sides. */
export const RELAY = 'sidekeep:relay';

const READS = new Set([
  'attachments.plan',
  'history.list',
  'history.watch',
  'host.ping',
  'host.status',
  'host.verify',
  'images.get',
  'images.thumbnail', // it may keep what it made: done twice is done once
  'sessions.get', // it may bring rows of an older kind into the new form: done twice is done once
  'sessions.list', // likewise
  'siteCache.get', // it drops what is left of dead tabs: done twice is done once
  'storage.get',
  'storage.getBytesInUse',
  'storage.getKeys',
  'storage.watch',
  'trash.list',
]);

/** The lanes of whole families of methods. */
const LANES = new Map([
  ['siteCache', 'session'],
  ['history', 'local'],
  ['sessions', 'local'],
  ['trash', 'local'],
  ['attachments', 'local'],
  ['turns', 'local'],
]);

/**
 * @param {string} method
 * @returns {boolean} whether it may change something
 */
export function changes(method) {
  return !READS.has(method);
}

/**
 * @param {string} method
 * @param {Record<string, unknown>} params
 * @returns {string | null} the lane whose calls leave in call order; null: none
 */
export function laneOf(method, params) {
  const family = familyOf(method);
  return family === 'storage' ? String(params['area']) : (LANES.get(family) ?? null);
}

/**
 * @param {string} method '' for a call that is refused before it is sent
 * @returns {boolean} whether it settles after the calls of its lane that were made before it
 */
export function settlesInOrder(method) {
  return LANES.get(familyOf(method)) !== 'local';
}

/** @param {string} method */
function familyOf(method) {
  return method.slice(0, Math.max(0, method.indexOf('.')));
}
