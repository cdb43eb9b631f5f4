// @ts-check
/**
 * Entries of the conversation as bubbles.
 *
 * Rules of this module:
 * - What is drawn are the copies of `keep.images.shown`; a thumbnail is never given back to the host.
 * - A bubble whose entry did not change is the same element as before.
 */

import { button, make } from './page.js';

/** @typedef {import('../../sidekeep/index.d.ts').Keep} Keep */
/** @typedef {import('../../sidekeep/index.d.ts').DrawnEntry} DrawnEntry */

/**
 * What a person can do with a bubble.
 * @typedef {object} BubbleActions
 * @property {(id: string) => unknown} askAgain
 * @property {(id: string, text: string) => unknown} edit
 * @property {(which: string | {attachId: string}) => unknown} remove
 * @property {(url: Promise<string>) => unknown} open shows a picture
 */

/** @type {Record<string, string>} */
const FAILED = {
  error: 'The model did not answer.',
  abort: 'Stopped.',
  drop: 'Stopped.',
  interrupted: 'The answer was cut off.',
};

export class Bubbles {
  #keep;
  #list;
  #actions;
  /** @type {Map<string, {text: string, element: HTMLElement}>} */
  #drawn = new Map();

  /**
   * @param {Keep} keep
   * @param {HTMLElement} list
   * @param {BubbleActions} actions
   */
  constructor(keep, list, actions) {
    this.#keep = keep;
    this.#list = list;
    this.#actions = actions;
  }

  /** @param {import('../../sidekeep/index.d.ts').HistoryList} listed */
  show(listed) {
    const before = this.#drawn;
    this.#drawn = new Map();
    for (const one of this.#keep.images.shown(listed)) {
      const text = JSON.stringify(one);
      const known = before.get(one.id);
      const element = known?.text === text ? known.element : this.#bubble(one);
      this.#drawn.set(one.id, { text, element });
    }
    this.#list.replaceChildren(...[...this.#drawn.values()].map(({ element }) => element));
  }

  /** @param {DrawnEntry} one */
  #bubble(one) {
    const { id, entry } = one;
    const role = entry?.role === 'assistant' ? 'assistant' : 'user';
    const item = make('li', { className: `bubble ${role}` });
    item.dataset['id'] = id;
    const content = make('div', { className: 'content' }, ...this.#parts(one));
    const actions = make('div', { className: 'actions' });
    if (entry?.attachId !== undefined) {
      const title = /^Title: (.*)$/m.exec(textOf(entry))?.[1] ?? 'text';
      const mark = entry.summarized ? ' (condensed)' : '';
      item.append(make('details', {}, make('summary', { textContent: `Attached: ${title}${mark}` }), content));
      actions.append(button('Remove', () => this.#actions.remove({ attachId: entry.attachId }), `Remove ${title}`));
    } else {
      item.append(content);
      if (entry?.failed) item.append(make('p', { className: 'mark', textContent: FAILED[entry.failed] ?? 'Not answered.' }));
      if (entry?.interrupted) item.append(make('p', { className: 'mark', textContent: 'Not complete.' }));
      if (role === 'user') {
        actions.append(
          button(entry?.failed ? 'Retry' : 'Ask again', () => this.#actions.askAgain(id)),
          button('Edit', () => this.#actions.edit(id, textOf(entry))),
        );
      }
      actions.append(button('Remove', () => this.#actions.remove(id)));
    }
    item.append(actions);
    return item;
  }

  /**
   * @param {DrawnEntry} one
   * @returns {HTMLElement[]}
   */
  #parts({ entry, images }) {
    const content = entry?.content;
    if (!Array.isArray(content)) return [make('p', { textContent: textOf(entry) })];
    let pictures = 0;
    return content.map((part, index) => {
      const url = part?.image_url?.url;
      if (typeof url !== 'string') return make('p', { textContent: String(part?.text ?? '') });
      const left = images.find(({ path }) => path.join('/') === `content/${index}/image_url/url`);
      pictures += 1;
      return this.#picture(`Picture ${pictures}`, url, left);
    });
  }

  /**
   * @param {string} name
   * @param {string} url of the thumbnail, or of the picture itself if it is small
   * @param {import('../../sidekeep/index.d.ts').LeftPicture | undefined} left
   */
  #picture(name, url, left) {
    const image = make('img', { alt: name });
    const whole = () => (left ? this.#keep.images.get(left.ref) : Promise.resolve(url));
    const shown = button('', () => this.#actions.open(whole()), `Show ${name} in full`);
    shown.className = 'picture';
    shown.append(image);
    if (!url.startsWith('sidekeep:shown')) image.src = url;
    else if (left) this.#thumbnail(image, shown, left.ref);
    return shown;
  }

  /**
   * @param {HTMLImageElement} image
   * @param {HTMLElement} place
   * @param {string} ref
   */
  async #thumbnail(image, place, ref) {
    try {
      const { url, reason } = await this.#keep.images.thumbnail(ref);
      if (url === null) place.replaceChildren(`No preview: ${reason}`);
      else image.src = url;
    } catch (error) {
      place.replaceChildren(`No preview: ${error instanceof Error ? error.message : error}`);
    }
  }
}

/**
 * @param {any} entry
 * @returns {string} its text parts
 */
function textOf(entry) {
  const content = entry?.content;
  if (!Array.isArray(content)) return typeof content === 'string' ? content : JSON.stringify(content ?? entry);
  return content.flatMap((part) => (typeof part?.text === 'string' ? [part.text] : [])).join('\n');
}
