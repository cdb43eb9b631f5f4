// @ts-check
/**
 * What changes in the browser's own areas, for listeners of the stub, as long as these areas serve.
 *
 * Rules of this module:
 * - Listening begins at once when it is asked for: what a listener is added to in the first turn of a
 *   worker is what wakes it. What comes before it is known where the data is is held.
 * - The stub's own keys are no changes. The mark that the data has moved is told to whom it concerns.
 * - Nothing stays listening when it is not wanted: the browser would start the worker for it.
 */

import { isMoved, MOVE_KEY, stateIn } from './move_state.js';
import { isOwn } from './real_calls.js';
import { realStorage } from './browser.js';
import { put } from './trees.js';
import { convertSessionItems, Measure } from './values.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./events.js').Changes} Changes */
/** @typedef {import('./move_state.js').Moved} Moved */

/** Milliseconds in which the event of the mark comes. */
const MARK_WAIT = 2000;
/** Milliseconds after the move in which that event may still come to a listener that is new. */
const MARK_IS_NEW = 10_000;

export class RealEvents {
  #tell;
  #onMark;
  /** not told yet, null if it is known that they are to be told
   * @type {[AreaName, Changes][] | null} */
  #held = [];
  /** @type {(() => void)[]} */
  #remove = [];

  /**
   * @param {(area: AreaName, changes: Changes) => void} tell as the host tells, buffers as text
   * @param {(mark: Moved) => void} onMark the data has moved
   */
  constructor(tell, onMark) {
    this.#tell = tell;
    this.#onMark = onMark;
  }

  get listening() {
    return this.#remove.length > 0;
  }

  /** Whether what is heard is told. */
  get telling() {
    return this.listening && this.#held === null;
  }

  /** Hears and holds from now on. */
  listen() {
    if (this.listening) return;
    this.#held = [];
    for (const area of /** @type {AreaName[]} */ (['local', 'session'])) {
      const event = realStorage()?.[area]?.onChanged;
      if (!event) continue;
      const listener = (/** @type {Record<string, any>} */ changes) => this.#changed(area, changes);
      event.addListener(listener);
      this.#remove.push(() => event.removeListener(listener));
    }
  }

  /** Hears nothing more, and drops what was held: nobody knows yet whether the real areas served then. */
  end() {
    for (const remove of this.#remove.splice(0)) remove();
    this.#held = [];
  }

  /** The real areas served when it was heard: what was held is told, and what comes. */
  tell() {
    const held = this.#held ?? [];
    this.#held = null;
    for (const [area, changes] of held) this.#tell(area, changes);
  }

  /**
   * @param {AreaName} area
   * @param {Record<string, any>} received
   */
  #changed(area, received) {
    /** @type {Changes} */
    const changes = {};
    for (const [key, change] of Object.entries(received)) if (!isOwn(key)) put(changes, key, change);
    if (Object.keys(changes).length > 0) {
      // Buffers as text, as they come from the host.
      const told = area === 'session' ? /** @type {Changes} */ (convertSessionItems(changes, new Measure())) : changes;
      if (this.#held) this.#held.push([area, told]);
      else this.#tell(area, told);
    }
    const state = area === 'local' ? stateIn(received[MOVE_KEY]?.newValue) : null;
    if (isMoved(state) && state.left) this.#onMark(state);
  }
}

/** From the changes of the real areas to those of the host, without losing one in between. */
export class HandOver {
  #real;
  #done;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer = undefined;
  #ended = false;

  /**
   * @param {RealEvents} real
   * @param {Moved} mark
   * @param {(told: boolean) => void} done called once; `told`: changes before the mark were told, those after
   *   it follow
   */
  constructor(real, mark, done) {
    this.#real = real;
    this.#done = done;
    const { listening, telling } = real;
    // The event of the mark, and changes before it, may still be on their way.
    const awaited = telling || (listening && Date.now() - mark.time < MARK_IS_NEW);
    if (awaited) this.#timer = setTimeout(() => this.#end(telling), MARK_WAIT);
    else this.#end(false);
  }

  heardMark() {
    if (this.#ended) return;
    this.#real.tell();
    this.#end(true);
  }

  /** @param {boolean} told */
  #end(told) {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#real.end();
    this.#done(told);
  }
}
