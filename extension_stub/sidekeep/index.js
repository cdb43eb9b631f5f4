// @ts-check
/**
 * The stub of Sidekeep: an extension's storage, kept by a native host in a file of the user's own.
 *
 *     import { connect } from './sidekeep/index.js';
 *     const keep = connect();
 *     await keep.storage.local.set({ note: 'kept' });
 *
 * Rules of this module:
 * - Importing it adds no listener and opens no port; nor does `connect`. The first call does.
 * - The types of everything public are in index.d.ts.
 */

import { StorageArea } from './area.js';
import { isBackground } from './browser.js';
import { Calls } from './calls.js';
import { SidekeepError } from './errors.js';
import { StatusBoard } from './status.js';
import { convertItems, Measure } from './values.js';

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
  const settings = {
    host: checkedHost(options.host ?? 'org.sidekeep.host'),
    timeout: checkedNumber('timeout', options.timeout ?? 10_000, 1, 2 ** 31 - 1),
    idle: checkedIdle(options.idle ?? (isBackground() ? IDLE_IN_BACKGROUND : IDLE_IN_PAGE)),
    window: checkedNumber('window', options.window ?? 16, 1, 64),
  };
  const status = new StatusBoard();
  const calls = new Calls(settings, status);
  const storage = Object.freeze({ local: new StorageArea(calls, 'local') });

  /** @type {Keep['call']} */
  const call = (method, params = {}) => {
    if (typeof method !== 'string') throw new TypeError('The method must be a string.');
    if (typeof params !== 'object' || params === null || Array.isArray(params)) {
      throw new TypeError('The parameters must be an object.');
    }
    const measure = new Measure();
    let converted;
    try {
      converted = convertItems(params, measure);
    } catch (error) {
      return Promise.reject(error);
    }
    const lane = method.startsWith('storage.') ? String(converted['area']) : null;
    return calls.call(method, converted, measure, lane);
  };

  return Object.freeze({
    storage,
    call,
    status: () => status.get(),
    onStatus: status.event,
    retry: async () => {
      calls.retry();
      await call('host.ping');
      return status.get();
    },
    close: () => calls.close(),
  });
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
