// @ts-check
/**
 * Records in the host's session area follow tabs whose ids change, and go with tabs that close.
 *
 * Rules of this module:
 * - Moves are made one after the other; what depends on them waits for `settled`.
 * - A record that a tab has got under its new id is newer than the one that is moved there.
 * - A move or purge that fails is told in the console: the next read drops the records of all tabs
 *   that are gone.
 */

import { SidekeepError } from './errors.js';

/** @typedef {import('./known_records.js').KnownRecords} KnownRecords */
/** @typedef {import('./tab_listeners.js').Tab} Tab */
/** @typedef {import('./uses.js').Uses} Uses */
/** @typedef {import('./index.d.ts').Keep['call']} HostCall */

const PREFIX = 'sc_';

export class RecordMoves {
  #call;
  #known;
  #uses;
  /** @type {Promise<unknown>} */
  #moving = Promise.resolve();
  /** @type {number[]} tabs whose records are to be purged next */
  #dead = [];
  #purging = false;

  /**
   * @param {HostCall} call
   * @param {KnownRecords} known is told which tabs get a record
   * @param {Uses} uses is told of the work that follows an event
   */
  constructor(call, known, uses) {
    this.#call = call;
    this.#known = known;
    this.#uses = uses;
  }

  /** The moves that were begun; never rejects. */
  get settled() {
    return this.#moving;
  }

  /**
   * Moves the record of a tab that the browser gave another id.
   * @param {number} gone
   * @param {number} added its id from now on
   */
  follow(gone, added) {
    this.#uses.begin();
    this.#moving = this.#moving
      .then(async () => {
        const key = keyOf(gone);
        const { items } = await this.#call('storage.get', { area: 'session', keys: [key] });
        await this.#move(gone, added, items[key]);
      })
      .catch((error) => {
        console.warn('The Sidekeep stub could not follow a discarded tab:', error);
      })
      .finally(() => this.#uses.end());
  }

  /**
   * Moves the records of tabs that the browser discarded, and gave other ids, while nobody listened.
   * It can be told where the extension may know which pages tabs show.
   * @param {Map<number, Tab>} live
   * @param {ReadonlySet<number>} arrived tabs that live too
   * @param {number} asking whose record the host moves itself
   * @returns {Promise<void>}
   */
  async followDiscarded(live, arrived, asking) {
    const discarded = [...live].filter(([id, tab]) => id !== asking && tab.discarded && tab.url);
    if (discarded.length === 0) return;
    const { keys } = await this.#call('storage.getKeys', { area: 'session' });
    const recorded = new Set(/** @type {string[]} */ (keys).map(tabOf).filter((tab) => tab !== null));
    const without = discarded.filter(([id]) => !recorded.has(id));
    const lost = [...recorded].filter((id) => !live.has(id) && !arrived.has(id));
    if (without.length === 0 || lost.length === 0) return;
    const { items } = await this.#call('storage.get', { area: 'session', keys: lost.map(keyOf) });
    for (const [id, { url }] of without) {
      const found = lost.findIndex((old) => items[keyOf(old)]?.url === url);
      const [old] = found < 0 ? [] : lost.splice(found, 1);
      if (old !== undefined) await this.#move(old, id, items[keyOf(old)]);
    }
  }

  /**
   * Purges the record of a tab that was closed; those that close meanwhile go together.
   * @param {number} tabId
   */
  purge(tabId) {
    this.#dead.push(tabId);
    if (!this.#purging) this.#purgeDead();
  }

  async #purgeDead() {
    this.#purging = true;
    this.#uses.begin();
    try {
      await this.#moving;
      while (this.#dead.length > 0) {
        await this.#call('siteCache.purge', { tabIds: this.#dead.splice(0) });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not purge closed tabs; the next read does:', error);
    }
    this.#purging = false;
    this.#uses.end();
  }

  /**
   * @param {number} old
   * @param {number} tabId its id from now on
   * @param {unknown} record what is stored for it
   */
  async #move(old, tabId, record) {
    const key = keyOf(tabId);
    if (record !== undefined) {
      this.#known.hold(tabId);
      try {
        await this.#call('storage.set', {
          area: 'session',
          items: { [key]: record },
          expect: { [key]: 0 },
        });
      } catch (error) {
        if (!(error instanceof SidekeepError && error.kind === 'conflict')) throw error;
      }
    }
    await this.#call('siteCache.purge', { tabIds: [old] });
  }
}

/** @param {number} tabId */
function keyOf(tabId) {
  return `${PREFIX}${tabId}`;
}

/**
 * @param {string} key of the session area
 * @returns {number | null} the tab whose record has this key
 */
export function tabOf(key) {
  return /^sc_\d{1,19}$/.test(key) ? Number(key.slice(PREFIX.length)) : null;
}
