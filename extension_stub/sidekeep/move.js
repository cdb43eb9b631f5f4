// @ts-check
/**
 * The move of a profile's data from the browser's own areas to the host: once, key by key, verified.
 *
 * 1. Under the lock of the mover, so that one context does it, `moving` is written: from now on every call
 *    that changes a key in the real areas notes it.
 * 2. Each item is read, sent, and read back from the host until that is equal to it. What the host has
 *    under the key already and is different stays in undo: entries of a conversation in the trash,
 *    another value under REPLACED_PREFIX and the key.
 * 3. Noted keys are copied again. A note is taken away after that, with the gate closed, if no other has
 *    taken its place; when there is none left `moved` is written.
 * 4. Only after that are the originals in the local area removed. Those in the session area go with the
 *    browser run.
 *
 * Rules of this module:
 * - Whatever is killed wherever: before `moved` the real areas are whole, and the next run begins again,
 *   copying only what is different; after it the host has everything, and the next run goes on removing.
 * - An item is read back as a whole rather than judged by its revision or size: it is done once, and
 *   after it nobody has the original. It is read the way in which it will be read from then on.
 * - Nothing newer is overwritten: each change says which revision it takes the place of.
 * - The whole of an area is never asked for, and few bytes are under way at a time.
 */

import { realStorage } from './browser.js';
import { SidekeepError } from './errors.js';
import { isMoved, MOVE_KEY, MOVER, MOVING, readState, realArea, throughGate, withLock } from './move_state.js';
import { bytesOf, forgetNotes, itemOf, keysOf, readNotes, same } from './real_calls.js';
import { own, put } from './trees.js';
import { Measure } from './values.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./move_state.js').Moved} Moved */
/** @typedef {[area: AreaName, key: string, note?: unknown]} Noted a key, and the value of its note */
/** @typedef {(method: string, params: object, measure?: Measure) => Promise<any>} HostCall `measure` of the
 *   parameters, where they are converted already */

/** Before the name of a key, in the host's area: what the host had there when another value moved in. */
export const REPLACED_PREFIX = 'sidekeep:replaced:';

/** Items that are copied at a time: so many, and about so many bytes (one item of any size). */
const AT_ONCE = 16;
const BYTES_AT_ONCE = 4_194_304;
/** How often an item is sent before it is said that the host does not keep it. */
const ATTEMPTS = 4;
/** How often noted keys are copied with the gate open, and then with the gate closed. */
const OPEN_ROUNDS = 8;
const CLOSED_ROUNDS = 3;

export class Move {
  #call;
  #progress;
  /** revisions of what was copied, by area and key @type {Record<AreaName, Map<string, number>>} */
  #copied = { local: new Map(), session: new Map() };
  #done = 0;

  /**
   * @param {HostCall} call
   * @param {(done: number, of: number) => void} progress items copied, and items in all
   */
  constructor(call, progress) {
    this.#call = call;
    this.#progress = progress;
  }

  /**
   * Moves what was not moved, or removes what is left; waits if another context does it.
   * @returns {Promise<Moved>}
   * @throws {SidekeepError} why it could not be done; nothing is lost
   */
  async run() {
    return withLock(MOVER, async () => {
      const before = await readState();
      const moved = isMoved(before) ? before : await this.#move(before !== null);
      if (moved.left) await this.#tidy(moved);
      return moved;
    });
  }

  /** @param {boolean} begun whether an earlier run said so */
  async #move(begun) {
    if (!begun) await throughGate('exclusive', () => realArea('local').set({ [MOVE_KEY]: MOVING }));
    /** @type {[AreaName, string][]} */
    const items = [];
    for (const area of areas()) for (const key of await keysOf(area)) items.push([area, key]);
    await this.#copyAll(items, items.length);
    /** @type {Noted[]} */
    let copied = [];
    for (let round = 1; ; round += 1) {
      const place = await this.#place();
      const closed = round > OPEN_ROUNDS;
      const result = await throughGate('exclusive', () => this.#finish(place, copied, closed));
      if (!Array.isArray(result)) return result;
      await this.#copyAll(result, items.length);
      copied = result;
    }
  }

