// @ts-check
/**
 * Waking the worker for a change, for extensions that asked for it with `connect({ wake: true })`.
 *
 * A change in a file wakes no worker. A change in the browser's own session area does, so the
 * context that changed something changes a key there, and the worker listens to that area.
 *
 * Rules of this module:
 * - The worker listens for good, from the first turn: that is what makes the browser start it.
 * - At most one write is on its way; what changes meanwhile is covered by one more.
 * - A worker that cannot be woken is no reason to fail the call that changed something.
 */

import { extensionApi } from './browser.js';

/** The stub's own key in the real session area. */
export const WAKE_KEY = 'sidekeep:wake';

/**
 * In the worker: calls back when another context has changed something. To be called in the first
 * turn of the worker.
 * @param {() => void} onWake
 */
export function listenForWake(onWake) {
  extensionApi().storage?.session?.onChanged?.addListener((changes) => {
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
        await extensionApi().storage?.session?.set({ [WAKE_KEY]: crypto.randomUUID() });
      }
    } catch (error) {
      console.warn('The Sidekeep stub could not wake the worker:', error);
    }
    this.#writing = false;
  }
}
