// @ts-check
/**
 * The worker of the shipped extension: the toolbar button opens the page.
 *
 * `keep` is put where the developer tools of the worker can reach it. Nothing is opened for that:
 * the port opens at the first call and closes a few seconds after the last.
 */

import { connect } from './sidekeep/index.js';

Object.assign(globalThis, { keep: connect() });

chrome.action.onClicked.addListener(() => {
  chrome.tabs.create({ url: chrome.runtime.getURL('page.html') });
});
