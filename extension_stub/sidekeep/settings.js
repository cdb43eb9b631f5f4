// @ts-check
/**
 * Settings: small values of the local area, read together over their defaults: `keep.settings`.
 *
 * Rules of this module:
 * - `getAll` asks for a list of keys that is fixed when the stub connects: those of the defaults but
 *   `history`, and the option keys. Conversations, sessions and their index never are among them.
 * - Defaults are merged under what is stored at every level of plain objects. A stored array or null
 *   takes the place of its default; a stored key that the defaults do not know stays.
 * - What is given out is nobody else's: changing it changes neither the defaults nor the next answer.
 * - Settings that belong together are one change.
 */

import { checkedFields, checkedText } from './checks.js';
import { copied, mergeDefaults, put } from './trees.js';
import { convertDefaults } from './values.js';

/** @typedef {import('./index.d.ts').StorageArea} StorageArea */
/** @typedef {import('./configuration.d.ts').Settings} Settings */
/** @typedef {import('./configuration.d.ts').SettingsOptions} SettingsOptions */

/** The live conversation; among the defaults it says what is given in its place. */
const HISTORY = 'history';

/**
 * @param {StorageArea} local
 * @param {unknown} options `settings` of `connect`
 * @returns {Settings}
 * @throws {TypeError} if an option has the wrong type, or would have conversations read as settings
 */
export function settings(local, options) {
  const known = options === undefined ? null : checkedSettings(options);

  /**
   * @param {any} keys
   * @returns {Promise<any>}
   */
  const get = async (keys) => {
    if (typeof keys !== 'string') return local.get(keys);
    const items = await local.get(keys);
    return Object.hasOwn(items, keys) ? items[keys] : undefined;
  };

  /** @type {Settings} */
  const face = {
    get: (/** @type {unknown} */ keys) => {
      if (keys === undefined || keys === null) throw new TypeError('A key, keys, or keys with defaults must be given.');
      if (Array.isArray(keys)) keys.forEach((key) => checkedText('Each key', key));
      else if (typeof keys !== 'string') checkedFields('The keys', keys);
      return get(keys);
    },
    set: (/** @type {string | object} */ keyOrItems, /** @type {unknown[]} */ ...values) => {
      if (typeof keyOrItems !== 'string') return local.set(checkedFields('The settings', keyOrItems));
      if (values[0] === undefined) throw new TypeError('A setting must have a value; remove it instead.');
      /** @type {Record<string, unknown>} */
      const items = {};
      put(items, keyOrItems, values[0]);
      return local.set(items);
    },
    remove: (keys) => local.remove(keys),
    getAll: () => {
      if (!known) throw new TypeError('getAll needs connect({ settings: { defaults } }).');
      return all(local, known);
    },
    setActiveProvider: (name, model) =>
      local.set({
        activeProvider: checkedText('The name', name),
        activeModel: checkedText('The model', model ?? ''),
      }),
    setContextMode: (mode) => local.set({ contextMode: checkedText('The mode', mode) }),
  };
  return Object.freeze(face);
}

/** @typedef {{defaults: Record<string, any>, keys: string[], merge: SettingsOptions['merge']}} Known */

/**
 * @param {StorageArea} local
 * @param {Known} known
 * @returns {Promise<Record<string, any>>}
 */
async function all(local, { defaults, keys, merge }) {
  const stored = await local.get(keys);
  const merged = mergeDefaults(copied(defaults), copied(stored));
  return merge?.(merged, stored, copied(defaults)) ?? merged;
}

/**
 * @param {unknown} given
 * @returns {Known}
 */
function checkedSettings(given) {
  const { defaults, options = [], merge } = checkedFields('settings', given);
  const known = convertDefaults(checkedFields('settings.defaults', defaults));
  if (!Array.isArray(options)) throw new TypeError('settings.options must be an array of keys.');
  if (merge !== undefined && typeof merge !== 'function') {
    throw new TypeError('settings.merge must be a function.');
  }
  const named = options.map((key) => checkedText('Each of settings.options', key));
  if (named.includes(HISTORY)) throw new TypeError('history is no setting: getAll never reads it.');
  const light = Object.keys(/** @type {object} */ (defaults)).filter((key) => key !== HISTORY);
  const keys = [...new Set([...light, ...named])];
  const heavy = keys.find((key) => key === 'savedSessions' || key.startsWith('session_'));
  if (heavy !== undefined) throw new TypeError(`${heavy} is no setting: getAll never reads it.`);
  return { defaults: known, keys, merge: /** @type {SettingsOptions['merge']} */ (merge) };
}
