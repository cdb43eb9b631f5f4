// @ts-check
/**
 * The calls that ask the host to tell of changes: the first ones on every port.
 *
 * Rules of this module:
 * - Every port is asked anew, before all other calls, by each watcher that somebody listens to.
 * - A watch that the host refuses is tried again later; it costs the events, not the calls.
 * - What was told, and from where it has to be told again, is each watcher's own to know.
 */

import { Call } from './call.js';
import { Measure } from './values.js';

/** @typedef {import('./errors.js').SidekeepError} SidekeepError */
/** @typedef {import('./index.d.ts').HelloResult} HelloResult */

/** Milliseconds after which a watch that the host refused is tried again. */
const WATCH_AGAIN = 5000;

/**
 * Somebody who wants to be told.
 * @typedef {object} Watcher
 * @property {string} method the call that asks
 * @property {boolean} listening whether somebody listens
 * @property {() => Promise<void>} load waits for what an earlier life of this context left
 * @property {() => void} forget what nobody listens to any more; called when listeners change
 * @property {(asked: boolean) => object | null} request parameters of the next call, null if there is
 *   nothing to ask; `asked`: whether the host tells on this port already
 * @property {(hello: HelloResult) => void} greeted a new port speaks
 * @property {(request: any, answer: any) => void} watched the host tells from now on
 * @property {(request: any) => void} lost the port was lost before the answer; it may have begun to tell
 * @property {(method: string, params: any) => boolean} notified whether it was one of the watcher's
 */

/**
 * Whose calls they are.
 * @typedef {object} WatchOwner
 * @property {() => number} newId of a request
 * @property {(call: Call) => void} opened a watch was made
 * @property {(call: Call) => void} dropped a watch does not need an answer any more
 * @property {(watcher: Watcher) => void} again a watch has to be made anew
 */

export class Watches {
  #watchers;
  #owner;
  /** not answered yet
   * @type {Map<Watcher, {call: Call, request: object}>} */
  #pending = new Map();
  /** whom the host was asked to tell on this port
   * @type {Set<Watcher>} */
  #asked = new Set();
  /** @type {Map<Watcher, ReturnType<typeof setTimeout>>} */
  #timers = new Map();
  #ended = false;
  /** while nothing is asked of the host, whoever listens */
  paused = false;

  /**
   * @param {Watcher[]} watchers in the order in which they ask
   * @param {WatchOwner} owner
   */
  constructor(watchers, owner) {
    this.#watchers = watchers;
    this.#owner = owner;
  }

  get watchers() {
    return this.#watchers;
  }

  /** Whether somebody listens. */
  get wanted() {
    return !this.#ended && this.#watchers.some(({ listening }) => listening);
  }

  /** Whether somebody listens to the host. */
  get listening() {
    return !this.paused && this.wanted;
  }

  /** Waits for what earlier lives of this context left. */
  async load() {
    await Promise.all(this.#watchers.map((watcher) => watcher.load()));
  }

  /** @returns {Call[]} what a new port is asked first */
  first() {
    this.#asked.clear();
    if (this.#ended) return [];
    return this.#watchers.flatMap((watcher) => this.next(watcher) ?? []);
  }

  /**
   * @param {Watcher} watcher
   * @returns {Call | null} a watch of what is listened to now, in place of an earlier one; null if
   *   none is needed
   */
  next(watcher) {
    const request = this.paused ? null : watcher.request(this.#asked.has(watcher));
    if (!request) return null;
    this.#drop(watcher);
    const { method } = watcher;
    const call = new Call(
      { jsonrpc: '2.0', id: this.#owner.newId(), method, params: request },
      new Measure(),
      null,
      (answer) => {
        this.#pending.delete(watcher);
        watcher.watched(request, answer);
      },
    );
    call.promise.catch((error) => {
      if (this.#pending.get(watcher)?.call === call) this.#refused(watcher, error);
    });
    this.#pending.set(watcher, { call, request });
    if (watcher.listening) this.#asked.add(watcher);
    else this.#asked.delete(watcher);
    this.#owner.opened(call);
    return call;
  }

  /** @param {HelloResult} hello */
  greeted(hello) {
    for (const watcher of this.#watchers) watcher.greeted(hello);
  }

  /**
   * @param {string} method
   * @param {any} params
   * @returns {boolean} whether somebody had asked for it
   */
  notified(method, params) {
    return this.#watchers.some((watcher) => watcher.notified(method, params));
  }

  /**
   * Whether a call is a watch.
   * @param {Call} call
   */
  has(call) {
    return [...this.#pending.values()].some((pending) => pending.call === call);
  }

  /**
   * The port is gone.
   * @param {boolean} seen whether a host may have seen what was posted
   */
  lost(seen) {
    for (const [watcher, { call, request }] of [...this.#pending]) {
      if (call.posted && seen) watcher.lost(request);
      this.#drop(watcher);
    }
  }

  /** Asks no more. */
  end() {
    this.#ended = true;
    for (const watcher of this.#watchers) this.#drop(watcher);
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** @param {Watcher} watcher */
  #drop(watcher) {
    const pending = this.#pending.get(watcher);
    if (!pending) return;
    this.#pending.delete(watcher);
    pending.call.outcome = { result: null }; // so that it does not leave if it waits; it never settles
    this.#owner.dropped(pending.call);
  }

  /**
   * @param {Watcher} watcher
   * @param {SidekeepError} error
   */
  #refused(watcher, error) {
    this.#pending.delete(watcher);
    if (this.#ended) return;
    console.warn('The Sidekeep stub cannot hear of changes at present:', error.message);
    if (error.kind === 'methodNotFound') return; // another host may know it
    this.#asked.delete(watcher);
    clearTimeout(this.#timers.get(watcher));
    this.#timers.set(watcher, setTimeout(() => this.#owner.again(watcher), WATCH_AGAIN));
  }
}
