// @ts-check
/**
 * Which tabs live, and which pages they show, as far as the browser tells.
 *
 * Rules of this module:
 * - The browser is asked once which tabs live; from then on the tab listeners tell which come and go.
 *   All of it is known only while the listeners are there.
 * - A tab whose end was heard is gone, whatever a list of tabs that was on its way has.
 */

import { liveTabs, TabListeners } from './tab_listeners.js';

/** @typedef {import('./tab_listeners.js').Tab} Tab */
/** @typedef {import('./tab_listeners.js').TabHandlers} TabHandlers */

/** In place of a URL that the extension may not know: the page is another one than before. */
const UNSEEN = '';

export class KnownTabs {
  #listeners;
  /** tabs that were seen to go while the listeners are there
   * @type {Set<number>} */
  #gone = new Set();
  /** tabs that live though a list of tabs that was asked for may not have them
   * @type {Set<number>} */
  #arrived = new Set();
  /** the pages that tabs show
   * @type {Map<number, string>} */
  #pages = new Map();
  /** the tabs that lived when the listeners were there already
   * @type {Promise<Map<number, Tab>> | null} */
  #live = null;

  /** @param {TabHandlers} handlers called when what is known here is up to date */
  constructor(handlers) {
    this.#listeners = new TabListeners({
      removed: (tabId) => {
        this.#removed(tabId);
        handlers.removed(tabId);
      },
      replaced: (added, gone) => {
        this.#replaced(added, gone);
        handlers.replaced(added, gone);
      },
      navigated: (tabId, url) => {
        this.#navigated(tabId, url);
        handlers.navigated(tabId, url);
      },
    });
  }

  /** Whether the browser was asked which tabs live. */
  get asked() {
    return this.#live !== null;
  }

  /** @returns {ReadonlySet<number>} tabs that live though the list of tabs may not have them */
  get arrived() {
    return this.#arrived;
  }

  /**
   * @param {number} tabId
   * @returns {boolean} whether the tab was seen to go
   */
  isGone(tabId) {
    return this.#gone.has(tabId);
  }

  /**
   * @param {number} tabId
   * @returns {string | undefined} the page it shows; undefined: not known
   */
  page(tabId) {
    return this.#pages.get(tabId);
  }

  /**
   * Adds the tab listeners, if they are not there.
   * @throws {SidekeepError} `unavailable` in a context that sees no tabs
   */
  watch() {
    this.#listeners.add();
  }

  /** @param {number} tabId that lives */
  arrive(tabId) {
    this.#arrived.add(tabId);
  }

  /**
   * Asks the browser once which tabs live.
   * @returns {Promise<Map<number, Tab>>} those that lived then, by id
   * @throws {SidekeepError} `unavailable` in a context that sees no tabs
   */
  async live() {
    this.watch();
    this.#live ??= liveTabs();
    try {
      return await this.#live;
    } catch (error) {
      this.#live = null;
      throw error;
    }
  }

  /**
   * Takes over which pages tabs show, where nothing newer was heard.
   * @param {Map<number, Tab>} live
   */
  learnPages(live) {
    for (const [id, { url }] of live) {
      if (url !== undefined && !this.#pages.has(id)) this.#pages.set(id, url);
    }
  }

  /**
   * @param {Map<number, Tab>} live the tabs that lived when the browser was asked
   * @returns {number[]} those that live now
   */
  remaining(live) {
    const all = new Set([...live.keys(), ...this.#arrived]);
    for (const gone of this.#gone) all.delete(gone);
    return [...all];
  }

  /** Takes the tab listeners off and forgets everything. */
  unwatch() {
    this.#listeners.remove();
    this.#live = null;
    this.#gone.clear();
    this.#arrived.clear();
    this.#pages.clear();
  }

  /** @param {number} tabId */
  #removed(tabId) {
    this.#gone.add(tabId);
    this.#arrived.delete(tabId);
    this.#pages.delete(tabId);
  }

  /**
   * @param {number} added
   * @param {number} gone
   */
  #replaced(added, gone) {
    this.#gone.add(gone);
    this.#gone.delete(added);
    this.#arrived.add(added);
    this.#arrived.delete(gone);
    const page = this.#pages.get(gone);
    if (page !== undefined) this.#pages.set(added, page);
    this.#pages.delete(gone);
  }

  /**
   * @param {number} tabId
   * @param {string | undefined} url undefined: the extension may not know
   */
  #navigated(tabId, url) {
    if (url !== undefined) this.#pages.set(tabId, url);
    else if (this.#pages.has(tabId)) this.#pages.set(tabId, UNSEEN);
  }
}
