// @ts-check
/**
 * Making one summary of the chunks of a text, by calls of a model that the extension makes.
 *
 * Rules of this module:
 * - One chunk is exactly one call, of the chunk itself. Several are one call each, some at a time,
 *   and one more that merges their results.
 * - Every call has a limit of time. The first failure, time-out or blank result ends all: calls
 *   under way are told to stop by their signal, no other is made, and there is no summary.
 */

import { SidekeepError } from './errors.js';

/** @typedef {import('./questions.d.ts').Summarize} Summarize */

/**
 * @typedef {object} Condensing
 * @property {Summarize} summarize
 * @property {Summarize} merge makes one of the results of several chunks
 * @property {AbortSignal | undefined} signal
 * @property {number} timeout milliseconds for each call
 * @property {number} parallel calls at a time
 */

/**
 * @param {string[]} chunks at least one
 * @param {Condensing} options
 * @returns {Promise<string>} the summary
 * @throws what a call failed with, the reason of the signal, or a SidekeepError `unavailable` for a
 *   call that took too long or gave nothing
 */
export async function condensed(chunks, { summarize, merge, signal, timeout, parallel }) {
  const count = chunks.length;
  const stop = new AbortController();
  const stopAll = () => stop.abort(signal?.reason);
  if (signal?.aborted) stopAll();
  signal?.addEventListener('abort', stopAll);
  /** @type {(make: Summarize, text: string, info: {index: number, count: number, merge: boolean}) => Promise<string>} */
  const ask = (make, text, info) => limited((own) => make(text, { ...info, signal: own }), stop.signal, timeout);
  try {
    if (count === 1) return await ask(summarize, /** @type {string} */ (chunks[0]), { index: 0, count, merge: false });
    const summaries = await someAtATime(chunks, parallel, stop.signal, (chunk, index) =>
      ask(summarize, `[Segment ${index + 1}/${count}]\n${chunk}`, { index, count, merge: false }),
    );
    const text = summaries.map((summary, index) => `[Segment ${index + 1}]\n${summary}`).join('\n\n');
    return await ask(merge, text, { index: 0, count, merge: true });
  } finally {
    signal?.removeEventListener('abort', stopAll);
    stop.abort();
  }
}

/**
 * @template Item
 * @template Result
 * @param {Item[]} items
 * @param {number} most at a time
 * @param {AbortSignal} signal
 * @param {(item: Item, index: number) => Promise<Result>} work
 * @returns {Promise<Result[]>} in the order of the items; rejects with the first failure
 */
async function someAtATime(items, most, signal, work) {
  /** @type {Result[]} */
  const results = new Array(items.length);
  const left = items.entries();
  const worker = async () => {
    for (const [index, item] of left) {
      signal.throwIfAborted();
      results[index] = await work(item, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
  return results;
}

/**
 * @param {(signal: AbortSignal) => string | Promise<string>} make gets a signal of its own
 * @param {AbortSignal} signal
 * @param {number} timeout milliseconds
 * @returns {Promise<string>} a text that is not blank
 */
async function limited(make, signal, timeout) {
  signal.throwIfAborted();
  const own = new AbortController();
  /** @type {(reason: unknown) => void} */
  let fail = () => {};
  /** @type {Promise<never>} */
  const failed = new Promise((_, reject) => {
    fail = reject;
  });
  const onAbort = () => {
    own.abort(signal.reason);
    fail(signal.reason);
  };
  const timer = setTimeout(() => {
    const error = new SidekeepError('unavailable', `No summary came within ${timeout / 1000} s.`, {
      next: 'Try again; the attachment is as it was.',
    });
    own.abort(error);
    fail(error);
  }, timeout);
  signal.addEventListener('abort', onAbort);
  try {
    const made = (async () => make(own.signal))();
    return checkedSummary(await Promise.race([made, failed]));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * @param {unknown} summary
 * @returns {string}
 */
function checkedSummary(summary) {
  if (typeof summary !== 'string') throw new TypeError('summarize must give a text.');
  if (summary.trim() !== '') return summary;
  throw new SidekeepError('unavailable', 'The summary is empty.', {
    next: 'Try again, or with another model; the attachment is as it was.',
  });
}
