// @ts-check
/**
 * What this context has heard of each area, and what it asks the host to tell.
 *
 * Rules of this module:
 * - A place is a sequence number in a file, which its epoch names. Every new port watches from the
 *   places, so that a lost port, or a sleep of the worker, loses nothing and tells nothing twice.
 * - The place moves on when an event is told. Where nobody listens there is none: a new listener
 *   hears what happens from then on.
 * - What can no longer be told is a gap: the application is told to read again.
 * - An area that nobody listens to is not asked for.
 */

import { Event } from './event.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./events.js').StorageEvents} StorageEvents */
/** @typedef {import('./place.js').PlaceStore<AreaName>} PlaceStore */
/** @typedef {import('./watches.js').Watcher} StandingWatcher */
/** @typedef {import('./place.js').Place} Place */
/** @typedef {{areas: AreaName[], since: Record<string, number>, stores: Record<string, string>}} Watch */

/** The watcher of each link, for what relays its events. @type {WeakMap<object, Watcher>} */
export const watcherOf = new WeakMap();

/** @implements {StandingWatcher} */
export class Watcher {
  method = 'storage.watch';
  /** @type {Event<[{area: AreaName}]>} */
  onGap = new Event();
  #events;
  #memory;
  /** @type {Map<AreaName, Place>} */
  #places = new Map();
  /** areas whose first watch may have been lost with its port, and events with it
   * @type {Set<AreaName>} */
  #unsure = new Set();
  /** areas whose gap was told before the host told it
   * @type {Set<AreaName>} */
  #told = new Set();

  /**
   * @param {StorageEvents} events
   * @param {PlaceStore | null} memory where places outlive this context; null: nowhere
   */
  constructor(events, memory) {
    this.#events = events;
    this.#memory = memory;
  }

  /** Whether somebody listens. */
  get listening() {
    return this.#events.areas.length > 0;
  }

  /**
   * @param {AreaName} area
   * @returns {Place | undefined} up to where its listeners have heard
   */
  placeOf(area) {
    return this.#places.get(area);
  }

  /**
   * Has a listener that is about to be added hear from a place of its own.
   * @param {AreaName} area
   * @param {Place} place up to where it has heard
   * @returns {boolean} whether it will miss nothing
   */
  resume(area, place) {
    const known = this.#places.get(area);
    if (known) return known.seq === place.seq && known.store === place.store;
    if (this.#events.areas.includes(area)) return false; // others hear from a place that is not known yet
    this.#places.set(area, place);
    return true;
  }

  /** Waits for the places that an earlier life of this context left. */
  async load() {
    if (!this.#memory) return;
    for (const [area, place] of await this.#memory.load()) {
      if (!this.#places.has(area)) this.#places.set(area, place);
    }
  }

  /**
   * Hears from this place on whatever is listened to.
   * @param {{seq: Record<string, number>, stores: Record<string, string>}} place of the host, per area
   */
  begin({ seq, stores }) {
    for (const area of this.#events.areas) this.#places.set(area, placeAt(seq[area] ?? 0, stores[area]));
    this.#remember();
  }

  /** Forgets the places of areas that nobody listens to any more. */
  forget() {
    const { areas } = this.#events;
    const gone = [...this.#places.keys()].filter((area) => !areas.includes(area));
    for (const area of gone) {
      this.#places.delete(area);
      this.#unsure.delete(area);
      this.#told.delete(area);
    }
    if (gone.length > 0) this.#remember();
  }

  /**
   * @param {boolean} asked whether the host tells on this port already
   * @returns {Watch | null} the parameters of the next watch, null if none is needed
   */
  request(asked) {
    this.forget();
    const { areas } = this.#events;
    if (areas.length === 0 && !asked) return null;
    /** @type {Watch} */
    const watch = { areas, since: {}, stores: {} };
    for (const area of areas) {
      const place = this.#places.get(area);
      if (!place) continue;
      watch.since[area] = place.seq;
      if (place.store !== undefined) watch.stores[area] = place.store;
    }
    return watch;
  }

  greeted() {}

  /**
   * The host tells from now on.
   * @param {Watch} watch what it was asked
   * @param {{seq: Record<string, number>, stores: Record<string, string>}} answer
   */
  watched(watch, { seq, stores }) {
    for (const area of watch.areas) {
      const newest = seq[area] ?? 0;
      const store = stores[area];
      const place = this.#places.get(area);
      if (!(area in watch.since) || !place) {
        this.#places.set(area, placeAt(newest, store));
        if (this.#unsure.has(area)) this.#gap(area);
      } else if (place.store !== undefined && place.store !== store) {
        this.#places.set(area, placeAt(newest, store));
        this.#gap(area);
        this.#told.add(area);
      } else {
        this.#places.set(area, placeAt(place.seq, store));
      }
      this.#unsure.delete(area);
    }
    this.#remember();
  }

  /**
   * The port was lost before the host answered a watch; it may have begun to tell.
   * @param {Watch} watch
   */
  lost(watch) {
    for (const area of watch.areas) if (!(area in watch.since)) this.#unsure.add(area);
  }

  /**
   * @param {string} method
   * @param {any} params
   * @returns {boolean} whether it was an event of an area
   */
  notified(method, params) {
    if (method === 'storage.changed') this.#changed(params);
    else if (method === 'storage.gap') this.#gapTold(params);
    else return false;
    return true;
  }

  /** @param {{area: AreaName, seq: number, changes: import('./events.js').Changes}} event */
  #changed({ area, seq, changes }) {
    if (!this.#events.areas.includes(area)) return;
    const place = this.#places.get(area);
    this.#told.delete(area);
    if (place && seq <= place.seq) return; // told again after a second watch
    this.#places.set(area, placeAt(seq, place?.store));
    this.#remember();
    this.#events.tell(area, changes);
  }

  /** @param {{area: AreaName, seq: number}} gap */
  #gapTold({ area, seq }) {
    if (!this.#events.areas.includes(area)) return;
    const place = this.#places.get(area);
    const known = this.#told.delete(area) && place?.seq === seq;
    this.#places.set(area, placeAt(seq, place?.store));
    this.#remember();
    if (!known) this.#gap(area);
  }

  /** @param {AreaName} area */
  #gap(area) {
    this.onGap.emit(Object.freeze({ area }));
  }

  #remember() {
    this.#memory?.save(this.#places);
  }
}

/**
 * @param {number} seq
 * @param {string | undefined} store
 * @returns {Place}
 */
export function placeAt(seq, store) {
  return store === undefined ? { seq } : { seq, store };
}
