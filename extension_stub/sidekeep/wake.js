// @ts-check
/**
 * Telling the worker of a change: one that is awake, and, for extensions that asked for it with
 * `connect({ wake: true })`, one that sleeps.
 *
 * A worker that listens has no port while it is idle. A message on a BroadcastChannel reaches it if
 * it is awake, and neither wakes it nor keeps it awake; so the context that changed something posts
 * one, and the worker opens its port to hear. A change in the browser's own session area starts a
 * worker, so with `wake` the context also changes a key there, and the worker listens to that area.
 *
 * Rules of this module:
 * - A nudge says only that something changed; what it was comes from the journal.
 * - The worker listens for good, from the first turn: that is what makes the browser start it.
 * - At most one write is on its way; what changes meanwhile is covered by one more.
 * - A worker that cannot be woken is no reason to fail the call that changed something.
 */

import { realStorage } from './browser.js';

/** The stub's own key in the real session area. */
export const WAKE_KEY = 'sidekeep:wake';

/** Reaches the background of the extension if it is awake. */
export class Nudge {
  #name;
  #onNudge;
  /** @type {BroadcastChannel | null} */
  #channel = null;
  #posting = false;
  #closed = false;

  /**
   * @param {string} host the native host's name: other hosts have other changes
   * @param {() => void} onNudge called when another context has changed something
   */
  constructor(host, onNudge) {
    this.#name = `sidekeep:changed:${host}`;
    this.#onNudge = onNudge;
  }

  /** @param {boolean} listening whether nudges are called back */
  listen(listening) {
    if (!listening && !this.#channel) return;
    const channel = this.#open();
    if (channel) channel.onmessage = listening ? () => this.#onNudge() : null;
  }

  /** Tells the other contexts, once for all that was changed in this turn. */
  post() {
    if (this.#posting) return;
    this.#posting = true;
    queueMicrotask(() => {
      this.#posting = false;
      this.#open()?.postMessage(null);
    });
  }

  close() {
    this.#closed = true;
    this.#channel?.close();
    this.#channel = null;
  }

  /** @returns {BroadcastChannel | null} null where there are none, and after the end */
  #open() {
    if (!this.#closed && typeof BroadcastChannel === 'function') {
      this.#channel ??= new BroadcastChannel(this.#name);
    }
    return this.#channel;
  }
}

/**
 * In the worker: calls back when another context has changed something. To be called in the first
 * turn of the worker.
 * @param {() => void} onWake
 */
export function listenForWake(onWake) {
  realStorage()?.session?.onChanged?.addListener((changes) => {
    if (WAKE_KEY in changes) onWake();
  });
}

export class Waker {
  #writing = false;
  #again = false;

  /** Wakes the worker. */
  async wake() {
    this.#again = true;
    if (this.#writing) return;
    this.#writing = true;
    try {
      while (this.#again) {
        this.#again = false;
        await realStorage()?.session?.set({ [WAKE_KEY]: crypto.randomUUID() });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not wake the worker:', error);
    }
    this.#writing = false;
  }
}
