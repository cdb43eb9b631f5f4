// @ts-check
/**
 * When the page of a content script is looked at again, and when it comes back from the browser's
 * back/forward cache.
 *
 * Chromium ends the ports of a page that it puts there, and tells the page nothing of it, not even when
 * it is shown again: `onDisconnect` is silent, and what is posted goes nowhere. That the page was there
 * is told by `pageshow` with `persisted`.
 *
 * Rules of this module:
 * - Nothing is listened to that nobody waits for: the return of the page while there is a port or a
 *   listener, that it is looked at while there is a listener.
 */

/** What happens when somebody looks at the page again. */
const SHOWN = /** @type {const} */ (['pageshow', 'focus', 'visibilitychange']);

export class PageShown {
  #onRestored;
  #onShown;
  /** @param {Event} event */
  #happened = (event) => {
    if (event.type === 'pageshow' && /** @type {PageTransitionEvent} */ (event).persisted) this.#onRestored();
    if (document.visibilityState === 'visible') this.#onShown();
  };

  /**
   * @param {() => void} onRestored the page is back from the cache: its ports are dead
   * @param {() => void} onShown the page is visible, perhaps not for the first time
   */
  constructor(onRestored, onShown) {
    this.#onRestored = onRestored;
    this.#onShown = onShown;
  }

  /**
   * Listens to what is waited for, and to nothing else.
   * @param {boolean} connected whether there is a port
   * @param {boolean} listening whether there is a listener that goes on when the page is shown
   */
  follow(connected, listening) {
    for (const type of SHOWN) {
      if (listening || (connected && type === 'pageshow')) addEventListener(type, this.#happened, true);
      else removeEventListener(type, this.#happened, true);
    }
  }
}
