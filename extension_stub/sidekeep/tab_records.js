// @ts-check
/**
 * The records of site caches, by tab: stored, read and purged. Which tabs live is known to
 * known_tabs.js, what was read to known_records.js; record_moves.js has records follow their tabs.
 *
 * The records lie in the host's session area (docs/protocol.md, `siteCache.*`), named by the run of
 * the browser, so that tab ids of another run reach nothing.
 *
 * Rules of this module:
 * - Nothing is read, and no listener added, before the first call. The first read asks the browser
 *   once which tabs live and has the host drop the records of all others; from then on the tab
 *   listeners tell which go, and what was read once is answered from memory.
 * - A tab whose end was heard is gone, whatever a read that was on its way brings.
 * - Memory is trusted only while the port is open and the host tells of changes of the session area:
 *   what changed there, in whatever context, is read again.
 * - The tab listeners are there only while records are known, and are taken off when the port is
 *   closed, and `listen` milliseconds after the last use (not the last event) in any case. Then the
 *   next read asks again which tabs live.
 * - In a split extension each side sees its own tabs only, so neither has the host drop the rest.
 */

import { SidekeepError } from './errors.js';
import { handedOut, KnownRecords } from './known_records.js';
import { KnownTabs } from './known_tabs.js';
import { Prerendered } from './prerendered.js';
import { RecordMoves, tabOf } from './record_moves.js';
import { isSplit, pageOf, tabIfLive, tabsApi } from './tab_listeners.js';
import { Uses } from './uses.js';

/** @typedef {import('./events.js').StorageEvents} StorageEvents */
/** @typedef {import('./events.js').Changes} Changes */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./site_pages.js').SitePages} SitePages */
/** @typedef {import('./tab_listeners.js').Tab} Tab */
/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./index.d.ts').SiteLookUp} SiteLookUp */
/** @typedef {import('./index.d.ts').SiteRecord} SiteRecord */
/** @typedef {import('./prerendered.js').Content} Content */

/**
 * @typedef {object} TabRecordsOptions
 * @property {boolean} remember whether reads may be answered from memory
 * @property {number} listen milliseconds after the last use that the tab listeners stay
 * @property {SitePages | null} pages copies by URL
 */

