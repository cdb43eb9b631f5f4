// @ts-check
/**
 * Site caches: what a page told about itself, one record per tab, gone with the tab. This is their
 * public face, `keep.siteCache`; the rules are those of tab_records.js, site_pages.js (copies by
 * URL), site_messages.js and refresh.js.
 *
 * Rules of this module:
 * - Arguments of the wrong type throw at once; everything else that goes wrong rejects.
 * - A read that the host cannot answer is a miss with a reason: a cache must not end what uses it.
 */

import { isBackground, isIncognito } from './browser.js';
import { Refresher } from './refresh.js';
import { readSiteMessage } from './site_messages.js';
import { SitePages } from './site_pages.js';
import { TabListeners, tabsApi } from './tab_listeners.js';
import { TabRecords } from './tab_records.js';

/** @typedef {import('./events.js').StorageEvents} StorageEvents */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./refresh.js').Shelf} Shelf */
/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./index.d.ts').CacheOptions} CacheOptions */
/** @typedef {import('./index.d.ts').SiteCache} SiteCache */
/** @typedef {import('./index.d.ts').SiteCacheOptions} SiteCacheOptions */
/** @typedef {import('./index.d.ts').SiteContent} SiteContent */

/** Milliseconds without use after which the tab listeners are taken off; a worker sleeps after 30 s. */
const LISTEN = 15_000;
const LISTEN_AT_MOST = 20_000;
const CACHE_PREFIX = 'sidekeep:cache:';

/**
 * @param {HostCall} call
 * @param {StorageEvents} events
 * @param {StatusBoard} status
 * @param {unknown} options `siteCache` of `connect`
 * @param {string[]} quiet keys that no event tells of
 * @returns {SiteCache}
 * @throws {TypeError} if an option has the wrong type
 */
export function siteCache(call, events, status, options, quiet) {
  const { byUrl, listen, messages } = checkedOptions(options);
  const pages = byUrl ? new SitePages(call) : null;
  const told = !quiet.some((key) => key.startsWith('sc_') || ['*', 's*', 'sc*'].includes(key));
  const records = new TabRecords(call, events, status, { remember: told, listen, pages });
  const refresher = new Refresher();
  if (isBackground()) clearAtFirstUse(status);

  /**
   * @param {SiteContent & {tabId: number}} content
   * @param {boolean | undefined} incognito whether the tab is of a private window; undefined: not known
   */
  const put = async ({ tabId, source, url, data }, incognito) => {
    const answer = await records.put(tabId, { source, url, data });
    if (pages && answer.stored && !(incognito ?? (await isPrivate(tabId)))) {
      await pages.save({ source, url, data, time: Date.now() });
    }
    return answer;
  };

  /** @type {SiteCache['lookUp']} */
  const lookUp = (tabId, { url } = {}) => {
    checkTab(tabId);
    if (url !== undefined && url !== true) checkText('url', url);
    return records.lookUp(tabId, url);
  };

  /**
   * @param {number} tabId
   * @param {CacheOptions} cache
   * @returns {Shelf} the record of a tab
   */
  function ofTab(tabId, { url, source = 'cached' }) {
    if (url === undefined) throw new TypeError('The cache of a tab needs the url of its page.');
    checkText('url', url);
    return {
      name: `${tabId} ${url}`,
      read: async () => (await lookUp(tabId, { url })).record,
      write: (data) => put({ tabId, source, url, data }, undefined),
    };
  }

  /**
   * @param {string} key
   * @returns {Shelf} an item of the session area
   */
  function ofSession(key) {
    const name = CACHE_PREFIX + key;
    return {
      name,
      read: async () => (await call('storage.get', { area: 'session', keys: [name] })).items[name] ?? null,
      write: (data) =>
        call('storage.set', { area: 'session', items: { [name]: { data, time: Date.now() } } }),
    };
  }

  /** @type {SiteCache} */
  const face = {
    put: (content) => {
      checkTab(content?.tabId);
      checkText('source', content.source);
      checkText('url', content.url);
      if (content.data === undefined) throw new TypeError('data must be a value.');
      return put(content, undefined);
    },
    get: async (tabId, which) => (await lookUp(tabId, which)).record,
    lookUp,
    purge: (tabIds) => {
      const tabs = Array.isArray(tabIds) ? [...tabIds] : [tabIds];
      tabs.forEach(checkTab);
      return records.purge(tabs);
    },
    fromMessage: (message, sender) => {
      const said = readSiteMessage(message, sender, messages);
      if (!said) return false;
      const { tabId, source, url, data, prerendered, incognito } = said;
      if (prerendered) {
        records.wait(tabId, { source, url, data });
        return Promise.resolve(true);
      }
      return put({ tabId, source, url, data }, incognito).then(
        ({ stored }) => stored,
        (error) => {
          console.warn('The Sidekeep stub could not keep what a page told:', error);
          return false;
        },
      );
    },
    forgetPages: async (urls) => {
      if (urls !== undefined) urls.forEach((url) => checkText('url', url));
      await (pages ?? new SitePages(call)).forget(urls);
    },
    cached: (key, cache) => {
      checkCache(cache);
      if (typeof key === 'number') checkTab(key);
      else checkText('The key', key);
      const shelf = typeof key === 'number' ? ofTab(key, cache) : ofSession(key);
      return refresher.value(shelf, cache);
    },
  };
  return Object.freeze(face);
}

