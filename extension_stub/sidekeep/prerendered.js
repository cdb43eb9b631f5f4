// @ts-check
/**
 * What prerendered pages told, until a tab shows them.
 *
 * Rules of this module:
 * - A page that is never shown leaves nothing: what waits is in memory only, of the newest pages of a
 *   tab and the newest tabs.
 */

/** @typedef {{source: string, url: string, data: unknown}} Content */

/** Prerendered pages of one tab, and tabs, whose records are held until they are shown. */
const MOST_WAITING = 10;

export class Prerendered {
  /** by tab and URL
   * @type {Map<number, Map<string, Content>>} */
  #waiting = new Map();

  /**
   * Holds the record of a prerendered page.
   * @param {number} tabId
   * @param {Content} content
   */
  hold(tabId, content) {
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
   * Hands out what a page told, once: now the tab shows it.
   * @param {number} tabId
   * @param {string} url
   * @returns {Content | null} null if the page told nothing while it was prerendered
   */
  take(tabId, url) {
    const waiting = this.#waiting.get(tabId);
    const content = waiting?.get(url);
    if (!waiting || !content) return null;
    waiting.delete(url);
    if (waiting.size === 0) this.#waiting.delete(tabId);
    return content;
  }

  /** @param {number} tabId that was closed */
  drop(tabId) {
    this.#waiting.delete(tabId);
  }
}
