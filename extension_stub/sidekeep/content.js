// @ts-check
/**
 * The areas in a content script, carried by the relay in the worker (relay.js).
 *
 *     const { connectContent } = await import(chrome.runtime.getURL('sidekeep/content.js'));
 *     const { storage } = connectContent();
 *
 * Rules of this module:
 * - Importing it and connecting touch nothing; the first call, or the first listener, opens a port.
 * - The types of everything public are in content.d.ts.
 */

import { asChrome, AccessLevel } from './as_chrome.js';
import { chromeEvent } from './chrome_event.js';
import { SidekeepError } from './errors.js';
import { Event } from './event.js';
import { StorageEvents } from './events.js';
import { RELAY } from './methods.js';
import { RelayLink } from './relay_link.js';
import { StatusBoard } from './status.js';
import { storageArea } from './storage_area.js';
import { Measure } from './values.js';

export { SidekeepError };

/** @typedef {import('./events.js').AreaName} AreaName */

/**
 * Makes a link to the worker.
 * @param {import('./content.d.ts').ContentOptions} [options]
 * @returns {import('./content.d.ts').ContentKeep}
 * @throws {TypeError} if an option has the wrong type or is out of range
 */
export function connectContent({ timeout = 30_000, idle = 5000, name = RELAY } = {}) {
  for (const [what, value] of Object.entries({ timeout, idle })) {
    if (!(typeof value === 'number' && value > 0 && value < 2 ** 31)) throw new TypeError(`${what} must be milliseconds.`);
  }
  if (typeof name !== 'string' || name === '') throw new TypeError('name must be a text.');
  const status = new StatusBoard();
  const events = new StorageEvents([], () => link.listenersChanged());
  /** @type {Event<[{readonly area: AreaName}]>} */
  const onGap = new Event();
  const link = new RelayLink({ timeout, idle, name }, status, events, onGap);
  // The worker refuses it: access levels are for trusted contexts to set.
  const setLevel = (/** @type {AreaName} */ area) =>
    link.call('setAccessLevel', { area }, new Measure(), area);
  const storage = Object.freeze({
    session: storageArea(link, 'session', chromeEvent(events.session), setLevel),
    local: storageArea(link, 'local', chromeEvent(events.local), setLevel),
    onChanged: chromeEvent(events.all),
    AccessLevel,
  });
  return Object.freeze({
    storage,
    asChrome: asChrome(storage),
    onGap,
    status: () => status.get(),
    onStatus: status.event,
    close: () => link.close(),
  });
}
