// @ts-check
/**
 * The check of everything that the host keeps: `keep.verify`.
 *
 * Rules of this module:
 * - `onProgress` hears only while its own call is open. A check that began before the call gives it its
 *   report, and its progress too.
 */

import { checkedOptions } from './checks.js';

/** @typedef {import('./index.d.ts').Keep} Keep */
/** @typedef {import('./calls.js').HostProgress} HostProgress */

const METHOD = 'host.verify';

/**
 * @param {Keep['call']} call
 * @param {import('./index.d.ts').ListenerSet<[HostProgress]>} progress of the host
 * @returns {Keep['verify']}
 */
export function verifying(call, progress) {
  return (options) => {
    const { onProgress } = checkedOptions(options);
    if (onProgress !== undefined && typeof onProgress !== 'function') {
      throw new TypeError('onProgress must be a function.');
    }
    /** @param {HostProgress} told */
    const hear = ({ method, done, of }) => {
      if (method === METHOD) onProgress?.(Object.freeze({ done, of }));
    };
    progress.addListener(hear);
    return call(METHOD)
      .finally(() => progress.removeListener(hear))
      .then((report) => ({ more: 0, ...report }));
  };
}
