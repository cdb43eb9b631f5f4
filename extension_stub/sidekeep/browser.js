// @ts-check
/**
 * What the stub uses of the browser, looked up at the time of use.
 *
 * Rules of this module:
 * - Nothing is touched when the module is imported.
 * - Only the promise forms are used: they exist in `chrome` (Chromium MV3) and in `browser` and
 *   `chrome` of Firefox MV3.
 */

import { SidekeepError } from './errors.js';

/**
 * Under this name an object that stands in the place of the browser's own carries that one with it
 * (as_chrome.js). It is shared by all copies of the stub in a page.
 */
export const REAL = Symbol.for('sidekeep.real');

/**
 * @template {(...args: any[]) => void} Listener
 * @typedef {{addListener(fn: Listener): void, removeListener(fn: Listener): void}} EventTarget_
 */

/**
 * @typedef {object} NativePort
 * @property {(message: unknown) => void} postMessage
 * @property {() => void} disconnect
 * @property {EventTarget_<(message: unknown) => void>} onMessage
 * @property {EventTarget_<(port: NativePort) => void>} onDisconnect
 * @property {{message?: string} | null} [error] Firefox: why the port ended
 */

/**
 * @typedef {object} RelayPort a port between a content script and the worker
 * @property {string} name
 * @property {{id?: string, tab?: {id?: number}}} [sender]
 * @property {(message: unknown) => void} postMessage
 * @property {() => void} disconnect
 * @property {EventTarget_<(message: any) => void>} onMessage
 * @property {EventTarget_<(port: RelayPort) => void>} onDisconnect
 */

/**
 * @typedef {object} RealArea an area of the browser's own storage
 * @property {(keys: string | string[] | null) => Promise<Record<string, any>>} get
 * @property {(items: Record<string, unknown>) => Promise<void>} set
 * @property {(keys: string | string[]) => Promise<void>} remove
 * @property {() => Promise<string[]>} [getKeys] newer browsers only
 * @property {(keys: string[]) => Promise<number>} [getBytesInUse] not in every Firefox
 * @property {EventTarget_<(changes: Record<string, unknown>) => void>} [onChanged]
 */

/**
 * @typedef {object} ExtensionApi
 * @property {{
 *   id?: string,
 *   connectNative?: (host: string) => NativePort,
 *   lastError?: {message?: string} | null,
 * }} runtime
 * @property {{local?: RealArea, session?: RealArea}} [storage]
 * @property {{inIncognitoContext?: boolean}} [extension]
 */

/**
 * The browser's own extension API of this context, also where `keep.asChrome()` took its place.
 * @returns {ExtensionApi}
 * @throws {SidekeepError} `unavailable` outside an extension
 */
export function extensionApi() {
  const scope = /** @type {{chrome?: ExtensionApi, browser?: ExtensionApi}} */ (globalThis);
  const api = real(scope.chrome?.runtime ? scope.chrome : scope.browser);
  if (!api?.runtime) {
    throw new SidekeepError('unavailable', 'This page is not part of an extension.', {
      next: 'Use the stub in a page or the worker of an extension.',
    });
  }
  return api;
}

/**
 * The browser's own storage, also where the stub's took its place.
 * @returns {ExtensionApi['storage']}
 */
export function realStorage() {
  return real(extensionApi().storage);
}

/**
 * @template T
 * @param {T} object
 * @returns {T} the browser's own object that it stands for, or itself
 */
function real(object) {
  return /** @type {any} */ (object)?.[REAL] ?? object;
}

/**
 * Opens a native port.
 * @param {string} host the native host's name
 * @returns {NativePort}
 * @throws {SidekeepError} `unavailable` if this context cannot open one
 * @throws {Error} whatever the browser throws
 */
export function openNativePort(host) {
  const { runtime } = extensionApi();
  if (typeof runtime.connectNative !== 'function') {
    throw new SidekeepError('unavailable', 'This context cannot reach a native host.', {
      next: 'Add "nativeMessaging" to the permissions of the manifest; content scripts cannot.',
    });
  }
  return runtime.connectNative(host);
}

/**
 * Why a port ended, as the browser words it; to be called inside `onDisconnect`.
 * @param {NativePort} port
 * @returns {string} '' where the browser gives no reason
 */
export function lossText(port) {
  return port.error?.message ?? extensionApi().runtime.lastError?.message ?? '';
}

/**
 * Whether this is the extension's background (worker, or Firefox's event page), which an open port
 * keeps from sleeping.
 * @returns {boolean}
 */
export function isBackground() {
  if (typeof document === 'undefined') return true;
  return typeof location !== 'undefined' && /_generated_background_page/.test(location.pathname);
}

/**
 * Whether this context belongs to the incognito side of an extension in split mode.
 * @returns {boolean}
 */
export function isIncognito() {
  return extensionApi().extension?.inIncognitoContext === true;
}

/**
 * Whether no extension runs this context. Where one did, it was reloaded or removed under it, and it can
 * reach nothing now.
 * @returns {boolean}
 */
export function isOrphaned() {
  const scope = /** @type {{chrome?: ExtensionApi, browser?: ExtensionApi}} */ (globalThis);
  return !(scope.chrome?.runtime?.id ?? scope.browser?.runtime?.id);
}

/**
 * Whether this page lies inside a page of somebody else. What the browser keeps for the extension's origin
 * (locks, channels, databases) is then another one, or denied; its own storage areas are the same.
 * @returns {boolean}
 */
export function isEmbedded() {
  const { location } = /** @type {{location?: {origin: string, ancestorOrigins?: ArrayLike<string>}}} */ (globalThis);
  return Array.from(location?.ancestorOrigins ?? []).some((origin) => origin !== location?.origin);
}
