// @ts-check
/**
 * Site messages: what a content script tells of the page it runs in.
 *
 * Rules of this module:
 * - The tab and the URL are those the browser gives for the sender; what the message says of them is
 *   not looked at.
 * - A message is `{type: 'sidekeep:site', source, data}`, or one of the types that the extension
 *   named: `connect({siteCache: {messages: {YOUTUBE_DATA: {source: 'youtube', field: 'video'}}}})`.
 * - Unknown types, empty data, and senders without a tab are no site messages.
 * - A frame below the page speaks for the page only where the browser tells the page's URL.
 */

/** @typedef {import('./index.d.ts').SiteMessageKinds} SiteMessageKinds */
/** @typedef {import('./index.d.ts').SiteSender} SiteSender */
/** @typedef {{tabId: number, url: string, source: string, data: unknown, prerendered: boolean, incognito: boolean}} SiteMessage */

const OWN_TYPE = 'sidekeep:site';

/**
 * @param {unknown} message
 * @param {SiteSender} sender
 * @param {SiteMessageKinds} kinds the extension's own types
 * @returns {SiteMessage | null} null if it is no site message
 */
export function readSiteMessage(message, sender, kinds) {
  const tabId = sender?.tab?.id;
  if (tabId === undefined || !Number.isInteger(tabId) || tabId < 0) return null;
  if (typeof message !== 'object' || message === null) return null;
  const said = contentOf(/** @type {Record<string, unknown>} */ (message), kinds);
  const prerendered = sender.documentLifecycle === 'prerender';
  const below = !prerendered && (sender.frameId ?? 0) !== 0;
  const url = below ? sender.tab?.url : sender.url;
  if (!said || typeof url !== 'string') return null;
  return { ...said, tabId, url, prerendered, incognito: sender.tab?.incognito === true };
}

/**
 * @param {Record<string, unknown>} message
 * @param {SiteMessageKinds} kinds
 * @returns {{source: string, data: unknown} | null}
 */
function contentOf(message, kinds) {
  const type = message['type'];
  if (typeof type !== 'string') return null;
  const kind = Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  const source = kind ? kind.source : type === OWN_TYPE ? message['source'] : undefined;
  const data = message[kind?.field ?? 'data'];
  const empty = data === undefined || data === null || data === '';
  return typeof source === 'string' && source !== '' && !empty ? { source, data } : null;
}
