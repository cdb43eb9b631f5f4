// @ts-check
/**
 * Pages and texts that are put into the live conversation: `keep.attachments`.
 *
 * Rules of this module:
 * - Arguments of the wrong type throw at once; what the host refuses rejects.
 * - An attachment is condensed in one step at the very end: any failure before it leaves the
 *   attachment as it was.
 */

import { duringTurn } from './awake.js';
import { checkedFields, checkedOptions, checkedText, checkedWhole, optionalFlag, optionalText } from './checks.js';
import { condensed } from './condensing.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./questions.d.ts').Attachments} Attachments */

const TIMEOUT = 90_000;
const TIMEOUT_MOST = 2 ** 31 - 1;
const PARALLEL = 3;
const PARALLEL_MOST = 64;

/**
 * @param {HostCall} call
 * @returns {Attachments}
 */
export function attachments(call) {
  /** @type {Attachments} */
  const face = {
    add: (attachment) => {
      const { url, title, mode, text, ...more } = checkedFields('The attachment', attachment);
      const { images, changedSince, videoSrc } = more;
      return call('attachments.add', {
        url: checkedText('url', url),
        title: checkedText('title', title),
        mode: checkedText('mode', mode),
        text: checkedText('text', text),
        format: optionalText('format', more['format']),
        block: optionalText('block', more['block']),
        fallback: optionalFlag('fallback', more['fallback']),
        changedSince: typeof changedSince === 'string' ? changedSince : optionalTime(changedSince),
        images: images === undefined ? undefined : checkedTexts(images),
        videoSrc: videoSrc === undefined ? undefined : checkedFields('videoSrc', videoSrc),
        conversation: optionalText('conversation', more['conversation']),
      });
    },
    undo: (which) => call('attachments.undo', typeof which === 'string' ? { attachId: which } : checkedLast(which)),
    changed: (page) => {
      const { url, mode, text } = checkedFields('The page', page);
      return call('attachments.changed', {
        url: checkedText('url', url),
        mode: checkedText('mode', mode),
        text: checkedText('text', text),
      });
    },
    condense: (attachId, options) => {
      const checked = checkedCondensing(options);
      return condense(call, checkedText('The id', attachId), checked);
    },
  };
  return Object.freeze(face);
}

/** @typedef {import('./condensing.js').Condensing} Condensing */

/**
 * @param {HostCall} call
 * @param {string} attachId
 * @param {Condensing} options
 * @returns {Promise<{entries: number}>}
 */
async function condense(call, attachId, options) {
  options.signal?.throwIfAborted();
  const { condense: plan } = await call('attachments.plan', { attachId });
  if (plan === null) return { entries: 0 };
  const { chunks } = plan;
  const most = options.timeout * (Math.ceil(chunks.length / options.parallel) + 1);
  const summary = await duringTurn(() => condensed(chunks, options), { most: Math.min(most, TIMEOUT_MOST) });
  options.signal?.throwIfAborted();
  return call('attachments.condense', { attachId, summary });
}

/**
 * @param {unknown} given
 * @returns {Condensing}
 */
function checkedCondensing(given) {
  const { summarize, merge = summarize, signal, timeout, parallel } = checkedFields('The options', given);
  if (typeof summarize !== 'function') throw new TypeError('summarize must be a function.');
  if (typeof merge !== 'function') throw new TypeError('merge must be a function.');
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal must be an AbortSignal.');
  return {
    summarize: /** @type {Condensing['summarize']} */ (summarize),
    merge: /** @type {Condensing['merge']} */ (merge),
    signal,
    timeout: checkedWhole('timeout', timeout ?? TIMEOUT, 1, TIMEOUT_MOST),
    parallel: checkedWhole('parallel', parallel ?? PARALLEL, 1, PARALLEL_MOST),
  };
}

/** @param {unknown} which */
function checkedLast(which) {
  const { last } = checkedOptions(which);
  if (last === true) return { last };
  throw new TypeError('The attachment must be named by its id, or as {last: true}.');
}

/** @param {unknown} time milliseconds since 1970 */
function optionalTime(time) {
  if (time === undefined || (typeof time === 'number' && Number.isFinite(time))) return time;
  throw new TypeError('changedSince must be milliseconds since 1970, or the text of a date.');
}

/** @param {unknown} images */
function checkedTexts(images) {
  if (Array.isArray(images)) return Array.from(images, (one) => checkedText('Each of images', one));
  throw new TypeError('images must be an array of texts.');
}
