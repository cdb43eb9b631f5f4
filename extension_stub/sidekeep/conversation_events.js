// @ts-check
/**
 * What became of conversations: `keep.history.onChanged` and `keep.sessions.onChanged`, which share
 * one watch of the host.
 *
 * Rules of this module:
 * - The host is asked once on every port, if somebody listens, from the place that was reached; so a
 *   lost port, or a sleep of the worker, loses nothing and tells nothing twice.
 * - One change can be told by several notifications of the same revision, and a port can end between
 *   them: the place counts how many were told, and the host is asked again for that revision.
 * - What can no longer be told is told to the listeners of both as `gap`: read again.
 * - A new listener hears what happens from then on.
 */

import { ListenedEvent } from './events.js';

/** @typedef {import('./place.js').Place} Place */
/** @typedef {import('./place.js').PlaceStore<'history'>} PlaceStore */
/** @typedef {import('./watches.js').Watcher} StandingWatcher */
/** @typedef {import('./index.d.ts').HelloResult} HelloResult */
/** @typedef {import('./conversations.d.ts').HistoryChange} HistoryChange */
/** @typedef {import('./conversations.d.ts').SessionsChange} SessionsChange */

/** @implements {StandingWatcher} */
export class ConversationWatcher {
  method = 'history.watch';
  /** @type {ListenedEvent<[HistoryChange]>} */
  history;
  /** @type {ListenedEvent<[SessionsChange]>} */
  sessions;
  #memory;
  /** @type {Place | null} */
  #place = null;
  /** nobody listens any more: the place is not that of the next listener */
  #stale = false;
  /** how many notifications of the place's revision have come on this port */
  #seen = 0;
  /** something may have been missed that the host does not know of */
  #unsure = false;
  /** of the file that is open
   * @type {string | undefined} */
  #store;
  #conversation = '';

  /**
   * @param {(gained: boolean) => void} onTurn called when an event gains its first or loses its last
   *   listener
   * @param {PlaceStore | null} memory where the place outlives this context; null: nowhere
   */
  constructor(onTurn, memory) {
    this.#memory = memory;
    this.history = new ListenedEvent(onTurn);
    this.sessions = new ListenedEvent(onTurn);
  }

  /** Whether somebody listens. */
  get listening() {
    return this.history.hasListeners() || this.sessions.hasListeners();
  }

  /** Waits for the place that an earlier life of this context left. */
  async load() {
    if (!this.#memory) return;
    for (const [, place] of await this.#memory.load()) this.#place ??= place;
  }

  forget() {
    if (this.listening || this.#stale) return;
    this.#stale = true;
    this.#memory?.save(new Map());
  }

  /**
   * @param {boolean} asked whether the host tells on this port already; there is no end to it
   * @returns {{since?: number} | null}
   */
  request(asked) {
    if (!asked) {
      this.#seen = 0;
      if (this.#stale) [this.#place, this.#unsure] = [null, false];
    }
    if (!this.listening) return null;
    this.#stale = false;
    if (asked) return null;
    const place = this.#place;
    if (!place) return {};
    return { since: place.told === undefined ? place.seq : place.seq - 1 };
  }

  /** @param {HelloResult} hello */
  greeted({ store, conversation }) {
    this.#store = store === null ? undefined : String(store);
    this.#conversation = conversation ?? '';
    const known = this.#place?.store;
    if (known === undefined || known === this.#store) return;
    this.#place = null; // numbers of another file
    this.#unsure = true;
  }

  /**
   * The host tells from now on.
   * @param {{since?: number}} request
   * @param {{revision: number}} answer
   */
  watched(request, { revision }) {
    const from = 'since' in request ? this.#place : null;
    if (!from) {
      this.#moveTo({ seq: revision });
      if (this.#unsure) this.#gap(revision);
    }
    this.#unsure = false;
  }

  /**
   * The port was lost before the host answered a watch; it may have begun to tell.
   * @param {{since?: number}} request
   */
  lost(request) {
    if (!('since' in request)) this.#unsure = true;
  }

  /**
   * @param {string} method
   * @param {any} params
   * @returns {boolean} whether it told of a conversation
   */
  notified(method, params) {
    if (method !== 'history.changed' && method !== 'sessions.changed') return false;
    if (typeof params.conversation === 'string') this.#conversation = params.conversation;
    if (!this.#isNew(params)) return true;
    if (params.what === 'gap') this.#gap(params.revision);
    else if (method === 'history.changed') this.history.emit(told(params));
    else this.sessions.emit(told(params));
    return true;
  }

  /**
   * Moves the place on.
   * @param {{what: string, revision: number}} event
   * @returns {boolean} false if it was told before
   */
  #isNew({ what, revision }) {
    const { seq, told } = this.#place ?? { seq: -1, told: undefined };
    if (revision < seq || (revision === seq && told === undefined)) return false;
    if (what === 'gap') {
      this.#moveTo({ seq: revision });
      return true;
    }
    this.#seen = revision === seq ? this.#seen + 1 : 1;
    if (revision === seq && this.#seen <= (told ?? 0)) return false;
    this.#moveTo({ seq: revision, told: this.#seen });
    return true;
  }

  /** @param {Place} place in the file that is open */
  #moveTo(place) {
    this.#place = this.#store === undefined ? place : { ...place, store: this.#store };
    if (!this.#stale) this.#memory?.save(new Map([['history', this.#place]]));
  }

  /** @param {number} revision up to which everything has to be read again */
  #gap(revision) {
    const gap = /** @type {const} */ ({ what: 'gap', ids: [], revision });
    this.history.emit(told({ ...gap, conversation: this.#conversation }));
    this.sessions.emit(told(gap));
  }
}

/**
 * What listeners get: nobody can change it for the others.
 * @template {{ids: readonly string[]}} Change
 * @param {Change} change
 * @returns {Change}
 */
function told(change) {
  return Object.freeze({ ...change, ids: Object.freeze([...change.ids]) });
}