  /** @returns {Promise<{seq: Record<string, number>, stores: Record<string, string>}>} what the host did last */
  async #place() {
    const { seq, stores } = await this.#call('storage.watch', { areas: areas(), keys: [], values: false });
    await this.#call('storage.watch', { areas: [] });
    return { seq, stores };
  }

  /**
   * Writes `moved` if nothing has changed since it was copied; to be called while the gate is closed.
   * @param {{seq: Record<string, number>, stores: Record<string, string>}} place of the host
   * @param {Noted[]} done what was copied for its note
   * @param {boolean} closed whether the gate stays closed until it is done
   * @returns {Promise<Moved | Noted[]>} what has to be copied again
   */
  async #finish(place, done, closed) {
    let now = place;
    let copied = done;
    // Who writes though the gate is closed is told in time by the mark; the rest is tidied (see below).
    for (let round = 1; round <= CLOSED_ROUNDS; round += 1) {
      const again = await this.#notes(copied);
      if (again.length === 0) break;
      if (!closed) return again;
      await this.#copyAll(again, again.length);
      copied = again;
      now = await this.#place();
    }
    /** @type {Moved} */
    const mark = { state: 'moved', time: Date.now(), ...now, left: true };
    await realArea('local').set({ [MOVE_KEY]: mark });
    return mark;
  }

  /**
   * Takes away the notes of what was copied.
   * @param {Noted[]} copied
   * @returns {Promise<Noted[]>} the others
   */
  async #notes(copied) {
    /** @type {Noted[]} */
    const others = [];
    for (const area of areas()) {
      const notes = [...(await readNotes(area))];
      const isDone = (/** @type {[string, unknown]} */ [key, value]) =>
        copied.some((one) => one[0] === area && one[1] === key && one[2] === value);
      const done = notes.filter(isDone).map(([key]) => key);
      if (done.length > 0) await forgetNotes(area, done);
      for (const note of notes) if (!isDone(note)) others.push([area, ...note]);
    }
    return others;
  }

  /** @param {Moved} moved */
  async #tidy({ left, ...moved }) {
    const local = realArea('local');
    // Locks do not reach the incognito side of a split extension: it may have written up to the mark.
    for (const area of areas()) {
      for (const key of (await readNotes(area)).keys()) {
        await this.#copyLate(area, key, moved.seq[area] ?? 0);
        await forgetNotes(area, [key]);
      }
    }
    for (const key of await keysOf('local')) await local.remove(key);
    await local.set({ [MOVE_KEY]: moved });
  }

  /**
   * Gives the host a value that was written before the mark and noted after all notes were read, unless it
   * has a newer one by now.
   * @param {AreaName} area
   * @param {string} key
   * @param {number} seq what the host had done last before the mark
   */
  async #copyLate(area, key, seq) {
    const { items, measure } = await itemOf(area, key);
    const { value, revision } = await this.#hosted(area, key);
    if (revision > seq || same(value, own(items, key))) return;
    try {
      if (Object.hasOwn(items, key)) await this.#set(area, items, { [key]: revision }, measure);
      else await this.#call('storage.remove', { area, keys: [key] });
    } catch (error) {
      if (!(error instanceof SidekeepError) || error.kind !== 'conflict') throw error;
    }
  }

  /**
   * @param {Noted[]} items
   * @param {number} of items in all
   */
  async #copyAll(items, of) {
    let at = 0;
    while (at < items.length) {
      /** @type {[AreaName, string][]} */
      const together = [];
      let bytes = 0;
      for (const [area, key] of items.slice(at, at + AT_ONCE)) {
        bytes += await bytesOf(area, [key]);
        if (together.length > 0 && bytes > BYTES_AT_ONCE) break;
        together.push([area, key]);
      }
      at += together.length;
      await Promise.all(together.map(([area, key]) => this.#copy(area, key)));
      this.#done = Math.min(of, this.#done + together.length);
      this.#progress(this.#done, of);
    }
  }

  /**
   * Makes the host's item the same as the real one.
   * @param {AreaName} area
   * @param {string} key
   */
  async #copy(area, key) {
    const { items, measure } = await itemOf(area, key);
    const exists = Object.hasOwn(items, key);
    const wanted = own(items, key);
    const replaced = REPLACED_PREFIX + key;
    let kept = false;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const { value, revision } = await this.#hosted(area, key);
      if (revision === 0 ? !exists : exists && same(value, wanted)) {
        this.#copied[area].set(key, revision);
        return;
      }
      /** @type {Record<string, unknown>} */
      const change = { ...items };
      const expect = { [key]: revision };
      const foreign = revision !== 0 && this.#copied[area].get(key) !== revision;
      if (foreign && !kept && !goesToTrash(area, key, value, wanted)) {
        put(change, replaced, value);
        expect[replaced] = 0;
      }
      try {
        if (Object.keys(change).length > 0) await this.#set(area, change, expect, measure);
        if (!exists) await this.#call('storage.remove', { area, keys: [key] });
      } catch (error) {
        // Somebody else was there, or the answer got lost: look again.
        if (!(error instanceof SidekeepError) || attempt === ATTEMPTS) throw error;
        if (!['conflict', 'unknown'].includes(error.kind)) throw error;
        // What the host had first is what is kept.
        kept ||= (/** @type {any} */ (error.data)?.revisions?.[replaced] ?? 0) > 0;
      }
    }
    throw new SidekeepError('internal', `The host gives another value back than ${key.slice(0, 64)} was given.`, {
      next: 'Run "sidekeep doctor". Everything stays where it is.',
    });
  }

  /**
   * @param {AreaName} area
   * @param {Record<string, unknown>} items
   * @param {Record<string, number>} expect
   * @param {Measure} measure of the new value
   */
  async #set(area, items, expect, measure) {
    const whole = new Measure();
    whole.units = measure.units;
    whole.other = measure.other;
    for (const [name, value] of Object.entries(items)) {
      if (name.startsWith(REPLACED_PREFIX)) whole.units += JSON.stringify(value).length;
      whole.units += name.length;
      whole.other += 60;
    }
    const { revisions } = await this.#call('storage.set', { area, items, expect }, whole);
    for (const [name, revision] of Object.entries(revisions)) this.#copied[area].set(name, revision);
  }

  /**
   * @param {AreaName} area
   * @param {string} key
   * @returns {Promise<{value: unknown, revision: number}>} what the host has; revision 0: nothing
   */
  async #hosted(area, key) {
    const { items, revisions } = await this.#call('storage.get', { area, keys: [key], revisions: true });
    return { value: own(items, key), revision: own(/** @type {Record<string, number>} */ (revisions), key) ?? 0 };
  }
}

/** @returns {AreaName[]} those that the browser has */
function areas() {
  return realStorage()?.session ? ['session', 'local'] : ['local'];
}

/**
 * Whether the host itself keeps what a value takes the place of (docs/protocol.md, Conversations).
 * @param {AreaName} area
 * @param {string} key
 * @param {unknown} before
 * @param {unknown} after undefined: removed
 * @returns {boolean}
 */
function goesToTrash(area, key, before, after) {
  const isList = key === 'history' || key === 'savedSessions' || key.startsWith('session_');
  return area === 'local' && isList && Array.isArray(before) && (after === undefined || Array.isArray(after));
}
