// @ts-check
/**
 * What a person writes: a text, pictures, and which question it takes the place of.
 */

import { button, find, make } from './page.js';

/** @typedef {{text: string, images: string[], editing: string | null}} Draft */

export class Composer {
  /** @type {HTMLTextAreaElement} */
  #text = find('#text');
  /** @type {string[]} data URLs */
  #images = [];
  /** @type {string | null} the id of the question that is edited */
  #editing = null;

  /**
   * @param {(draft: Draft) => unknown} onSend the draft is kept until `clear`
   * @param {(error: unknown) => void} onError
   */
  constructor(onSend, onError) {
    const send = () => {
      const draft = { text: this.#text.value, images: [...this.#images], editing: this.#editing };
      if (draft.text.trim() !== '' || draft.images.length > 0 || draft.editing !== null) onSend(draft);
    };
    const add = (/** @type {Iterable<File>} */ files) => this.#add(files).catch(onError);
    find('#composer').addEventListener('submit', (event) => {
      event.preventDefault();
      send();
    });
    this.#text.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    this.#text.addEventListener('paste', (event) => {
      const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith('image/'));
      if (files.length === 0) return;
      event.preventDefault();
      add(files);
    });
    /** @type {HTMLInputElement} */
    const chooser = find('#files');
    chooser.addEventListener('change', () => {
      add([...(chooser.files ?? [])]);
      chooser.value = '';
    });
    find('#cancel-edit').addEventListener('click', () => this.clear());
  }

  /**
   * @param {string} id of a question
   * @param {string} text
   */
  edit(id, text) {
    this.clear();
    this.#editing = id;
    this.#text.value = text;
    this.#draw();
    this.#text.focus();
  }

  clear() {
    this.#editing = null;
    this.#images = [];
    this.#text.value = '';
    this.#draw();
  }

  /** @param {Iterable<File>} files */
  async #add(files) {
    for (const file of files) this.#images.push(await dataUrl(file));
    this.#draw();
  }

  #draw() {
    find('#editing').hidden = this.#editing === null;
    const pictures = this.#images.map((src, index) => {
      const remove = button('Remove', () => {
        this.#images.splice(index, 1);
        this.#draw();
      }, `Remove picture ${index + 1}`);
      return make('li', {}, make('img', { src, alt: `Picture ${index + 1}` }), remove);
    });
    find('#pictures').replaceChildren(...pictures);
  }
}

/**
 * @param {File} file
 * @returns {Promise<string>}
 */
function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
