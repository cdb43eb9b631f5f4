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

/** @typedef {{since?: number, store?: string}} WatchRequest */

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
   * @returns {WatchRequest | null}
   */
  request(asked) {
    if (!asked) {
      this.#seen = 0;
      if (this.#stale) [this.#place, this.#unsure] = [null, false];
    }
    if (!this.listening) return null;
    this.#stale = false;
    if (asked) return null;
    if (!this.#place) return {};
    const { seq, told, store } = this.#place;
    const since = told === undefined ? seq : seq - 1;
    return store === undefined ? { since } : { since, store };
  }

  /** @param {HelloResult} hello */
  greeted({ conversation }) {
    this.#conversation = conversation ?? '';
  }

  /**
   * The host tells from now on.
   * @param {WatchRequest} request
   * @param {{revision: number, store: string}} answer
   */
  watched(request, { revision, store }) {
    const otherFile = request.store !== undefined && request.store !== store;
    const missed = this.#unsure || otherFile;
    this.#unsure = false;
    if (this.#place && 'since' in request && !otherFile) {
      this.#moveTo({ ...this.#place, store });
      return;
    }
    this.#moveTo({ seq: revision, store });
    if (missed) this.#gap(revision);
  }

  /**
   * The port was lost before the host answered a watch; it may have begun to tell.
   * @param {WatchRequest} request
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

  /** @param {Place} place in the file of the present one, unless it names another */
  #moveTo(place) {
    const store = place.store ?? this.#place?.store;
    this.#place = store === undefined ? place : { ...place, store };
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