/**
 * Whether a tab belongs to a private window; one that cannot be asked counts as if it did.
 * @param {number} tabId
 */
async function isPrivate(tabId) {
  if (isIncognito()) return true;
  try {
    return (await tabsApi().get(tabId)).incognito !== false;
  } catch {
    return true; // it was closed meanwhile
  }
}

/**
 * A worker that was killed may have left tab listeners behind, which wake it for nothing: this life
 * makes the browser forget them as soon as it does anything at all.
 * @param {StatusBoard} status
 */
function clearAtFirstUse(status) {
  const clear = () => {
    status.event.removeListener(clear);
    new TabListeners({ removed: () => {}, replaced: () => {}, navigated: () => {} }).clear();
  };
  status.event.addListener(clear);
}

/**
 * @param {unknown} given
 * @returns {Required<SiteCacheOptions>}
 */
function checkedOptions(given) {
  const options = given ?? {};
  if (typeof options !== 'object') throw new TypeError('siteCache must be an object.');
  const { byUrl = false, listen = LISTEN, messages = {} } = /** @type {SiteCacheOptions} */ (options);
  if (typeof byUrl !== 'boolean') throw new TypeError('siteCache.byUrl must be true or false.');
  if (typeof listen !== 'number' || !(listen >= 0 && listen <= LISTEN_AT_MOST)) {
    throw new TypeError(`siteCache.listen must be a number from 0 to ${LISTEN_AT_MOST}.`);
  }
  for (const [type, kind] of Object.entries(messages)) {
    if (typeof kind?.source !== 'string' || typeof kind.field !== 'string') {
      throw new TypeError(`siteCache.messages.${type} must have a source and a field.`);
    }
  }
  return { byUrl, listen, messages };
}

/** @param {unknown} tabId */
function checkTab(tabId) {
  if (Number.isSafeInteger(tabId) && /** @type {number} */ (tabId) >= 0) return;
  throw new TypeError('The tab must be the id of a tab: a number from 0.');
}

/**
 * @param {string} name
 * @param {unknown} text
 */
function checkText(name, text) {
  if (typeof text !== 'string' || text === '') throw new TypeError(`${name} must be a text.`);
}

/** @param {CacheOptions} cache */
function checkCache(cache) {
  if (typeof cache?.refresh !== 'function') throw new TypeError('refresh must be a function.');
  for (const name of /** @type {const} */ (['maxAge', 'staleWhileRevalidate'])) {
    const value = cache[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw new TypeError(`${name} must be milliseconds.`);
    }
  }
  if (cache.validate !== undefined && typeof cache.validate !== 'function') {
    throw new TypeError('validate must be a function.');
  }
}
