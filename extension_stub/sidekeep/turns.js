// @ts-check
/**
 * Questions to a model and what becomes of them: `keep.turns`.
 *
 * Rules of this module:
 * - From its beginning until it was completed or failed a turn keeps the worker awake and its port
 *   open: a host that ends takes the turn for one whose caller is gone. Nothing heard of it for
 *   MOST ends that.
 * - `complete` and `fail` may be tried again after they failed; whether they may is the host's to say.
 * - Arguments of the wrong type throw at once; what the host refuses rejects.
 */

import { MOST, stayAwake } from './awake.js';
import { checkedEntry, checkedFields, checkedOptions, checkedText, optionalFlag, optionalText } from './checks.js';
import { SidekeepError } from './errors.js';
import { Progress } from './progress.js';

/** @typedef {import('./index.d.ts').Keep['call']} HostCall */
/** @typedef {import('./questions.d.ts').Turn} Turn */
/** @typedef {import('./questions.d.ts').Turns} Turns */

const REASONS = ['error', 'abort', 'drop', 'interrupted'];
/** Refusals after which there is nothing more to do for a turn. */
const OVER = ['conflict', 'notFound'];

/**
 * @param {HostCall} call
 * @param {() => () => void} hold keeps the port open until what it gives is called
 * @returns {Turns}
 */
export function turns(call, hold) {
  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   */
  const begun = async (method, params) => running(call, hold, await call(method, params));

  /** @type {Turns} */
  const face = {
    begin: (turn) => {
      const { text, images, parallel } = checkedFields('The turn', turn);
      return begun('turns.begin', {
        text: checkedText('text', text),
        images: optionalTexts('images', images),
        parallel: optionalFlag('parallel', parallel),
        ...request(turn),
      });
    },
    edit: (entryId, turn) => {
      const { text, images, parallel } = checkedFields('The turn', turn);
      return begun('turns.edit', {
        entryId: checkedText('The id', entryId),
        text: optionalText('text', text),
        images: optionalTexts('images', images),
        parallel: optionalFlag('parallel', parallel),
        ...request(turn),
      });
    },
    regenerate: (entryId, turn) => {
      const { parallel } = checkedFields('The turn', turn);
      return begun('turns.regenerate', {
        entryId: checkedText('The id', entryId),
        parallel: optionalFlag('parallel', parallel),
        ...request(turn),
      });
    },
  };
  return Object.freeze(face);
}

/**
 * A turn that has begun.
 * @param {HostCall} call
 * @param {() => () => void} hold
 * @param {{turnId: string, entryId: string, conversation: string, request: any, left: any, undo?: any}} result
 * @returns {Turn}
 */
function running(call, hold, { turnId, entryId, conversation, request, left, undo }) {
  const awake = stayAwake(MOST, hold());
  const progress = new Progress((text) => call('turns.progress', { turnId, text }));

  /**
   * @param {string} method
   * @param {Record<string, unknown>} params
   * @returns {Promise<any>}
   */
  const end = async (method, params) => {
    try {
      const result = await call(method, { turnId, ...params });
      awake.release();
      return result;
    } catch (error) {
      if (error instanceof SidekeepError && OVER.includes(error.kind)) awake.release();
      throw error;
    }
  };

  /** @type {Turn} */
  const face = {
    turnId,
    entryId,
    conversation,
    ...(undo === undefined ? {} : { undo }),
    get request() {
      return request;
    },
    get left() {
      return left;
    },
    get unsaved() {
      return /** @type {SidekeepError | null} */ (progress.failure);
    },
    progress: (text) => {
      awake.renew();
      progress.put(checkedText('The text', text));
    },
    rescue: async (error) => {
      awake.renew();
      const result = await call('turns.rescue', { turnId, error: problem(error) });
      if (result.request !== null) {
        ({ request, left } = result);
        progress.reset();
      }
      return result;
    },
    complete: (content, stamps) => {
      const params = { content: checkedEntry(content), stamps: optionalFields('The stamps', stamps) };
      progress.end();
      return end('turns.complete', params);
    },
    fail: (reason, partial) => {
      if (!REASONS.includes(reason)) throw new TypeError(`The reason must be one of ${REASONS.join(', ')}.`);
      const given = optionalText('partial', partial);
      const newest = progress.end();
      return end('turns.fail', { reason, partial: reason === 'drop' ? undefined : given ?? newest });
    },
  };
  return Object.freeze(face);
}

/**
 * @param {unknown} turn
 * @returns {{target: object, limits: object | undefined}} what every turn says of its request
 */
function request(turn) {
  const { target, limits } = checkedOptions(turn);
  const checked = checkedFields('target', target);
  checkedText('target.style', checked['style']);
  return { target: checked, limits: optionalFields('limits', limits) };
}

/**
 * What an error tells of a request that was too large. It may be any error: what is of another type
 * than a server's status, code and message is left out.
 * @param {unknown} error
 * @returns {{status?: number, code?: string | number, message?: string}}
 */
function problem(error) {
  const { status, code, message } = checkedFields('The error', error);
  return {
    ...(Number.isSafeInteger(status) ? { status: /** @type {number} */ (status) } : {}),
    ...(typeof code === 'string' || Number.isSafeInteger(code) ? { code: /** @type {string} */ (code) } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  };
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {string[] | undefined}
 */
function optionalTexts(name, value) {
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return Array.from(value, (one) => checkedText(`Each of ${name}`, one));
  throw new TypeError(`${name} must be an array of texts.`);
}

/**
 * @param {string} name
 * @param {unknown} value
 * @returns {object | undefined}
 */
function optionalFields(name, value) {
  return value === undefined ? undefined : checkedFields(name, value);
}
