// @ts-check
/**
 * Who this context is: the tokens of the browser profile, of the browser run and of this context.
 *
 * Rules of this module:
 * - The profile token lies in the real `chrome.storage.local` under a key that belongs to the
 *   stub. Losing it means another store, so it is only ever made when none is there.
 * - It is made under `navigator.locks` and read again after writing: a worker and a page that
 *   start together each find none, and without the lock two tokens were in use in 24 of 25 starts.
 * - The run token lies in the real `chrome.storage.session` and is made in the same way: it lives
 *   exactly as long as the real session area keeps its values.
 * - Tokens match `[A-Za-z0-9_-]{1,64}` (docs/protocol.md).
 */

import { isEmbedded, isIncognito, realStorage } from './browser.js';
import { SidekeepError } from './errors.js';

/** @typedef {import('./browser.js').RealArea} RealArea */

/** The stub's own keys in the real areas, and the names of the locks. */
export const PROFILE_KEY = 'sidekeep:profile';
export const RUN_KEY = 'sidekeep:run';

/** Milliseconds in which the other side of the browser writes a token that it has begun to make. */
const OFFER_WAIT = 200;

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
  const area = realStorage()?.local;
  if (!area) {
    throw new SidekeepError('unavailable', 'The extension may not use its own storage.', {
      next: 'Add "storage" to the permissions of the manifest.',
    });
  }
  return sharedToken(area, PROFILE_KEY, 'profile');
}

/**
 * The token of this browser run, made at the first call in it. The browser empties its own session
 * area when the session ends: at a restart, and when the extension is reloaded, updated or disabled.
 * @returns {Promise<string | null>} null in a browser that has no session area
 * @throws {SidekeepError} `unavailable` if the real storage cannot be used
 */
export async function runToken() {
  const area = realStorage()?.session;
  return area ? sharedToken(area, RUN_KEY, 'session') : null;
}

/**
 * A token that all contexts of the extension share, made where there is none.
 * @param {RealArea} area of the browser's own storage
 * @param {string} key
 * @param {string} what it names, for people
 * @returns {Promise<string>}
 * @throws {SidekeepError} `unavailable` if the area cannot be used
 */
async function sharedToken(area, key, what) {
  const offerKey = `${key}:offer`;
  const incognito = isIncognito();
  /** @param {string} from */
  const read = async (from) => {
    const found = (await area.get(from))[from];
    return typeof found === 'string' && TOKEN.test(found) ? found : null;
  };
  const make = async () => {
    const found = await read(key);
    if (found !== null) return found;
    if (incognito) return offer();
    await area.set({ [key]: (await read(offerKey)) ?? newToken() });
    return read(key);
  };
  // Locks do not reach from one side of the browser to its incognito side, nor out of a page that lies in
  // one of the web. So these only offer a token, which the other side takes, and give that one time to
  // have made another.
  const offer = async () => {
    if ((await read(offerKey)) === null) await area.set({ [offerKey]: newToken() });
    await new Promise((done) => setTimeout(done, OFFER_WAIT));
    return (await read(key)) ?? (await read(offerKey));
  };
  try {
    const found = await read(key);
    if (found !== null) return found;
    const locks = globalThis.navigator?.locks;
    const made = isEmbedded() ? await offer() : locks ? await locks.request(key, make) : await make();
    if (made !== null) return made;
  } catch (error) {
    throw new SidekeepError(
      'unavailable',
      `The browser's own storage failed, which holds the name of this ${what}: ${messageOf(error)}`,
      { next: 'Restart the browser and try again.' },
    );
  }
  throw new SidekeepError(
    'unavailable',
    `The browser's own storage did not keep the name of this ${what}.`,
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
