// @ts-check
/**
 * The stub of Sidekeep: an extension's storage, kept by a native host in a file of the user's own.
 *
 *     import { connect } from './sidekeep/index.js';
 *     const keep = connect();
 *     await keep.storage.local.set({ note: 'kept' });
 *
 * Rules of this module:
 * - Importing it adds no listener and opens no port; nor does `connect`, but for the one listener
 *   that `wake` asks for. The first call, or the first listener, opens the port.
 * - The types of everything public are in index.d.ts.
 */

import { setAccessLevel } from './access.js';
import { asChrome, AccessLevel } from './as_chrome.js';
import { attachments } from './attachments.js';
import { duringTurn } from './awake.js';
import { isBackground } from './browser.js';
import { Calls } from './calls.js';
import { chromeEvent } from './chrome_event.js';
import { ConversationWatcher } from './conversation_events.js';
import { SidekeepError } from './errors.js';
import { StorageEvents } from './events.js';
import { Fallback } from './fallback.js';
import { history } from './history.js';
import { images } from './images.js';
import { laneOf } from './methods.js';
import { notices } from './notices.js';
import { PlaceStore } from './place.js';
import { helloSettings } from './requests.js';
import { sessions, trash } from './sessions.js';
import { settings } from './settings.js';
import { siteCache } from './site_cache.js';
import { StatusBoard } from './status.js';
import { storageArea } from './storage_area.js';
import { turns } from './turns.js';
import { convertItems, Measure } from './values.js';
import { verifying } from './verify.js';
import { listenForWake, Nudge, Waker } from './wake.js';
import { Watcher, watcherOf } from './watcher.js';

export { SidekeepError };

/** @typedef {import('./index.d.ts').ConnectOptions} ConnectOptions */
/** @typedef {import('./index.d.ts').Keep} Keep */

/** Milliseconds without a call after which the port is closed: it keeps a worker awake. */
const IDLE_IN_BACKGROUND = 5000;
const IDLE_IN_PAGE = 60_000;

/**
 * Makes a link to the host; it opens its port at the first call.
 * @param {ConnectOptions} [options]
 * @returns {Keep}
 * @throws {TypeError} if an option has the wrong type or is out of range
 */
