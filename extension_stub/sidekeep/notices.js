// @ts-check
/**
 * What the host wants a person to know, told with every hello until somebody acknowledges it:
 * `keep.notices`, `keep.onNotice`, `keep.acknowledge`.
 *
 * Rules of this module:
 * - A listener hears of each notice once, however often a port is opened again.
 */

import { checkedText } from './checks.js';
import { Event } from './event.js';

/** @typedef {import('./index.d.ts').Keep} Keep */
/** @typedef {import('./index.d.ts').Notice} Notice */

export class NoticeBoard {
  /** @type {Event<[Notice]>} */
  event = new Event();
  /** @type {readonly Notice[]} those of the last hello that nobody has acknowledged here */
  list = Object.freeze([]);
  /** @type {Set<string>} ids */
  #told = new Set();

  /** @param {readonly Notice[]} notices of a hello */
  greeted(notices) {
    this.list = Object.freeze(notices.map((notice) => Object.freeze({ ...notice })));
    for (const notice of this.list) {
      if (this.#told.has(notice.id)) continue;
      this.#told.add(notice.id);
      this.event.emit(notice);
    }
  }

  /** @param {string} id */
  acknowledged(id) {
    this.list = Object.freeze(this.list.filter((notice) => notice.id !== id));
  }
}

/**
 * @param {Keep['call']} call
 * @param {NoticeBoard} board
 * @returns {Pick<Keep, 'notices' | 'onNotice' | 'acknowledge'>}
 */
export function notices(call, board) {
  return {
    notices: async () => {
      await call('host.ping');
      return board.list;
    },
    onNotice: board.event,
    acknowledge: async (id) => {
      await call('host.acknowledge', { notice: checkedText('The id', id) });
      board.acknowledged(id);
    },
  };
}
