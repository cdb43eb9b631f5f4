// @ts-check
/**
 * What the stub has to know of the host's methods.
 *
 * Rules of this module:
 * - A method that is not known to only read is taken to change something: it is sent with an `op`
 *   and is applied once however often it is sent, which does a read no harm.
 */

const READS = new Set([
  'host.ping',
  'host.status',
  'siteCache.get', // it drops what is left of dead tabs: done twice is done once
  'storage.get',
  'storage.getBytesInUse',
  'storage.getKeys',
  'storage.watch',
]);

/**
 * @param {string} method
 * @returns {boolean} whether it may change something
 */
export function changes(method) {
  return !READS.has(method);
}
