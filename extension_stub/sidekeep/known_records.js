// @ts-check
/**
 * What is known of the records of tabs without asking the host.
 *
 * Rules of this module:
 * - What changed while a read was on its way is not remembered from that read.
 * - That a tab has a record may be known though the record is not.
 * - A remembered record is handed out as the host would: a copy, not too old, of the wanted page.
 */

/** @typedef {import('./index.d.ts').SiteRecord} SiteRecord */
/** @typedef {import('./index.d.ts').SiteLookUp} SiteLookUp */
/** @typedef {{tabId: number, spoiled: boolean}} Reading */

/** Milliseconds after which the host hands a record out no more. */
const MOST_AGE = 24 * 3600 * 1000;

export class KnownRecords {
  /** what was read, null where there is none
   * @type {Map<number, SiteRecord | null>} */
  #memory = new Map();
  /** tabs that are known to have a record
   * @type {Set<number>} */
  #held = new Set();
  /** @type {Set<Reading>} reads on their way */
  #readings = new Set();

  /** Whether no tab is known to have a record. */
  get none() {
    return this.#held.size === 0;
  }

  /**
   * @param {number} tabId
   * @returns {SiteRecord | null | undefined} null: it has none; undefined: not known
   */
  get(tabId) {
    return this.#memory.get(tabId);
  }

  /**
   * @param {number} tabId
   * @returns {boolean} whether the tab is known to have a record
   */
  holds(tabId) {
    return this.#held.has(tabId);
  }

  /** @param {number} tabId that has a record, or is getting one */
  hold(tabId) {
    this.#held.add(tabId);
  }

  /** @param {number} tabId that has no record, as was read */
  release(tabId) {
    this.#held.delete(tabId);
  }

  /**
   * A read of a tab's record is on its way.
   * @param {number} tabId
   * @returns {Reading} spoiled as soon as the record may have changed; to be given to `end`
   */
  begin(tabId) {
    const reading = { tabId, spoiled: false };
    this.#readings.add(reading);
    return reading;
  }

  /** @param {Reading} reading that has arrived or failed */
  end(reading) {
    this.#readings.delete(reading);
  }

  /**
   * @param {number} tabId
   * @param {SiteRecord | null} record as it was read
   */
  remember(tabId, record) {
    this.#memory.set(tabId, record);
  }

  /** @param {number} tabId whose record is not, or may not be, what was read */
  spoil(tabId) {
    this.#memory.delete(tabId);
    for (const reading of this.#readings) if (reading.tabId === tabId) reading.spoiled = true;
  }

  /** @param {number} tabId that has no record now */
  lose(tabId) {
    this.#held.delete(tabId);
    this.spoil(tabId);
  }

  /** Nothing of what was read can be trusted any more. */
  forget() {
    this.#memory.clear();
    for (const reading of this.#readings) reading.spoiled = true;
  }

  /** Forgets also which tabs have a record. */
  clear() {
    this.forget();
    this.#held.clear();
  }
}

/**
 * @param {SiteRecord | null} record of the tab
 * @param {string | undefined} page the one that is wanted; undefined: any
 * @returns {SiteLookUp} a copy of the record, or why there is none
 */
export function handedOut(record, page) {
  const fresh = record && record.time > Date.now() - MOST_AGE;
  if (!fresh) return { record: null, reason: 'none' };
  if (page !== undefined && record.url !== page) return { record: null, reason: 'otherPage' };
  return { record: structuredClone(record) };
}
