// @ts-check
/**
 * What became of a storage area, told as `chrome.storage` tells it: one event per call, the area's
 * own listeners first, then those of all areas, before the promise of the call that caused it.
 *
 * Rules of this module:
 * - An area's listener gets the changes alone, a listener of all areas also the area's name.
 * - Both get trees of their own: changing what one was given reaches nobody else.
 * - Keys that match a pattern of `quiet` are left out; an event without keys is none.
 * - Nothing here knows of ports, places or sequence numbers.
 */

import { decodeBuffers } from './buffers.js';
import { Event } from './event.js';
import { copied, put } from './trees.js';

/** @typedef {'local' | 'session'} AreaName */
/** @typedef {Record<string, {newValue?: any, oldValue?: any}>} Changes */

/** The areas, in the order in which they are watched. */
export const AREAS = /** @type {readonly AreaName[]} */ (Object.freeze(['local', 'session']));

/**
 * An event that says when it gains its first or loses its last listener.
 * @template {unknown[]} Args
 * @extends {Event<Args>}
 */
export class ListenedEvent extends Event {
  #onTurn;

  /** @param {(gained: boolean) => void} onTurn called when somebody listens now, or nobody any more */
  constructor(onTurn) {
    super();
    this.#onTurn = onTurn;
  }

  /**
   * @override
   * @param {(...args: Args) => void} listener
   */
  addListener(listener) {
    const before = this.hasListeners();
    super.addListener(listener);
    if (!before) this.#onTurn(true);
  }

  /**
   * @override
   * @param {(...args: Args) => void} listener
   */
  removeListener(listener) {
    const before = this.hasListeners();
    super.removeListener(listener);
    if (before && !this.hasListeners()) this.#onTurn(false);
  }
}

export class StorageEvents {
  #isQuiet;
  /** @type {ListenedEvent<[Changes]>} */
  local;
  /** @type {ListenedEvent<[Changes]>} */
  session;
  /** of all areas
   * @type {ListenedEvent<[Changes, AreaName]>} */
  all;

  /**
   * @param {string[]} quiet keys that no event tells of; a trailing * stands for any ending
   * @param {(gained: boolean) => void} onTurn called when an event gains its first or loses its last
   *   listener
   */
  constructor(quiet, onTurn) {
    this.#isQuiet = matcher(quiet);
    this.local = new ListenedEvent(onTurn);
    this.session = new ListenedEvent(onTurn);
    this.all = new ListenedEvent(onTurn);
  }

  /** @returns {AreaName[]} the areas that somebody listens to */
  get areas() {
    return AREAS.filter((area) => this.all.hasListeners() || this[area].hasListeners());
  }

  /**
   * Tells the listeners.
   * @param {AreaName} area
   * @param {Changes} received from the host, in byte order of the keys
   */
  tell(area, received) {
    /** @type {Changes} */
    const changes = {};
    for (const [key, change] of Object.entries(received)) {
      if (this.#isQuiet(key)) continue;
      put(changes, key, area === 'session' ? decodeBuffers(change) : change);
    }
    if (Object.keys(changes).length === 0) return;
    const two = this[area].hasListeners() && this.all.hasListeners();
    const copy = two ? copied(changes) : changes;
    this[area].emit(changes);
    this.all.emit(copy, area);
  }
}

/**
 * @param {string[]} patterns
 * @returns {(key: string) => boolean}
 */
function matcher(patterns) {
  const whole = new Set(patterns.filter((pattern) => !pattern.endsWith('*')));
  const starts = patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1));
  return (key) => whole.has(key) || starts.some((start) => key.startsWith(start));
}
