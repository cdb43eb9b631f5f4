// @ts-check
/**
 * The records of site caches, by tab, and which tabs live.
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
import { isSplit, liveTabs, pageOf, tabIfLive, TabListeners, tabsApi } from './tab_listeners.js';

/** @typedef {import('./events.js').StorageEvents} StorageEvents */
/** @typedef {import('./events.js').Changes} Changes */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./site_pages.js').SitePages} SitePages */
/** @typedef {import('./tab_listeners.js').Tab} Tab */
/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./index.d.ts').SiteLookUp} SiteLookUp */
/** @typedef {import('./index.d.ts').SiteRecord} SiteRecord */
/** @typedef {{source: string, url: string, data: unknown}} Content */
/** @typedef {{tabId: number, spoiled: boolean}} Reading */

const PREFIX = 'sc_';
/** Milliseconds after which the host hands a record out no more. */
const MOST_AGE = 24 * 3600 * 1000;
/** Prerendered pages of one tab, and tabs, whose records are held until they are shown. */
const MOST_WAITING = 10;
/** In place of a URL that the extension may not know: the page is another one than before. */
const UNSEEN = '';

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
  #listeners = new TabListeners({
    removed: (tabId) => this.#tabRemoved(tabId),
    replaced: (added, gone) => this.#tabReplaced(added, gone),
    navigated: (tabId, url) => this.#tabNavigated(tabId, url),
  });
  /** what was read, null where there is none
   * @type {Map<number, SiteRecord | null>} */
  #memory = new Map();
  /** tabs that are known to have a record
   * @type {Set<number>} */
  #held = new Set();
  /** tabs that were seen to go while the listeners are there
   * @type {Set<number>} */
  #gone = new Set();
  /** tabs that live though a list of tabs that was asked for may not have them
   * @type {Set<number>} */
  #arrived = new Set();
  /** the pages that tabs show, as far as the browser tells
   * @type {Map<number, string>} */
  #pages = new Map();
  /** the tabs that lived when the listeners were there already
   * @type {Promise<Map<number, Tab>> | null} */
  #live = null;
  /** settles when the host has dropped the records of all others
   * @type {Promise<unknown> | null} */
  #restored = null;
  /** of prerendered pages, by tab and URL, until the tab shows them
   * @type {Map<number, Map<string, Content>>} */
  #waiting = new Map();
  /** @type {Set<Reading>} reads on their way */
  #readings = new Set();
  /** @type {Promise<unknown>} moves of records to new tab ids */
  #moving = Promise.resolve();
  /** @type {number[]} tabs whose records are to be purged next */
  #dead = [];
  #purging = false;
  #busy = 0;
  #hearing = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;

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
  }

  /**
   * Stores the record of a tab.
   * @param {number} tabId
   * @param {Content} content
   * @returns {Promise<{stored: boolean, evicted: number[]}>} not stored: the tab was closed meanwhile
   */
  async put(tabId, { source, url, data }) {
    if (this.#gone.has(tabId)) return { stored: false, evicted: [] };
    return this.#using(async () => {
      this.#listeners.add();
      this.#arrived.add(tabId);
      this.#held.add(tabId);
      this.#spoil(tabId);
      const { evicted = [] } = await this.#call('siteCache.put', { tabId, source, url, data });
      this.#spoil(tabId);
      for (const other of evicted) this.#lose(other);
      return { stored: true, evicted };
    });
  }

  /**
   * Holds the record of a prerendered page until the tab shows that page.
   * @param {number} tabId
   * @param {Content} content
   */
  wait(tabId, content) {
    const waiting = this.#waiting.get(tabId) ?? new Map();
    waiting.delete(content.url);
    waiting.set(content.url, content);
    this.#waiting.delete(tabId);
    this.#waiting.set(tabId, waiting);
    for (const held of [waiting, this.#waiting]) {
      if (held.size > MOST_WAITING) held.delete(held.keys().next().value);
    }
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
      if (this.#gone.has(tabId)) return { record: null, reason: 'closed' };
      const page = url === true ? await pageOf(tabId) : url;
      try {
        const found = await this.#find(tabId, page);
        return this.#gone.has(tabId) ? { record: null, reason: 'closed' } : found;
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
      for (const tabId of tabIds) this.#lose(tabId);
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
    const shown = wanted ?? this.#pages.get(tabId);
    if (shown !== undefined) this.#adopt(tabId, shown);
    const known = this.#memory.get(tabId);
    // Without listeners nothing is known of who lives; that there is no record stays true.
    if (known === null || (known && this.#live)) return this.#judged(tabId, known, wanted);
    this.#listeners.add();
    this.#live ??= liveTabs();
    let live;
    try {
      live = await this.#live;
    } catch (error) {
      this.#live = null;
      throw error;
    }
    await this.#moving;
    for (const [id, { url }] of live) {
      if (url !== undefined && !this.#pages.has(id)) this.#pages.set(id, url);
    }
    const here = live.has(tabId) || this.#arrived.has(tabId);
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
    await this.#moveDiscarded(live, tabId);
    await this.#moving;
    const all = new Set([...live.keys(), ...this.#arrived]);
    for (const gone of this.#gone) all.delete(gone);
    return this.#read(tabId, wanted, [...all]);
  }

  /**
   * @param {number} tabId
   * @param {string | undefined} wanted
   * @param {number[] | null} live the tabs whose records stay; null: all
   * @returns {Promise<SiteLookUp>}
   */
  async #read(tabId, wanted, live) {
    const page = wanted ?? this.#pages.get(tabId);
    if (page !== undefined) this.#adopt(tabId, page);
    const reading = { tabId, spoiled: false };
    this.#readings.add(reading);
    let answer;
    try {
      const asked = live ? { live, ...(page === undefined ? {} : { url: page }) } : {};
      answer = await this.#call('siteCache.get', { tabId, ...asked });
    } finally {
      this.#readings.delete(reading);
    }
    const { record, reason } = answer;
    if (record) this.#held.add(tabId);
    else if (reason === 'none') this.#held.delete(tabId);
    if (reason === 'closed' || reason === 'otherPage') {
      return this.#orCopy(tabId, page, { record, reason });
    }
    if (!reading.spoiled && this.#hearing && this.#options.remember) this.#memory.set(tabId, record);
    return this.#judged(tabId, record, wanted);
  }

  /**
   * @param {number} tabId
   * @param {SiteRecord | null} record of the tab
   * @param {string | undefined} wanted
   * @returns {Promise<SiteLookUp>}
   */
  #judged(tabId, record, wanted) {
    const page = wanted ?? this.#pages.get(tabId);
    /** @type {SiteLookUp} */
    let found = { record: null, reason: 'none' };
    if (record && record.time > Date.now() - MOST_AGE) {
      const fits = page === undefined || record.url === page;
      found = fits ? { record: structuredClone(record) } : { record: null, reason: 'otherPage' };
    }
    return this.#orCopy(tabId, page, found);
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
   * Moves the records of tabs that the browser discarded, and gave other ids, while nobody listened.
   * It can be told where the extension may know which pages tabs show.
   * @param {Map<number, Tab>} live
   * @param {number} asking whose record the host moves itself
   */
  async #moveDiscarded(live, asking) {
    const discarded = [...live].filter(([id, tab]) => id !== asking && tab.discarded && tab.url);
    if (discarded.length === 0) return;
    const { keys } = await this.#call('storage.getKeys', { area: 'session' });
    const recorded = new Set(/** @type {string[]} */ (keys).map(tabOf).filter((tab) => tab !== null));
    const without = discarded.filter(([id]) => !recorded.has(id));
    const lost = [...recorded].filter((id) => !live.has(id) && !this.#arrived.has(id));
    if (without.length === 0 || lost.length === 0) return;
    const { items } = await this.#call('storage.get', { area: 'session', keys: lost.map(keyOf) });
    for (const [id, { url }] of without) {
      const found = lost.findIndex((old) => items[keyOf(old)]?.url === url);
      const [old] = found < 0 ? [] : lost.splice(found, 1);
      if (old !== undefined) await this.#move(old, id, items[keyOf(old)]);
    }
  }

  /**
   * @param {number} old
   * @param {number} tabId its id from now on
   * @param {unknown} record what is stored for it
   */
  async #move(old, tabId, record) {
    const key = keyOf(tabId);
    if (record !== undefined) {
      this.#held.add(tabId);
      try {
        // A record that the tab has got under its new id is newer.
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

  /**
   * @param {number} tabId
   * @param {string | undefined} url undefined: the extension may not know
   */
  #tabNavigated(tabId, url) {
    if (url !== undefined) {
      this.#pages.set(tabId, url);
      this.#adopt(tabId, url);
    } else if (this.#pages.has(tabId)) {
      this.#pages.set(tabId, UNSEEN);
    }
  }

  /**
   * Stores the record that a page left while it was prerendered: now the tab shows it.
   * @param {number} tabId
   * @param {string} url
   */
  #adopt(tabId, url) {
    const waiting = this.#waiting.get(tabId);
    const content = waiting?.get(url);
    if (!waiting || !content) return;
    waiting.delete(url);
    if (waiting.size === 0) this.#waiting.delete(tabId);
    this.put(tabId, content).catch((error) => {
      console.warn('The Sidekeep stub could not keep what a prerendered page told:', error);
    });
  }

  /** @param {number} tabId */
  #tabRemoved(tabId) {
    this.#waiting.delete(tabId);
    this.#gone.add(tabId);
    this.#arrived.delete(tabId);
    this.#pages.delete(tabId);
    this.#lose(tabId);
    this.#dead.push(tabId);
    if (!this.#purging) this.#purgeDead();
  }

  async #purgeDead() {
    this.#purging = true;
    this.#busy += 1;
    try {
      await this.#moving;
      while (this.#dead.length > 0) {
        await this.#call('siteCache.purge', { tabIds: this.#dead.splice(0) });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not purge closed tabs; the next read does:', error);
    }
    this.#purging = false;
    this.#leave();
  }

  /**
   * @param {number} added
   * @param {number} gone
   */
  #tabReplaced(added, gone) {
    this.#gone.add(gone);
    this.#gone.delete(added);
    this.#arrived.add(added);
    this.#arrived.delete(gone);
    const page = this.#pages.get(gone);
    if (page !== undefined) this.#pages.set(added, page);
    this.#pages.delete(gone);
    if (this.#held.has(gone)) this.#held.add(added);
    this.#lose(gone);
    this.#spoil(added);
    this.#busy += 1;
    this.#moving = this.#moving
      .then(async () => {
        const key = keyOf(gone);
        const { items } = await this.#call('storage.get', { area: 'session', keys: [key] });
        await this.#move(gone, added, items[key]);
      })
      .catch((error) => {
        console.warn('The Sidekeep stub could not follow a discarded tab:', error);
      })
      .finally(() => this.#leave());
  }

  // --- what is known -----------------------------------------------------------------------

  /** @param {number} tabId whose record is not, or may not be, what was read */
  #spoil(tabId) {
    this.#memory.delete(tabId);
    for (const reading of this.#readings) if (reading.tabId === tabId) reading.spoiled = true;
  }

  /** @param {number} tabId that has no record now */
  #lose(tabId) {
    this.#held.delete(tabId);
    this.#spoil(tabId);
  }

  #forget() {
    this.#memory.clear();
    for (const reading of this.#readings) reading.spoiled = true;
  }

  #sessionChanged = (/** @type {Changes} */ changes) => {
    for (const [key, change] of Object.entries(changes)) {
      const tabId = tabOf(key);
      if (tabId === null) continue;
      if ('newValue' in change) this.#spoil(tabId);
      else this.#lose(tabId);
    }
    if (this.#busy === 0) this.#settle();
  };

  #statusChanged = (/** @type {import('./index.d.ts').Status} */ { state }) => {
    if (state === 'connecting' || state === 'connected') return;
    this.#forget();
    if (this.#busy === 0) this.#end();
  };

  // --- how long ----------------------------------------------------------------------------

  /**
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #using(work) {
    this.#busy += 1;
    if (!this.#hearing) {
      this.#hearing = true;
      this.#events.session.addListener(this.#sessionChanged);
      this.#status.event.addListener(this.#statusChanged);
    }
    this.#startTimer();
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #startTimer() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#busy > 0) this.#startTimer();
      else this.#end();
    }, this.#options.listen);
  }

  #leave() {
    this.#busy -= 1;
    if (this.#busy > 0) return;
    if (this.#status.get().state === 'connected') this.#settle();
    else this.#end();
  }

  /** Takes the tab listeners off if there is no record that they could be for. */
  #settle() {
    if (this.#held.size === 0) this.#unwatchTabs();
  }

  #unwatchTabs() {
    this.#listeners.remove();
    this.#live = null;
    this.#restored = null;
    this.#gone.clear();
    this.#arrived.clear();
    this.#pages.clear();
  }

  /** Forgets everything and takes all listeners off. */
  #end() {
    clearTimeout(this.#timer);
    this.#forget();
    this.#held.clear();
    this.#unwatchTabs();
    if (!this.#hearing) return;
    this.#hearing = false;
    this.#status.event.removeListener(this.#statusChanged);
    this.#events.session.removeListener(this.#sessionChanged);
  }
}

/** @param {number} tabId */
function keyOf(tabId) {
  return `${PREFIX}${tabId}`;
}

/**
 * @param {string} key
 * @returns {number | null} the tab whose record has this key
 */
function tabOf(key) {
  return /^sc_\d{1,19}$/.test(key) ? Number(key.slice(PREFIX.length)) : null;
}
