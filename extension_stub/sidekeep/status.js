// @ts-check
/**
 * What is known of the link to the host, in words.
 *
 * Rules of this module:
 * - `reason` is one sentence a person can read, in every state.
 * - Listeners hear of a change once, with a frozen copy.
 */

import { Event } from './event.js';
import { NoticeBoard } from './notices.js';

/** @typedef {import('./index.d.ts').Status} Status */
/** @typedef {import('./index.d.ts').LinkState} LinkState */
/** @typedef {import('./index.d.ts').HelloResult} HelloResult */
/** @typedef {import('./errors.js').SidekeepError} SidekeepError */

/** @type {Record<LinkState, string>} */
const WORDS = {
  idle: 'Not connected; the next call connects.',
  connecting: 'Connecting to the host.',
  connected: 'Connected to the host.',
  waiting: 'Waiting to connect again.',
  resting: 'Not connected; the last attempts failed.',
  closed: 'Closed by the extension.',
};

export class StatusBoard {
  /** @type {Event<[Status]>} */
  event = new Event();
  notices = new NoticeBoard();
  /** @type {SidekeepError | null} why the link is not up */
  reason = null;
  /** @type {LinkState} */
  #state = 'idle';
  #attempts = 0;
  #browserText = '';
  /** @type {HelloResult | null} */
  #hello = null;
  /** @type {Status['fallback']} */
  #fallback = null;

  /** @returns {Status} */
  get() {
    const hello = this.#hello;
    const reason = this.reason;
    return Object.freeze({
      state: this.#state,
      reason: reason ? reason.message : WORDS[this.#state],
      next: reason?.next ?? null,
      kind: reason?.kind ?? null,
      lastError: this.#browserText,
      attempts: this.#attempts,
      host: hello?.host ?? null,
      store: hello?.store ?? null,
      features: hello?.features ?? [],
      notices: this.notices.list,
      fallback: this.#fallback,
    });
  }

  /**
   * @param {LinkState} state
   * @param {SidekeepError | null} reason
   */
  set(state, reason) {
    if (state === this.#state && reason === this.reason) return;
    this.#state = state;
    this.reason = reason;
    this.#tell();
  }

  /** @param {NonNullable<Status['fallback']>} fallback what became of it */
  fellBack(fallback) {
    this.#fallback = fallback;
    this.#tell();
  }

  /** A port is being opened. */
  attempt() {
    this.#attempts += 1;
    this.#state = 'connecting';
    this.#tell();
  }

  /** @param {HelloResult} hello the host's answer */
  greeted(hello) {
    this.#hello = hello;
    this.#attempts = 0;
    this.#browserText = '';
    this.#state = 'connected';
    this.reason = null;
    this.notices.greeted(hello.notices ?? []);
    this.#tell();
  }

  /** @param {string} text what the browser said when a port ended */
  browserSaid(text) {
    this.#browserText = text;
  }

  #tell() {
    this.event.emit(this.get());
  }
}
