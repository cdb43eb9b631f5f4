// @ts-check
/**
 * Conversations that were saved, and what was removed: `keep.sessions` and `keep.trash`.
 *
 * Rules of this module:
 * - Arguments of the wrong type throw at once; what the host refuses rejects.
 * - Where the host answers one thing in an object of its own, the thing itself is given.
 */

import {
  checkedEntries,
  checkedFields,
  checkedList,
  checkedOptions,
  checkedText,
  optionalFlag,
  optionalText,
  optionalWhole,
} from './checks.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./conversations.d.ts').Sessions} Sessions */
/** @typedef {import('./conversations.d.ts').Trash} Trash */

/**
 * @param {HostCall} call
 * @param {Sessions['onChanged']} onChanged
 * @returns {Sessions}
 */
export function sessions(call, onChanged) {
  /** @type {Sessions} */
  const face = {
    save: (session) => {
      const { id, name } = checkedOptions(session);
      return call('sessions.save', { id: optionalText('id', id), name: optionalText('name', name) });
    },
    list: (options) => {
      const { query, offset, limit } = checkedOptions(options);
      return call('sessions.list', {
        query: optionalText('query', query),
        offset: optionalWhole('offset', offset),
        limit: optionalWhole('limit', limit),
      });
    },
    load: (id, options) => {
      const { saveCurrent } = checkedOptions(options);
      return call('sessions.load', { id: checkedId(id), saveCurrent: optionalFlag('saveCurrent', saveCurrent) });
    },
    get: (id, options) => call('sessions.get', { id: checkedId(id), ...checkedList(options) }),
    append: (id, entries) => call('sessions.append', { id: checkedId(id), entries: checkedEntries(entries) }),
    rename: (id, name) => call('sessions.rename', { id: checkedId(id), name: checkedText('The name', name) }).then(row),
    pin: (id, pinned) => {
      if (typeof pinned !== 'boolean') throw new TypeError('pinned must be true or false.');
      return call('sessions.pin', { id: checkedId(id), pinned }).then(row);
    },
    delete: (id) => call('sessions.delete', { id: checkedId(id) }),
    clear: () => call('sessions.clear', {}),
    restore: (which) => {
      const fields = checkedFields('What is to be restored', which);
      if ('id' in fields === 'undo' in fields) {
        throw new TypeError('What is to be restored must have either an id or an undo.');
      }
      const part = 'id' in fields
        ? { id: checkedId(fields['id']) }
        : { undo: checkedText('undo', fields['undo']) };
      return call('sessions.restore', part).then(row);
    },
    onChanged,
  };
  return Object.freeze(face);
}

/**
 * @param {HostCall} call
 * @returns {Trash}
 */
export function trash(call) {
  /** @type {Trash} */
  const face = {
    list: () => call('trash.list', {}).then(({ items }) => items),
    empty: (undo) => call('trash.empty', { undo: optionalText('undo', undo) }),
  };
  return Object.freeze(face);
}

/** @param {unknown} id */
function checkedId(id) {
  return checkedText('The id', id);
}

/** @param {{row: import('./conversations.d.ts').SessionRow}} result */
function row(result) {
  return result.row;
}
