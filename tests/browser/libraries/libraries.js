/** All libraries at once, in a page as in the worker: `libraries.<name>.work()` and the like. */

import './adopt.js';
import * as extendChrome from './extend_chrome.js';
import * as localForage from './local_forage.js';
import * as optionsSync from './options_sync.js';
import * as plasmo from './plasmo.js';
import * as polyfill from './polyfill.js';
import * as reduxPersist from './redux_persist.js';
import * as storageCache from './storage_cache.js';
import * as webextCore from './webext_core.js';
import * as webextStorage from './webext_storage.js';
import * as wxt from './wxt.js';

globalThis.libraries = {
  extendChrome,
  localForage,
  optionsSync,
  plasmo,
  polyfill,
  reduxPersist,
  storageCache,
  webextCore,
  webextStorage,
  wxt,
};
