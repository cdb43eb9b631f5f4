// @ts-check
/**
 * Pictures of entries: `keep.images`.
 *
 * Rules of this module:
 * - Entries are drawn from copies, whose pictures are marked (see drawn.js).
 */

import { checkedFields, checkedOptions, checkedText, optionalWhole } from './checks.js';
import { drawn } from './drawn.js';
import { copied } from './trees.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./conversations.d.ts').Images} Images */
/** @typedef {import('./conversations.d.ts').LeftPicture} LeftPicture */

const EDGE_LEAST = 16;
const EDGE_MOST = 1024;

/**
 * @param {HostCall} call
 * @returns {Images}
 */
export function images(call) {
  /** @type {Images} */
  const face = {
    get: (ref) => call('images.get', { ref: checkedText('ref', ref) }).then(({ url }) => url),
    thumbnail: (ref, options) => {
      const { edge } = checkedOptions(options);
      const params = { ref: checkedText('ref', ref), edge: optionalWhole('edge', edge, EDGE_LEAST, EDGE_MOST) };
      return call('images.thumbnail', params).then(({ url, none }) =>
        url === undefined ? { url: null, reason: none } : { url, reason: null },
      );
    },
    shown: (result) => {
      const { entries, images: left } = checkedFields('The result', result);
      if (!Array.isArray(entries) || !Array.isArray(left)) {
        throw new TypeError('The result must be one of history.list or sessions.get.');
      }
      return shown(entries, left);
    },
  };
  return Object.freeze(face);
}

/**
 * @param {import('./conversations.d.ts').EntryWithId[]} entries
 * @param {LeftPicture[]} left
 * @returns {import('./conversations.d.ts').DrawnEntry[]}
 */
function shown(entries, left) {
  const pictures = new Map(left.map((picture) => [picture.ref, drawn(picture)]));
  /** @type {Map<string, LeftPicture[]>} */
  const ofEntry = new Map();
  for (const picture of left) {
    const others = ofEntry.get(picture.id);
    if (others) others.push(picture);
    else ofEntry.set(picture.id, [picture]);
  }
  return entries.map(({ id, entry }) => ({
    id,
    entry: copied(entry, (text) => pictures.get(text) ?? text),
    images: ofEntry.get(id) ?? [],
  }));
}
