// @ts-check
/**
 * Copies of site caches by URL, for extensions that asked for them: they outlive the browser run,
 * after which tab ids mean nothing.
 *
 * Rules of this module:
 * - They are items of the local area: one copy per page (`sidekeep:site:<url>`) and an index
 *   (`sidekeep:sites`), changed together or not at all.
 * - At most 100 pages of 5,000,000 bytes together, the oldest go first; one of more than 1,000,000
 *   bytes is not kept, nor one whose URL is no http(s) address of at most 2,000 characters; none is
 *   handed out after 7 days.
 * - Pages of private windows are never copied. Whoever copies must know that it is none.
 */

import { SidekeepError } from './errors.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./index.d.ts').SiteRecord} SiteRecord */
/** @typedef {Record<string, [time: number, bytes: number]>} PageIndex */

export const INDEX_KEY = 'sidekeep:sites';
export const PAGE_PREFIX = 'sidekeep:site:';
const MOST_PAGES = 100;
const MOST_BYTES = 5_000_000;
const MOST_BYTES_EACH = 1_000_000;
const MOST_AGE = 7 * 24 * 3600 * 1000;
const MOST_URL = 2000;
/** Times that a change of the index is tried while other contexts change it. */
const TRIES = 10;

export class SitePages {
  #call;
  /** @type {Promise<unknown>} the change before the next */
  #last = Promise.resolve();

  /** @param {HostCall} call */
  constructor(call) {
    this.#call = call;
  }

  /**
   * Keeps a copy of a page's record, in the order of the calls.
   * @param {SiteRecord} record
   * @returns {Promise<void>}
   */
  save(record) {
    const bytes = JSON.stringify(record.data)?.length ?? 0;
    if (!/^https?:/.test(record.url) || record.url.length > MOST_URL || bytes > MOST_BYTES_EACH) {
      return Promise.resolve();
    }
    const saved = this.#last.then(() =>
      this.#change((index) => {
        index[record.url] = [record.time, bytes];
        return { [PAGE_PREFIX + record.url]: record };
      }),
    );
    this.#last = saved.catch(() => {}); // its caller hears of it; the next change goes on
    return saved;
  }

  /**
   * @param {string} url
   * @returns {Promise<SiteRecord | null>}
   */
  async find(url) {
    const key = PAGE_PREFIX + url;
    const { items } = await this.#call('storage.get', { area: 'local', keys: [key] });
    const record = items[key];
    return isRecord(record) && record.time > Date.now() - MOST_AGE ? record : null;
  }

  /**
   * Removes copies.
   * @param {string[] | undefined} urls undefined: all
   * @returns {Promise<void>}
   */
  forget(urls) {
    const forgotten = this.#last.then(async () => {
      const { keys } = await this.#call('storage.getKeys', { area: 'local' });
      const kept = /** @type {string[]} */ (keys).filter((key) => key.startsWith(PAGE_PREFIX));
      const gone = urls ? urls.map((url) => PAGE_PREFIX + url) : kept;
      await this.#call('storage.remove', { area: 'local', keys: gone });
      await this.#change((index) => {
        for (const key of gone) delete index[key.slice(PAGE_PREFIX.length)];
        return {};
      });
    });
    this.#last = forgotten.catch(() => {});
    return forgotten;
  }

  /**
   * @param {(index: PageIndex) => Record<string, unknown>} change of the index; returns items that
   *   are stored with it
   */
  async #change(change) {
    for (let tries = 1; ; tries += 1) {
      const { items, revisions } = await this.#call('storage.get', {
        area: 'local',
        keys: [INDEX_KEY],
        revisions: true,
      });
      /** @type {PageIndex} */
      const index = { ...items[INDEX_KEY] };
      const stored = change(index);
      const gone = tooMany(index);
      for (const url of gone) delete index[url];
      const expect = { [INDEX_KEY]: revisions?.[INDEX_KEY] ?? 0 };
      try {
        await this.#call('storage.set', { area: 'local', items: { ...stored, [INDEX_KEY]: index }, expect });
      } catch (error) {
        if (error instanceof SidekeepError && error.kind === 'conflict' && tries < TRIES) continue;
        throw error;
      }
      if (gone.length > 0) {
        const keys = gone.map((url) => PAGE_PREFIX + url);
        await this.#call('storage.remove', { area: 'local', keys });
      }
      return;
    }
  }
}

/**
 * @param {PageIndex} index
 * @returns {string[]} URLs that have to go, the oldest first
 */
function tooMany(index) {
  const byAge = Object.entries(index).sort(([, a], [, b]) => a[0] - b[0]);
  let bytes = byAge.reduce((sum, [, [, size]]) => sum + size, 0);
  const gone = [];
  for (const [url, [time, size]] of byAge) {
    const fits = byAge.length - gone.length <= MOST_PAGES && bytes <= MOST_BYTES;
    if (fits && time > Date.now() - MOST_AGE) break;
    gone.push(url);
    bytes -= size;
  }
  return gone;
}

/**
 * @param {any} value
 * @returns {value is SiteRecord}
 */
function isRecord(value) {
  return typeof value?.url === 'string' && typeof value.source === 'string' && typeof value.time === 'number';
}
