// @ts-check
/**
 * What the hello tells of an extension's data and of how its requests are to be made: the options
 * `attachmentPrefix` and `requests` of `connect`.
 *
 * Rules of this module:
 * - Only what is given is sent: the defaults are the host's.
 * - A name that is not known throws: a misspelt threshold would silently be the default.
 */

import { checkedFields, checkedText, checkedWhole } from './checks.js';

/** @typedef {import('./questions.d.ts').RequestOptions} RequestOptions */

/** The numbers, by group. */
const NUMBERS = Object.freeze({ aging: ['turns', 'chars'], overflow: ['chars'] });
const TEXTS = Object.freeze([
  'aging',
  'overflow',
  'condensed',
  'imageLabel',
  'noInstruction',
  'describeImages',
  'pageOnly',
  'agentNote',
  'placeholder',
]);

/**
 * @param {unknown} prefix how the text of an attachment begins
 * @param {unknown} requests
 * @returns {object | null} the `settings` of the hello, null if there is nothing to say
 * @throws {TypeError} if an option has the wrong type or an unknown name
 */
export function helloSettings(prefix, requests) {
  /** @type {Record<string, unknown>} */
  const settings = {};
  if (prefix !== undefined) {
    if (typeof prefix !== 'string' || prefix === '') throw new TypeError('attachmentPrefix must be a text.');
    settings['attachmentPrefix'] = prefix;
  }
  if (requests !== undefined) Object.assign(settings, checkedRequests(requests));
  return Object.keys(settings).length > 0 ? settings : null;
}

/**
 * @param {unknown} given
 * @returns {Record<string, unknown>}
 */
function checkedRequests(given) {
  const { condenseFrom, ...groups } = known('requests', given, ['condenseFrom', 'aging', 'overflow', 'texts']);
  /** @type {Record<string, unknown>} */
  const checked = {};
  if (condenseFrom !== undefined) checked['condenseFrom'] = checkedWhole('requests.condenseFrom', condenseFrom);
  for (const [group, names] of Object.entries({ ...NUMBERS, texts: TEXTS })) {
    if (groups[group] === undefined) continue;
    const check = group === 'texts' ? checkedText : checkedWhole;
    const fields = Object.entries(known(`requests.${group}`, groups[group], names));
    checked[group] = Object.fromEntries(
      fields.map(([name, value]) => [name, check(`requests.${group}.${name}`, value)]),
    );
  }
  return checked;
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {readonly string[]} names
 * @returns {Record<string, unknown>}
 */
function known(name, value, names) {
  const fields = checkedFields(name, value);
  const odd = Object.keys(fields).find((field) => !names.includes(field));
  if (odd !== undefined) throw new TypeError(`${name} has no option ${odd}; there are ${names.join(', ')}.`);
  return fields;
}
