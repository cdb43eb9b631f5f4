// @ts-check
/**
 * The live conversation, entry by entry: `keep.history`.
 *
 * Rules of this module:
 * - Arguments of the wrong type throw at once; what the host refuses rejects.
 * - The results are the host's.
 */

import {
  checkedEntries,
  checkedEntry,
  checkedFields,
  checkedList,
  checkedOptions,
  checkedText,
  checkedWhole,
  optionalText,
  optionalWhole,
} from './checks.js';
import { Mutations } from './mutations.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./conversations.d.ts').History} History */
/** @typedef {import('./conversations.d.ts').EntryWithId} EntryWithId */

/**
 * @param {HostCall} call
 * @param {History['onChanged']} onChanged
 * @returns {History}
 */
export function history(call, onChanged) {
  const mutations = new Mutations(call);
  /** @type {History} */
  const face = {
    list: (options) => call('history.list', checkedList(options)),
    append: (entries, options) => {
      const { conversation } = checkedOptions(options);
      return call('history.append', {
        entries: checkedEntries(entries),
        conversation: optionalText('conversation', conversation),
        expect: expected(options),
      });
    },
    update: (id, change) => {
      const fields = checkedFields('The change', change);
      if ('entry' in fields === 'merge' in fields) {
        throw new TypeError('The change must have either entry or merge.');
      }
      const part = 'entry' in fields
        ? { entry: checkedEntry(fields['entry']) }
        : { merge: checkedFields('merge', fields['merge']) };
      return call('history.update', { id: checkedText('The id', id), ...part, expect: expected(change) });
    },
    replace: (entries, options) => {
      if (!Array.isArray(entries)) throw new TypeError('The entries must be an array of {id, entry}.');
      const checked = Array.from(entries, (one) => {
        const { id, entry } = checkedFields('Each of the entries', one);
        return { id: optionalText('id', id), entry: checkedEntry(entry) };
      });
      const expect = checkedWhole('expect', checkedOptions(options)['expect']);
      return call('history.replace', { entries: checked, expect });
    },
    remove: (which, options) => call('history.remove', { ...place(which, true), expect: expected(options) }),
    truncate: (from, options) => {
      const { id, index } = place(from, false);
      return call('history.truncate', { from: id ?? index, expect: expected(options) });
    },
    clear: () => call('history.clear', {}),
    undo: (undo) => call('history.undo', { undo: optionalText('undo', undo) }),
    mutate: (change) => mutations.run(change),
    onChanged,
  };
  return Object.freeze(face);
}

/**
 * @param {unknown} options
 * @returns {number | undefined} the revision that the list must have
 */
function expected(options) {
  return optionalWhole('expect', checkedOptions(options)['expect']);
}

/**
 * @param {unknown} which
 * @param {boolean} attachments whether an attachment may be named
 * @returns {{id?: string, index?: number, attachId?: string}} exactly one of them
 */
function place(which, attachments) {
  if (typeof which === 'string') return { id: which };
  if (typeof which === 'number') return { index: checkedWhole('The index', which) };
  const fields = checkedFields('The entry', which);
  const names = ['id', 'index', ...(attachments ? ['attachId'] : [])].filter((name) => name in fields);
  const [name] = names;
  if (names.length !== 1) throw new TypeError('The entry must be named by exactly one of its id and its index.');
  if (name === 'index') return { index: checkedWhole('The index', fields['index']) };
  const text = checkedText(`The ${name}`, fields[/** @type {string} */ (name)]);
  return name === 'id' ? { id: text } : { attachId: text };
}
