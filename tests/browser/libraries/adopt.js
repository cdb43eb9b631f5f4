/**
 * Puts the stub in the place of `chrome` and `browser`, where libraries look for them.
 *
 * Rules of this module:
 * - It comes before every library, many of which look when they are imported.
 * - A page opened with `?chrome` has no `browser`, as in a Chromium that has only `chrome`.
 * - A page opened with `?real` keeps the browser's own, to be compared with.
 * - The browser's own storage stays reachable, so that a test can look what lies in it.
 */

import { connect } from '/sidekeep/index.js';

const realStorage = chrome.storage;
const keep = connect();
Object.assign(globalThis, { realStorage, keep });
if (location.search !== '?real') {
  globalThis.chrome = keep.asChrome();
  if (location.search === '?chrome') delete globalThis.browser;
  else globalThis.browser = chrome;
}
