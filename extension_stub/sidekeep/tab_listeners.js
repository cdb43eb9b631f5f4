// @ts-check
/**
 * What the stub asks of `chrome.tabs`, and the listeners there that come and go.
 *
 * Rules of this module:
 * - A worker's late listener that is not taken off is remembered by Chromium, across restarts too:
 *   from then on every tab that closes starts the worker, and the event is lost. So what is added is
 *   taken off again with the same functions, while the worker is awake.
 * - A worker that was killed before it could take them off left them behind. Adding and removing
 *   them in a later life clears that (`clear`).
 * - Ids are there without the "tabs" permission; a tab's URL only with it, or where the extension has
 *   a host permission for the page.
 */

import { extensionApi } from './browser.js';
import { SidekeepError } from './errors.js';

/** @typedef {import('./browser.js').EventTarget_<(...args: any[]) => void>} TabEvent */
/** @typedef {{id?: number, url?: string, incognito?: boolean, discarded?: boolean}} Tab */
/**
 * @typedef {object} TabsApi
 * @property {(query: object) => Promise<Tab[]>} query
 * @property {(tabId: number) => Promise<Tab>} get
 * @property {TabEvent} onRemoved
 * @property {TabEvent} onReplaced
 * @property {TabEvent} onUpdated
 */
/**
 * @typedef {object} TabHandlers
 * @property {(tabId: number) => void} removed
 * @property {(added: number, gone: number) => void} replaced the browser gave a tab another id
 * @property {(tabId: number, url: string | undefined) => void} navigated undefined where the extension
 *   may not know the URL
 */

/**
 * @returns {TabsApi}
 * @throws {SidekeepError} `unavailable` in a context that sees no tabs
 */
export function tabsApi() {
  const api = /** @type {{tabs?: TabsApi}} */ (extensionApi());
  if (api.tabs) return api.tabs;
  throw new SidekeepError('unavailable', 'This context cannot see tabs.', {
    next: 'Use site caches in the worker or a page of the extension.',
  });
}

/**
 * Every tab that exists.
 * @returns {Promise<Map<number, Tab>>} by id
 */
export async function liveTabs() {
  const found = new Map();
  for (const tab of await tabsApi().query({})) if (tab.id !== undefined) found.set(tab.id, tab);
  return found;
}

/**
 * @param {number} tabId
 * @returns {Promise<Tab | null>} null if there is no such tab
 */
export async function tabIfLive(tabId) {
  const tabs = tabsApi();
  // The only reason for which it rejects: the argument is an id.
  return tabs.get(tabId).catch(() => null);
}

/**
 * The page that a tab shows.
 * @param {number} tabId
 * @returns {Promise<string>}
 * @throws {SidekeepError} `notFound` if there is no such tab, `forbidden` if the extension may not
 *   know its URL
 */
export async function pageOf(tabId) {
  const tab = await tabIfLive(tabId);
  if (!tab) throw new SidekeepError('notFound', `There is no tab ${tabId}.`);
  if (tab.url !== undefined) return tab.url;
  throw new SidekeepError('forbidden', `The extension may not know which page tab ${tabId} shows.`, {
    next: 'Add "tabs" or the site to the permissions of the manifest, or give the url.',
  });
}

/**
 * Whether the two sides of the browser have workers of their own, each of which sees only its tabs.
 * @returns {boolean}
 */
export function isSplit() {
  const { runtime } = /** @type {{runtime: {getManifest?: () => {incognito?: string}}}} */ (
    extensionApi()
  );
  return runtime.getManifest?.().incognito === 'split';
}

export class TabListeners {
  #removed;
  #replaced;
  #updated;
  #on = false;

  /** @param {TabHandlers} handlers */
  constructor(handlers) {
    this.#removed = (/** @type {number} */ tabId) => handlers.removed(tabId);
    this.#replaced = (/** @type {number} */ added, /** @type {number} */ gone) =>
      handlers.replaced(added, gone);
    this.#updated = (
      /** @type {number} */ tabId,
      /** @type {{url?: string, status?: string}} */ change,
      /** @type {Tab} */ tab,
    ) => {
      if (change.url !== undefined) handlers.navigated(tabId, change.url);
      else if (change.status === 'loading') handlers.navigated(tabId, tab?.url);
    };
  }

  /** Whether they are added. */
  get on() {
    return this.#on;
  }

  /**
   * Adds them, if they are not.
   * @throws {SidekeepError} `unavailable` in a context that sees no tabs
   */
  add() {
    if (this.#on) return;
    const tabs = tabsApi();
    tabs.onRemoved.addListener(this.#removed);
    tabs.onReplaced?.addListener(this.#replaced); // Firefox knows no such event: ids stay
    tabs.onUpdated.addListener(this.#updated);
    this.#on = true;
  }

  /** Takes them off, if they are there. */
  remove() {
    if (!this.#on) return;
    const tabs = tabsApi();
    tabs.onRemoved.removeListener(this.#removed);
    tabs.onReplaced?.removeListener(this.#replaced);
    tabs.onUpdated.removeListener(this.#updated);
    this.#on = false;
  }

  /** Makes the browser forget what an earlier life of this worker may have left behind. */
  clear() {
    if (this.#on || !(/** @type {{tabs?: TabsApi}} */ (extensionApi()).tabs)) return;
    this.add();
    this.remove();
  }
}