export class TabRecords {
  #call;
  #events;
  #status;
  #options;
  #tabs = new KnownTabs({
    removed: (tabId) => this.#tabRemoved(tabId),
    replaced: (added, gone) => this.#tabReplaced(added, gone),
    navigated: (tabId, url) => {
      if (url !== undefined) this.#adopt(tabId, url);
    },
  });
  #known = new KnownRecords();
  #prerendered = new Prerendered();
  #moves;
  /** settles when the host has dropped the records of all others
   * @type {Promise<unknown> | null} */
  #restored = null;
  #uses;
  #hearing = false;

  /**
   * @param {HostCall} call
   * @param {StorageEvents} events
   * @param {StatusBoard} status
   * @param {TabRecordsOptions} options
   */
  constructor(call, events, status, options) {
    this.#call = call;
    this.#events = events;
    this.#status = status;
    this.#options = options;
    this.#uses = new Uses(
      options.listen,
      () => this.#allEnded(),
      () => this.#end(),
    );
    this.#moves = new RecordMoves(call, this.#known, this.#uses);
  }

  /**
   * Stores the record of a tab.
   * @param {number} tabId
   * @param {Content} content
   * @returns {Promise<{stored: boolean, evicted: number[]}>} not stored: the tab was closed meanwhile
   */
  async put(tabId, { source, url, data }) {
    if (this.#tabs.isGone(tabId)) return { stored: false, evicted: [] };
    return this.#using(async () => {
      this.#tabs.watch();
      this.#tabs.arrive(tabId);
      this.#known.hold(tabId);
      this.#known.spoil(tabId);
      const { evicted = [] } = await this.#call('siteCache.put', { tabId, source, url, data });
      this.#known.spoil(tabId);
      for (const other of evicted) this.#known.lose(other);
      return { stored: true, evicted };
    });
  }

  /**
   * Holds the record of a prerendered page until the tab shows that page.
   * @param {number} tabId
   * @param {Content} content
   */
  wait(tabId, content) {
    this.#prerendered.hold(tabId, content);
  }

  /**
   * @param {number} tabId
   * @param {string | true | undefined} url the page that is wanted; true: the one the tab shows
   * @returns {Promise<SiteLookUp>}
   * @throws {SidekeepError} what the browser refuses; what the host refuses is a reason
   */
  lookUp(tabId, url) {
    return this.#using(async () => {
      tabsApi();
      if (this.#tabs.isGone(tabId)) return { record: null, reason: 'closed' };
      const page = url === true ? await pageOf(tabId) : url;
      try {
        const found = await this.#find(tabId, page);
        return this.#tabs.isGone(tabId) ? { record: null, reason: 'closed' } : found;
      } catch (error) {
        if (!(error instanceof SidekeepError) || error.kind === 'invalidParams') throw error;
        return { record: null, reason: 'unavailable', error };
      }
    });
  }

  /**
   * Removes the records of tabs.
   * @param {number[]} tabIds
   * @returns {Promise<void>}
   */
  purge(tabIds) {
    return this.#using(async () => {
      for (const tabId of tabIds) this.#known.lose(tabId);
      await this.#call('siteCache.purge', { tabIds });
    });
  }

  // --- reading -----------------------------------------------------------------------------

  /**
   * @param {number} tabId
   * @param {string | undefined} wanted
   * @returns {Promise<SiteLookUp>}
   */
  async #find(tabId, wanted) {
    const shown = wanted ?? this.#tabs.page(tabId);
    if (shown !== undefined) this.#adopt(tabId, shown);
    const known = this.#known.get(tabId);
    // Without listeners nothing is known of who lives; that there is no record stays true.
    if (known === null || (known && this.#tabs.asked)) return this.#judged(tabId, known, wanted);
    const live = await this.#tabs.live();
    await this.#moves.settled;
    this.#tabs.learnPages(live);
    const here = live.has(tabId) || this.#tabs.arrived.has(tabId);
    if (isSplit()) return here ? this.#read(tabId, wanted, null) : { record: null, reason: 'closed' };
    if (this.#restored) {
      await this.#restored;
      const found = await this.#read(tabId, wanted, null);
      if (here || found.record || (await tabIfLive(tabId))) return found;
      return { record: null, reason: 'closed' };
    }
    const restore = this.#restore(live, tabId, wanted);
    this.#restored = restore;
    try {
      const found = await restore;
      if (found.reason !== 'closed' || !(await tabIfLive(tabId))) return found;
      return await this.#read(tabId, wanted, null); // opened since the tabs were asked for
    } catch (error) {
      if (this.#restored === restore) this.#restored = null;
      throw error;
    }
  }

  /**
   * The first read: the records of tabs that are gone go.
   * @param {Map<number, Tab>} live
   * @param {number} tabId
   * @param {string | undefined} wanted
   */
  async #restore(live, tabId, wanted) {
    await this.#moves.followDiscarded(live, this.#tabs.arrived, tabId);
    await this.#moves.settled;
    return this.#read(tabId, wanted, this.#tabs.remaining(live));
  }

  /**
   * @param {number} tabId
   * @param {string | undefined} wanted
   * @param {number[] | null} live the tabs whose records stay; null: all
   * @returns {Promise<SiteLookUp>}
   */
  async #read(tabId, wanted, live) {
    const page = wanted ?? this.#tabs.page(tabId);
    if (page !== undefined) this.#adopt(tabId, page);
    const reading = this.#known.begin(tabId);
    let answer;
    try {
      const asked = live ? { live, ...(page === undefined ? {} : { url: page }) } : {};
      answer = await this.#call('siteCache.get', { tabId, ...asked });
    } finally {
      this.#known.end(reading);
    }
    const { record, reason } = answer;
    if (record) this.#known.hold(tabId);
    else if (reason === 'none') this.#known.release(tabId);
    if (reason === 'closed' || reason === 'otherPage') {
      return this.#orCopy(tabId, page, { record, reason });
    }
    if (!reading.spoiled && this.#hearing && this.#options.remember) {
      this.#known.remember(tabId, record);
    }
    return this.#judged(tabId, record, wanted);
  }

  /**
   * @param {number} tabId
   * @param {SiteRecord | null} record of the tab
   * @param {string | undefined} wanted
   * @returns {Promise<SiteLookUp>}
   */
  #judged(tabId, record, wanted) {
    const page = wanted ?? this.#tabs.page(tabId);
    return this.#orCopy(tabId, page, handedOut(record, page));
  }

  /**
   * @param {number} tabId
   * @param {string | undefined} page
   * @param {SiteLookUp} found
   * @returns {Promise<SiteLookUp>} a copy of the page's record where the tab has none
   */
  async #orCopy(tabId, page, found) {
    const { pages } = this.#options;
    if (!pages || found.record || found.reason === 'closed') return found;
    const shown = page ?? (await tabIfLive(tabId))?.url;
    const record = shown === undefined ? null : await pages.find(shown);
    return record ? { record, copy: true } : found;
  }

  // --- tabs --------------------------------------------------------------------------------

  /**
   * Stores the record that a page left while it was prerendered: now the tab shows it.
   * @param {number} tabId
   * @param {string} url
   */
  #adopt(tabId, url) {
    const content = this.#prerendered.take(tabId, url);
    if (!content) return;
    this.put(tabId, content).catch((error) => {
      console.warn('The Sidekeep stub could not keep what a prerendered page told:', error);
    });
  }

  /** @param {number} tabId */
  #tabRemoved(tabId) {
    this.#prerendered.drop(tabId);
    this.#known.lose(tabId);
    this.#moves.purge(tabId);
  }

  /**
   * @param {number} added
   * @param {number} gone
   */
  #tabReplaced(added, gone) {
    if (this.#known.holds(gone)) this.#known.hold(added);
    this.#known.lose(gone);
    this.#known.spoil(added);
    this.#moves.follow(gone, added);
  }

  // --- what is heard -----------------------------------------------------------------------

  #sessionChanged = (/** @type {Changes} */ changes) => {
    for (const [key, change] of Object.entries(changes)) {
      const tabId = tabOf(key);
      if (tabId === null) continue;
      if ('newValue' in change) this.#known.spoil(tabId);
      else this.#known.lose(tabId);
    }
    if (this.#uses.none) this.#settle();
  };

  #statusChanged = (/** @type {import('./index.d.ts').Status} */ { state }) => {
    if (state === 'connecting' || state === 'connected') return;
    this.#known.forget();
    if (this.#uses.none) this.#end();
  };

  // --- how long ----------------------------------------------------------------------------

  /**
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #using(work) {
    this.#uses.begin();
    if (!this.#hearing) {
      this.#hearing = true;
      this.#events.session.addListener(this.#sessionChanged);
      this.#status.event.addListener(this.#statusChanged);
    }
    this.#uses.restart();
    try {
      return await work();
    } finally {
      this.#uses.end();
    }
  }

  #allEnded() {
    if (this.#status.get().state === 'connected') this.#settle();
    else this.#end();
  }

  /** Takes the tab listeners off if there is no record that they could be for. */
  #settle() {
    if (this.#known.none) this.#unwatchTabs();
  }

  #unwatchTabs() {
    this.#tabs.unwatch();
    this.#restored = null;
  }

  /** Forgets everything and takes all listeners off. */
  #end() {
    this.#uses.stop();
    this.#known.clear();
    this.#unwatchTabs();
    if (!this.#hearing) return;
    this.#hearing = false;
    this.#status.event.removeListener(this.#statusChanged);
    this.#events.session.removeListener(this.#sessionChanged);
  }
}
