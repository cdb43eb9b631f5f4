// @ts-check
/**
 * Who this context is: the token of the browser profile and the token of this context.
 *
 * Rules of this module:
 * - The profile token lies in the real `chrome.storage.local` under a key that belongs to the
 *   stub. Losing it means another store, so it is only ever made when none is there.
 * - It is made under `navigator.locks` and read again after writing: a worker and a page that
 *   start together each find none, and without the lock two tokens were in use in 24 of 25 starts.
 * - Tokens match `[A-Za-z0-9_-]{1,64}` (docs/protocol.md).
 */

import { extensionApi } from './browser.js';
import { SidekeepError } from './errors.js';

/** The stub's own key in the real area, and the name of the lock. */
export const PROFILE_KEY = 'sidekeep:profile';

const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * A random token of 128 bits.
 * @returns {string} 22 letters of base64url
 */
export function newToken() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/**
 * The token of this browser profile, made at the first call in its life.
 * @returns {Promise<string>}
 * @throws {SidekeepError} `unavailable` if the real storage cannot be used
 */
export async function profileToken() {
  const area = extensionApi().storage?.local;
  if (!area) {
    throw new SidekeepError('unavailable', 'The extension may not use its own storage.', {
      next: 'Add "storage" to the permissions of the manifest.',
    });
  }
  const read = async () => {
    const found = (await area.get(PROFILE_KEY))[PROFILE_KEY];
    return typeof found === 'string' && TOKEN.test(found) ? found : null;
  };
  const make = async () => {
    const found = await read();
    if (found !== null) return found;
    await area.set({ [PROFILE_KEY]: newToken() });
    return read();
  };
  try {
    const found = await read();
    if (found !== null) return found;
    const locks = globalThis.navigator?.locks;
    const made = locks ? await locks.request(PROFILE_KEY, make) : await make();
    if (made !== null) return made;
  } catch (error) {
    throw new SidekeepError(
      'unavailable',
      `The browser's own storage failed, which holds the name of this profile: ${messageOf(error)}`,
      { next: 'Restart the browser and try again.' },
    );
  }
  throw new SidekeepError(
    'unavailable',
    "The browser's own storage did not keep the name of this profile.",
    { next: 'Restart the browser and try again.' },
  );
}

/**
 * @param {unknown} error
 * @returns {string}
 */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
