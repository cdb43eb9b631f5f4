// @ts-check
/**
 * Changing the live conversation by a function over the whole list.
 *
 * Rules of this module:
 * - The function gets pictures as tokens; what it gives is written only if nobody changed the list
 *   meanwhile, else it is called again with the new list.
 * - An entry that is the same object, or equal to one of before, keeps its id; each id is used once.
 * - No change is no write: null, nothing, a list that is equal. A function that throws writes nothing.
 * - The mutations of one context run one after another, however the earlier ones end. Other calls do
 *   not wait for them: a change made meanwhile, here or elsewhere, is what has the function called again.
 */

import { checkedEntries } from './checks.js';
import { SidekeepError } from './errors.js';
import { convertItems, Measure } from './values.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./conversations.d.ts').History} History */
/** @typedef {import('./conversations.d.ts').HistoryList} HistoryList */
/** @typedef {import('./conversations.d.ts').EntryWithId} EntryWithId */
/** @typedef {import('./conversations.d.ts').Entry} Entry */

/** How often the function is called at the most. */
export const ATTEMPTS = 10;

export class Mutations {
  #call;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {HostCall} call */
  constructor(call) {
    this.#call = call;
  }

  /**
   * @param {Parameters<History['mutate']>[0]} change
   * @returns {Promise<Entry[]>} the entries after it
   */
  run(change) {
    if (typeof change !== 'function') throw new TypeError('The change must be a function.');
    const run = this.#last.then(() => this.#run(change));
    this.#last = run.catch(() => {});
    return run;
  }

  /** @param {Parameters<History['mutate']>[0]} change */
  async #run(change) {
    for (let attempt = 1; ; attempt += 1) {
      /** @type {HistoryList} */
      const { entries, revision } = await this.#call('history.list', { pixels: 'none' });
      const before = new Before(entries);
      const given = await change(entries.map(({ entry }) => entry));
      if (given === null || given === undefined) return before.entries();
      if (!Array.isArray(given)) throw new TypeError('The function must give an array of entries, or nothing.');
      const after = before.identified(checkedEntries(given));
      if (before.equals(after)) return given;
      try {
        await this.#call('history.replace', { entries: after, expect: revision });
        return given;
      } catch (error) {
        const changed = error instanceof SidekeepError && error.kind === 'conflict';
        if (!changed || attempt === ATTEMPTS) throw error;
      }
    }
  }
}

/** The list as it was, whatever becomes of its objects. */
class Before {
  #ids;
  #texts;
  /** @type {Map<unknown, number>} index of each object */
  #objects = new Map();

  /** @param {EntryWithId[]} entries */
  constructor(entries) {
    this.#ids = entries.map(({ id }) => id);
    this.#texts = entries.map(({ entry }) => textOf(entry));
    entries.forEach(({ entry }, index) => {
      if (typeof entry === 'object' && entry !== null) this.#objects.set(entry, index);
    });
  }

  /** @returns {Entry[]} */
  entries() {
    return this.#texts.map((text) => JSON.parse(text));
  }

  /**
   * @param {Entry[]} given
   * @returns {{id?: string, entry: Entry}[]} with the ids of those that were there before
   */
  identified(given) {
    const free = new Set(this.#ids.keys());
    const places = given.map((entry) => {
      const index = this.#objects.get(entry);
      return index !== undefined && free.delete(index) ? index : undefined;
    });
    /** @type {Map<string, number[]>} indexes that nobody has yet, by their text, the first one last */
    const equal = new Map();
    for (const index of [...free].reverse()) {
      const text = /** @type {string} */ (this.#texts[index]);
      const others = equal.get(text);
      if (others) others.push(index);
      else equal.set(text, [index]);
    }
    return given.map((entry, at) => {
      const index = places[at] ?? (equal.size > 0 ? equal.get(textOf(entry))?.pop() : undefined);
      const id = index === undefined ? undefined : this.#ids[index];
      return id === undefined ? { entry } : { id, entry };
    });
  }

  /**
   * @param {{id?: string, entry: Entry}[]} after
   * @returns {boolean} whether nothing is different
   */
  equals(after) {
    return (
      after.length === this.#ids.length &&
      after.every(({ id, entry }, index) => id === this.#ids[index] && textOf(entry) === this.#texts[index])
    );
  }
}

/**
 * @param {Entry} entry
 * @returns {string} the same for entries that are stored alike
 */
function textOf(entry) {
  return JSON.stringify(convertItems({ entry }, new Measure())['entry']);
}
