// @ts-check
/**
 * A value that is kept until it is too old or no longer valid, and then fetched anew.
 *
 * Rules of this module:
 * - A value is fresh while `validate` accepts it and it is at most `maxAge` old. For
 *   `staleWhileRevalidate` milliseconds more it is still handed out, and renewed behind the caller's
 *   back; a renewal that fails there leaves it as it is and is told on the console. One that
 *   `validate` refuses is never handed out.
 * - Renewals of one value are joined, in this context by sharing the promise, between contexts by a
 *   lock after which the value is looked at again.
 */

/** @typedef {{data: any, time: number}} Kept */
/** @typedef {import('./index.d.ts').CacheOptions} CacheOptions */
/** @typedef {import('./index.d.ts').CachedValue} CachedValue */
/**
 * @typedef {object} Shelf where one value lies
 * @property {string} name unique among all values of the extension
 * @property {() => Promise<Kept | null>} read
 * @property {(data: unknown) => Promise<unknown>} write
 */

export class Refresher {
  /** @type {Map<string, Promise<CachedValue>>} renewals on their way, by name */
  #running = new Map();

  /**
   * @param {Shelf} shelf
   * @param {CacheOptions} options
   * @returns {Promise<CachedValue>}
   * @throws whatever `validate` or `refresh` throws
   */
  async value(shelf, options) {
    const kept = await shelf.read();
    const state = kept ? await stateOf(kept, options) : 'expired';
    if (kept && state === 'fresh') return { data: kept.data, time: kept.time, state };
    const renewed = this.#renew(shelf, options);
    if (!kept || state === 'expired') return renewed;
    renewed.catch((error) => {
      console.warn(`The Sidekeep stub could not renew ${shelf.name}:`, error);
    });
    return { data: kept.data, time: kept.time, state: 'stale' };
  }

  /**
   * @param {Shelf} shelf
   * @param {CacheOptions} options
   * @returns {Promise<CachedValue>}
   */
  #renew(shelf, options) {
    const running = this.#running.get(shelf.name);
    if (running) return running;
    const renew = async () => {
      const kept = await shelf.read();
      // Somebody has renewed it since it was looked at.
      if (kept && (await stateOf(kept, options)) === 'fresh') {
        return { data: kept.data, time: kept.time, state: /** @type {const} */ ('fresh') };
      }
      const data = await options.refresh(kept?.data);
      await shelf.write(data);
      return { data, time: Date.now(), state: /** @type {const} */ ('renewed') };
    };
    const locks = globalThis.navigator?.locks;
    const promise = (
      locks ? locks.request(`sidekeep:refresh:${shelf.name}`, renew) : renew()
    ).finally(() => this.#running.delete(shelf.name));
    this.#running.set(shelf.name, promise);
    return promise;
  }
}

/**
 * @param {Kept} kept
 * @param {CacheOptions} options
 * @returns {Promise<'fresh' | 'stale' | 'expired'>}
 */
async function stateOf(kept, { validate, maxAge = Infinity, staleWhileRevalidate = 0 }) {
  const age = Date.now() - kept.time;
  if (age > maxAge + staleWhileRevalidate) return 'expired';
  if (validate && !(await validate(kept.data, kept))) return 'expired';
  return age > maxAge ? 'stale' : 'fresh';
}
