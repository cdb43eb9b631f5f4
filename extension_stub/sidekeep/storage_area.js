// @ts-check
/**
 * A storage area with the shape of one of `chrome.storage`: its members and their order, both call
 * forms, whom its methods may be called on.
 *
 * Rules of this module (measured on Chromium 156):
 * - Each area owns its members, in the browser's order, enumerable, writable and configurable; they have
 *   length 0 and are no constructors. An area is the one object of a class that nobody can construct.
 * - A method called on anything but its own area throws at once, on the other area too.
 * - What the real areas do not have (`update`, `getWithRevisions`) is not enumerable, so that the shape
 *   stays theirs.
 */

import { Area } from './area.js';
import { callBack } from './last_error.js';
import { checkedAccessLevel, placed } from './signatures.js';
import { checkedExpectations } from './update.js';

/** @typedef {import('./index.d.ts').StorageArea} StorageArea */
/** @typedef {import('./signatures.js').AccessLevel} AccessLevel */

/** What both areas say of their size; it says nothing of what is enforced (docs/differences.md). */
const QUOTA_BYTES = 10_485_760;

/**
 * @param {import('./area.js').Carrier} calls
 * @param {import('./events.js').AreaName} name
 * @param {StorageArea['onChanged']} onChanged
 * @param {(area: import('./events.js').AreaName, level: AccessLevel) => Promise<void>} setLevel
 * @returns {StorageArea}
 */
export function storageArea(calls, name, onChanged, setLevel) {
  const area = new Area(calls, name);
  /** @type {any} */
  const face = Object.create(hiddenMembers(area, () => face));

  /**
   * @param {unknown} receiver `this` of a call
   * @param {import('./signatures.js').Method} method
   * @param {unknown[]} args
   * @param {(first: any) => Promise<any>} run
   * @param {boolean} [hasValue] whether the callback gets the result
   */
  const invoke = (receiver, method, args, run, hasValue = false) => {
    checkReceiver(receiver, face);
    const { first, callback } = placed(method, args);
    const call = run(first);
    if (!callback) return call;
    callBack(call, callback, hasValue);
    return undefined;
  };

  // Shorthand methods are no constructors; rest parameters leave their length at 0.
  Object.assign(face, {
    /** @param {unknown[]} args */
    get(...args) {
      return invoke(this, 'get', args, (keys) => area.get(keys), true);
    },
    /** @param {unknown[]} args */
    getKeys(...args) {
      return invoke(this, 'getKeys', args, () => area.getKeys(), true);
    },
    /** @param {unknown[]} args items, and a condition or a callback */
    set(...args) {
      const expect = args.length === 2 ? checkedExpectations(args[1]) : undefined;
      const given = expect ? args.slice(0, 1) : args;
      return invoke(this, 'set', given, (items) => area.set(items, expect));
    },
    /** @param {unknown[]} args */
    remove(...args) {
      return invoke(this, 'remove', args, (keys) => area.remove(keys));
    },
    /** @param {unknown[]} args */
    clear(...args) {
      return invoke(this, 'clear', args, () => area.clear());
    },
    /** @param {unknown[]} args */
    getBytesInUse(...args) {
      return invoke(this, 'getBytesInUse', args, (keys) => area.getBytesInUse(keys), true);
    },
    /** @param {unknown[]} args */
    setAccessLevel(...args) {
      return invoke(this, 'setAccessLevel', args, (options) => setLevel(name, checkedAccessLevel(options)));
    },
  });
  Object.defineProperty(face, 'onChanged', {
    get() {
      checkReceiver(this, face);
      return onChanged;
    },
    enumerable: true,
    configurable: true,
  });
  face.QUOTA_BYTES = QUOTA_BYTES;
  return face;
}

/**
 * @param {Area} area
 * @param {() => StorageArea} face
 * @returns {object} the prototype of the area
 */
function hiddenMembers(area, face) {
  const { constructor } = {
    constructor: function () {
      throw new Error('Objects of type StorageArea cannot be created using the constructor.');
    },
  };
  Object.defineProperty(constructor, 'name', { value: '' });
  const members = {
    constructor,
    /**
     * @this {unknown}
     * @param {string} key
     * @param {import('./index.d.ts').Update} change
     */
    update(key, change) {
      checkReceiver(this, face());
      return area.update(key, change);
    },
    /**
     * @this {unknown}
     * @param {null | string | string[]} [keys]
     */
    getWithRevisions(keys) {
      checkReceiver(this, face());
      return area.getWithRevisions(keys);
    },
  };
  for (const name of Object.keys(members)) Object.defineProperty(members, name, { enumerable: false });
  constructor.prototype = members;
  return members;
}

/**
 * @param {unknown} receiver
 * @param {unknown} face
 */
function checkReceiver(receiver, face) {
  if (receiver === face) return;
  throw new TypeError('Illegal invocation: Function must be called on an object of type StorageArea');
}
