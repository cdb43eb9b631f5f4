// @ts-check
/**
 * Binary buffers of the session area, carried as text.
 *
 * The real session area keeps ArrayBuffers (typed arrays and DataViews come back as such); JSON has
 * none. So a buffer is stored as a string that begins with a mark, and a string of the application's
 * that begins like it is stored with another mark before it: every string comes back as it was.
 *
 * Rules of this module:
 * - Only the session area uses it. The local area refuses buffers, as the real one does.
 */

import { tame } from './trees.js';

/** @typedef {import('./trees.js').BinaryBuffer} BinaryBuffer */

const MARK = '\0sidekeep:';
const BUFFER = `${MARK}buffer:`;
const TEXT = `${MARK}text:`;

/** Bytes that are turned into a string at once: arguments of a function are limited. */
const STEP = 0x8000;

/**
 * The bytes of a buffer. One whose memory was transferred to somebody else has none, as in the real area;
 * asking such a DataView for its length throws.
 * @param {BinaryBuffer} buffer
 * @returns {Uint8Array} not a copy
 */
export function bytesOf(buffer) {
  const length = tame(() => buffer.byteLength, 0);
  if (length === 0) return new Uint8Array();
  if (ArrayBuffer.isView(buffer)) return new Uint8Array(buffer.buffer, buffer.byteOffset, length);
  return new Uint8Array(buffer);
}

/**
 * @param {BinaryBuffer} buffer
 * @returns {string} its bytes in base64, behind the mark of a buffer
 */
export function encodeBuffer(buffer) {
  const bytes = bytesOf(buffer);
  let units = '';
  for (let at = 0; at < bytes.length; at += STEP) {
    units += String.fromCharCode(...bytes.subarray(at, at + STEP));
  }
  return BUFFER + btoa(units);
}

/**
 * @param {string} text
 * @returns {string} the same, marked as text if it could be mistaken for a buffer
 */
export function escapeText(text) {
  return text.startsWith(MARK) ? TEXT + text : text;
}

/**
 * Puts the buffers back into a tree that came from the host; the tree is changed.
 * @template T
 * @param {T} value
 * @returns {T | ArrayBuffer | string} the value itself, unless it is a marked string
 */
export function decodeBuffers(value) {
  if (typeof value === 'string') return value.startsWith(MARK) ? decodeText(value) : value;
  if (typeof value === 'object' && value !== null) {
    const tree = /** @type {Record<string, unknown>} */ (value);
    for (const key of Object.keys(tree)) {
      const part = tree[key];
      const decoded = decodeBuffers(part);
      // The key is there already, so that even `__proto__` is set like any other.
      if (decoded !== part) Object.defineProperty(tree, key, { value: decoded });
    }
  }
  return value;
}

/** @param {string} text marked */
function decodeText(text) {
  if (text.startsWith(TEXT)) return text.slice(TEXT.length);
  if (!text.startsWith(BUFFER)) return text;
  const units = atob(text.slice(BUFFER.length));
  const bytes = new Uint8Array(units.length);
  for (let at = 0; at < units.length; at += 1) bytes[at] = units.charCodeAt(at);
  return bytes.buffer;
}
