// @ts-check
/**
 * The conversations that were saved: found, opened, pinned, deleted.
 */

import { button, find, make } from './page.js';

/** @typedef {import('../../sidekeep/index.d.ts').Keep} Keep */
/** @typedef {import('../../sidekeep/index.d.ts').SessionRow} SessionRow */

export class Drawer {
  #keep;
  #run;
  #offerUndo;
  /** @type {HTMLDialogElement} */
  #dialog = find('#drawer');
  /** @type {HTMLInputElement} */
  #query = find('#query');
  #asked = 0;

  /**
   * @param {Keep} keep
   * @param {(work: () => Promise<unknown>) => unknown} run shows what fails
   * @param {(text: string, undo: () => Promise<unknown>) => void} offerUndo
   */
  constructor(keep, run, offerUndo) {
    this.#keep = keep;
    this.#run = run;
    this.#offerUndo = offerUndo;
    const refresh = () => this.#dialog.open && run(() => this.#refresh());
    this.#query.addEventListener('input', refresh);
    keep.sessions.onChanged.addListener(refresh);
    find('#open-drawer').addEventListener('click', () => {
      this.#dialog.showModal();
      refresh();
    });
  }

  async #refresh() {
    const asked = (this.#asked += 1);
    const query = this.#query.value.trim();
    const { rows } = await this.#keep.sessions.list({ limit: 100, ...(query === '' ? {} : { query }) });
    if (asked !== this.#asked) return; // a newer question is under way
    find('#rows').replaceChildren(...rows.map((row) => this.#row(row)));
  }

  /** @param {SessionRow} row */
  #row({ id, name, createdAt, pinned, hit }) {
    const { sessions } = this.#keep;
    const title = hit && hit.in !== 'name' ? `${name}: ${hit.excerpt}` : name;
    const open = button(title, () => this.#run(async () => {
      await sessions.load(id);
      this.#dialog.close();
    }));
    const pin = button(pinned ? 'Unpin' : 'Pin', () => this.#run(() => sessions.pin(id, !pinned)), `Pin ${name}`);
    pin.setAttribute('aria-pressed', String(pinned));
    const remove = button('Delete', () => this.#run(async () => {
      const gone = await sessions.delete(id);
      this.#offerUndo(`“${name}” was deleted.`, () => sessions.restore(gone));
    }), `Delete ${name}`);
    const date = make('time', { textContent: new Date(createdAt).toLocaleString() });
    return make('li', {}, open, date, pin, remove);
  }
}