export function connect(options = {}) {
  const background = isBackground();
  const wake = checkedFlag('wake', options.wake ?? false);
  const waker = new Waker();
  const link = {
    host: checkedHost(options.host ?? 'org.sidekeep.host'),
    timeout: checkedNumber('timeout', options.timeout ?? 10_000, 1, 2 ** 31 - 1),
    idle: checkedIdle(options.idle ?? (background ? IDLE_IN_BACKGROUND : IDLE_IN_PAGE)),
    window: checkedNumber('window', options.window ?? 16, 1, 64),
    background,
    hello: helloSettings(options.attachmentPrefix, options.requests),
    changed: () => {
      nudge.post();
      if (wake && !background) waker.wake();
    },
  };
  const status = new StatusBoard();
  const quiet = checkedPatterns(options.quiet ?? []);
  /**
   * @param {import('./watches.js').Watcher} which
   * @param {boolean} gained
   */
  const turned = (which, gained) => {
    calls.listenersChanged(which, gained);
    if (background) nudge.listen(calls.listening); // a page that listens has its port
    fallback?.listenersChanged();
  };
  const events = new StorageEvents(quiet, (gained) => turned(watcher, gained));
  const watcher = new Watcher(events, background ? new PlaceStore() : null);
  /** @type {ConversationWatcher} */
  const conversations = new ConversationWatcher(
    (gained) => turned(conversations, gained),
    background ? new PlaceStore(':history') : null,
  );
  const calls = new Calls(link, status, [watcher, conversations]);
  const nudge = new Nudge(link.host, () => calls.hear());
  if (wake && background) listenForWake(() => calls.hear());
  const resumed = () => void (background && nudge.listen(calls.listening));
  const fallback = checkedFallback(options.fallback ?? 'error')
    ? new Fallback({ calls, events, watcher, status, timeout: link.timeout, resumed })
    : null;
  const carrier = fallback ?? calls;
  const storage = Object.freeze({
    session: storageArea(carrier, 'session', chromeEvent(events.session), setAccessLevel),
    local: storageArea(carrier, 'local', chromeEvent(events.local), setAccessLevel),
    onChanged: chromeEvent(events.all),
    AccessLevel,
  });

  /**
   * @param {import('./area.js').Carrier} by
   * @returns {Keep['call']}
   */
  const caller = (by) => (method, params = {}) => {
    if (typeof method !== 'string') throw new TypeError('The method must be a string.');
    if (typeof params !== 'object' || params === null || Array.isArray(params)) {
      throw new TypeError('The parameters must be an object.');
    }
    const measure = new Measure();
    let converted;
    try {
      converted = convertItems(params, measure);
    } catch (error) {
      if (error instanceof TypeError) throw error;
      return Promise.reject(error);
    }
    return by.call(method, converted, measure, laneOf(method, converted));
  };
  const call = caller(carrier);

  /** @type {Keep} */
  const keep = Object.freeze({
    storage,
    asChrome: asChrome(storage),
    settings: settings(storage.local, options.settings),
    history: history(call, conversations.history),
    sessions: sessions(call, conversations.sessions),
    attachments: attachments(call),
    turns: turns(call, () => calls.hold()),
    images: images(call),
    trash: trash(call),
    verify: verifying(call, calls.progress),
    call,
    siteCache: siteCache(caller(fallback?.hosted ?? calls), events, status, options.siteCache, quiet),
    duringTurn,
    status: () => status.get(),
    onStatus: status.event,
    ...notices(call, status.notices),
    onGap: watcher.onGap,
    retry: async () => {
      calls.retry();
      await fallback?.retry();
      await call('host.ping');
      return status.get();
    },
    close: async () => {
      if (fallback) await fallback.close();
      await calls.close();
      nudge.close();
    },
  });
  watcherOf.set(keep, watcher);
  return keep;
}

/**
 * @param {unknown} host
 * @returns {string}
 */
function checkedHost(host) {
  if (typeof host === 'string' && /^\w+(\.\w+)*$/.test(host)) return host;
  throw new TypeError('host must be the name of a native host: letters, digits, dots, underscores.');
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {number} least
 * @param {number} most
 * @returns {number}
 */
function checkedNumber(name, value, least, most) {
  if (typeof value === 'number' && value >= least && value <= most) return Math.floor(value);
  throw new TypeError(`${name} must be a number from ${least} to ${most}.`);
}

/**
 * @param {unknown} idle
 * @returns {number}
 */
function checkedIdle(idle) {
  return idle === Infinity ? Infinity : checkedNumber('idle', idle, 0, 2 ** 31 - 1);
}

/**
 * @param {string} name
 * @param {unknown} flag
 * @returns {boolean}
 */
function checkedFlag(name, flag) {
  if (typeof flag === 'boolean') return flag;
  throw new TypeError(`${name} must be true or false.`);
}

/**
 * @param {unknown} fallback
 * @returns {boolean} whether the browser's areas serve until there is a host
 */
function checkedFallback(fallback) {
  if (fallback === 'browser' || fallback === 'error') return fallback === 'browser';
  throw new TypeError("fallback must be 'error' or 'browser'.");
}

/**
 * @param {unknown} patterns
 * @returns {string[]}
 */
function checkedPatterns(patterns) {
  const isPattern = (/** @type {unknown} */ one) => typeof one === 'string' && !one.slice(0, -1).includes('*');
  if (Array.isArray(patterns) && patterns.every(isPattern)) return [...patterns];
  throw new TypeError('quiet must be an array of keys; a * may stand at the end of one.');
}
