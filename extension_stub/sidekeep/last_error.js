// @ts-check
/**
 * The callback form: a callback in place of a promise, and `chrome.runtime.lastError` for what failed.
 *
 * Rules of this module (measured on Chromium 156):
 * - `lastError` stands on the browser's own `runtime` for exactly the length of the callback, and only
 *   if the call failed. A failure that the callback does not look at is said on the console.
 * - A `lastError` that a script has put there itself stays, and nothing is said of it; one that it puts
 *   there in the callback goes.
 * - The browser's own `lastError` of another call stays through the microtasks after that call's callback,
 *   and looks like one that a script has put there. It is gone in the next task: the callback of a failure
 *   waits for that if there is a `lastError`, and those after it wait with it.
 * - What a callback throws is said on the console and reaches nobody: neither the next callback nor
 *   `unhandledrejection`.
 */

import { extensionApi } from './browser.js';

/** Callbacks that wait for the next task, in their order; the first of them asked for it. @type {(() => void)[]} */
const waiting = [];

/**
 * Calls back when a call has settled.
 * @param {Promise<unknown>} call
 * @param {(...args: any[]) => void} callback gets the value, or nothing if the call failed
 * @param {boolean} hasValue whether there is a value at all
 */
export function callBack(call, callback, hasValue) {
  call.then(
    (value) => inTurn(false, () => run(callback, hasValue ? [value] : [])),
    (error) => {
      const message = error instanceof Error ? error.message : String(error);
      // Not its value: the browser would take it that a script has looked at it.
      inTurn(Object.hasOwn(extensionApi().runtime, 'lastError'), () => failed(callback, message));
    },
  );
}

/**
 * @param {boolean} later whether it has to wait for the next task
 * @param {() => void} call what calls back, after what waits already
 */
function inTurn(later, call) {
  if (!later && waiting.length === 0) {
    call();
    return;
  }
  waiting.push(call);
  if (waiting.length > 1) return;
  // Not a timer: the browser slows those of pages that nobody sees.
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    for (const one of waiting.splice(0)) one();
  };
  port2.postMessage(null);
}

/**
 * @param {(...args: any[]) => void} callback
 * @param {unknown[]} args
 */
function run(callback, args) {
  try {
    Reflect.apply(callback, globalThis, args);
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? String(error)) : `Uncaught ${String(error)}`;
    console.error(`Error handling response: ${text}`);
  }
}

/**
 * @param {(...args: any[]) => void} callback
 * @param {string} message
 */
function failed(callback, message) {
  let looked = false;
  const undo = define({ message }, () => {
    looked = true;
  });
  run(callback, []);
  undo();
  if (!looked) console.error(`Unchecked runtime.lastError: ${message}`);
}

/**
 * @param {{message: string}} lastError
 * @param {() => void} onLook called when a script reads it
 * @returns {() => void} takes it away again
 */
function define(lastError, onLook) {
  const { runtime } = extensionApi();
  const before = Object.getOwnPropertyDescriptor(runtime, 'lastError');
  if (before && 'value' in before) {
    onLook(); // the script looks after it itself
    return () => {};
  }
  try {
    Object.defineProperty(runtime, 'lastError', {
      get: () => {
        onLook();
        return lastError;
      },
      set: (value) => {
        Object.defineProperty(runtime, 'lastError', { value, writable: true, enumerable: true, configurable: true });
      },
      enumerable: true,
      configurable: true,
    });
  } catch {
    return () => {}; // a browser that guards it: the failure is said on the console
  }
  return () => {
    delete runtime.lastError;
    if (before) Object.defineProperty(runtime, 'lastError', before);
  };
}
