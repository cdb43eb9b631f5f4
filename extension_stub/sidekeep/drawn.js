// @ts-check
/**
 * The mark on pictures in entries as they are drawn, so that none of them is ever stored in place of
 * the picture itself.
 *
 * The mark is in the text, not on an object: it stays when the entry is copied, spread, or sent to
 * another page. It is a fragment, which browsers leave out when they read a data URL.
 *
 * Rules of this module:
 * - What is marked is refused by every write to the local area, whole strings only.
 */

/** @typedef {import('./conversations.d.ts').LeftPicture} LeftPicture */

const MARK = '#sidekeep:shown';
/** What stands for a picture without a thumbnail, by its state. */
const MARKERS = Object.freeze({
  ready: 'sidekeep:shown:left', // the thumbnail was not sent along
  pending: 'sidekeep:shown:pending',
  none: 'sidekeep:shown:none',
  left: 'sidekeep:shown:left',
});
const MARKER_TEXTS = new Set(/** @type {string[]} */ (Object.values(MARKERS)));

/**
 * @param {LeftPicture} picture
 * @returns {string} what stands for it in a drawn entry
 */
export function drawn({ state, thumbnail }) {
  return thumbnail === undefined ? MARKERS[state] : thumbnail + MARK;
}

/**
 * @param {string} text that is to be stored
 * @returns {string} the same
 * @throws {TypeError} if it is a picture as it is drawn
 */
export function refuseDrawn(text) {
  const isMarked = text.endsWith(MARK) ? text.startsWith('data:image/') : MARKER_TEXTS.has(text);
  if (!isMarked) return text;
  throw new TypeError('A picture as keep.images.shown gives it cannot be stored: use the entry it was made from.');
}
