// @ts-check
/**
 * The areas for content scripts: they cannot open native ports, so the worker carries their calls.
 *
 *     // worker.js, in the first turn
 *     import { connect } from './sidekeep/index.js';
 *     import { relay } from './sidekeep/relay.js';
 *     relay(connect());
 *
 * Rules of this module:
 * - Only content scripts of this extension, in a tab, are served. Pages cannot reach it: they have no
 *   ports into the extension, and what other extensions and pages may open comes by another event.
 * - Before each frame of calls, and each event, the access level of the area is looked up where content
 *   scripts cannot change it (access.js). Which methods there are is listed here; none but those of the
 *   areas.
 * - Calls take effect in the order in which they came. Events go only to those who listen; nothing stands
 *   for a content script that is gone, and nothing is listened to but new ports.
 */

import { isOpenToContent } from './access.js';
import { extensionApi } from './browser.js';
import { fromHost, SidekeepError } from './errors.js';
import { AREAS } from './events.js';
import { RELAY } from './methods.js';
import { isPlace } from './place.js';
import { convertSessionItems, Measure } from './values.js';
import { placeAt, watcherOf } from './watcher.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./events.js').Changes} Changes */
/** @typedef {import('./index.d.ts').Keep} Keep */
/** @typedef {import('./place.js').Place} Place */
/** @typedef {import('./browser.js').RelayPort} RelayPort */

const METHODS = new Set(
  ['get', 'set', 'remove', 'clear', 'getKeys', 'getBytesInUse', 'update'].map((name) => `storage.${name}`),
);

/**
 * Serves the content scripts of this extension. To be called in the first turn of the worker: a content
 * script that connects wakes it.
 * @param {Keep} keep
 * @param {import('./relay.d.ts').RelayOptions} [options]
 * @returns {import('./relay.d.ts').Relay}
 * @throws {TypeError} if an option has the wrong type
 */
export function relay(keep, options = {}) {
  const { areas = AREAS, name = RELAY } = options;
  if (!Array.isArray(areas) || !areas.every((area) => AREAS.includes(area))) {
    throw new TypeError('areas must be an array of local and session.');
  }
  if (typeof name !== 'string' || name === '') throw new TypeError('name must be a text.');
  const { id, onConnect } =
    /** @type {{id?: string, onConnect: import('./browser.js').EventTarget_<(port: RelayPort) => void>}} */ (
      /** @type {unknown} */ (extensionApi().runtime)
    );
  /** @type {Set<Bound>} */
  const bound = new Set();
  /** @param {RelayPort} port */
  const connected = (port) => {
    if (port.name !== name) return;
    if (port.sender?.id !== id || typeof port.sender?.tab?.id !== 'number') {
      port.disconnect();
      return;
    }
    const one = new Bound(keep, areas, port, () => bound.delete(one));
    bound.add(one);
  };
  onConnect.addListener(connected);
  return Object.freeze({
    get bound() {
      return bound.size;
    },
    close: () => {
      onConnect.removeListener(connected);
      for (const one of [...bound]) one.close();
    },
  });
}

/** One content script. */
class Bound {
  #keep;
  #areas;
  #port;
  #onEnd;
  /** frames are handled one after another */
  #incoming = Promise.resolve();
  /** so are answers and events */
  #outgoing = Promise.resolve();
  /** @type {Map<AreaName, (changes: Changes) => void>} */
  #listeners = new Map();
  #gap;
  #ended = false;

  /**
   * @param {Keep} keep
   * @param {readonly AreaName[]} areas
   * @param {RelayPort} port
   * @param {() => void} onEnd
   */
  constructor(keep, areas, port, onEnd) {
    this.#keep = keep;
    this.#areas = areas;
    this.#port = port;
    this.#onEnd = onEnd;
    /** @param {{area: AreaName}} gap */
    this.#gap = ({ area }) => this.#send(async () => ({ gap: area, place: this.#place(area) }));
    port.onMessage.addListener((message) => {
      this.#incoming = this.#incoming.then(() => this.#receive([message].flat()));
    });
    port.onDisconnect.addListener(() => this.#end());
    port.postMessage({ relay: 1 }); // before it the other side sends nothing
  }

  close() {
    this.#port.disconnect();
    this.#end();
  }

  #end() {
    this.#ended = true;
    this.#listen([], null);
    this.#onEnd();
  }

  /** @param {any[]} elements of one frame */
  async #receive(elements) {
    const open = await this.#open();
    for (const element of elements) {
      if (this.#ended) return;
      if (Array.isArray(element?.listen)) this.#listen(element.listen, element.since);
      else if (Number.isSafeInteger(element?.id)) this.#call(element, open);
    }
  }

  /**
   * @param {{id: number, method?: unknown, params?: any}} request
   * @param {AreaName[]} open
   */
  #call({ id, method, params }, open) {
    const answer = this.#carried(method, params, open).then(
      (result) => ({ id, result }),
      (error) => ({ id, error: told(error) }),
    );
    answer.then((message) => this.#send(async () => message));
  }

  /**
   * @param {unknown} method
   * @param {any} params
   * @param {AreaName[]} open
   * @returns {Promise<unknown>}
   */
  async #carried(method, params, open) {
    if (!open.includes(params?.area)) throw notAllowed();
    if (method === 'setAccessLevel') {
      throw new SidekeepError('forbidden', 'Context cannot set the storage access level');
    }
    if (typeof method !== 'string' || !METHODS.has(method)) {
      throw new SidekeepError('methodNotFound', 'Content scripts cannot call this.');
    }
    return this.#keep.call(method, params);
  }

  /**
   * Tells of these areas from now on, and of no others.
   * @param {unknown[]} wanted
   * @param {any} since what the content script says it has heard up to, if it did before
   */
  #listen(wanted, since) {
    const { storage, onGap } = this.#keep;
    for (const area of AREAS) {
      const listener = this.#listeners.get(area);
      const wants = wanted.includes(area) && this.#areas.includes(area);
      if (wants && !listener) {
        if (since?.[area] && !this.#resume(area, since[area])) this.#gap({ area });
        const added = (/** @type {Changes} */ changes) => this.#tell(area, changes);
        this.#listeners.set(area, added);
        storage[area].onChanged.addListener(added);
      } else if (!wants && listener) {
        this.#listeners.delete(area);
        storage[area].onChanged.removeListener(listener);
      }
    }
    if (this.#listeners.size === 0) {
      onGap.removeListener(this.#gap);
      return;
    }
    onGap.addListener(this.#gap);
    this.#keep.call('host.ping').then(
      () => this.#send(async () => ({ places: this.#places() })),
      () => {}, // there is no place yet; a later loss is a gap
    );
  }

  /**
   * @param {AreaName} area
   * @param {unknown} place as the content script says; it goes to the host with those of all listeners
   * @returns {boolean} whether the content script will hear all from there on
   */
  #resume(area, place) {
    return isPlace(place) && watcherOf.get(this.#keep)?.resume(area, placeAt(place.seq, place.store)) === true;
  }

  /**
   * @param {AreaName} area
   * @param {Changes} changes
   */
  #tell(area, changes) {
    const place = this.#place(area);
    const carried = area === 'session' ? convertSessionItems(changes, new Measure()) : changes;
    this.#send(async () => {
      const open = await this.#open();
      return open.includes(area) ? { changed: { area, changes: carried, place } } : { places: { [area]: place } };
    });
  }

  /** @param {AreaName} area */
  #place(area) {
    return watcherOf.get(this.#keep)?.placeOf(area);
  }

  #places() {
    return Object.fromEntries([...this.#listeners.keys()].map((area) => [area, this.#place(area)]));
  }

  /** @returns {Promise<AreaName[]>} the areas that content scripts may use now */
  async #open() {
    const levels = await Promise.all(
      this.#areas.map(async (area) => {
        try {
          return await isOpenToContent(area);
        } catch (error) {
          console.warn('The Sidekeep stub refuses a content script:', error);
          return false;
        }
      }),
    );
    return this.#areas.filter((_, index) => levels[index]);
  }

  /** @param {() => Promise<object>} message made when its turn comes */
  #send(message) {
    this.#outgoing = this.#outgoing.then(async () => {
      const made = await message();
      if (this.#ended) return;
      try {
        this.#port.postMessage(made);
      } catch (error) {
        this.#refuse(made, error);
      }
    });
  }

  /**
   * A message that the browser does not carry: too long, or the content script is gone. In place of an
   * event goes a gap: an old and a new value may be too long together, each of which can be read.
   * @param {{id?: number, changed?: {area: AreaName, place?: Place}}} message
   * @param {unknown} error
   */
  #refuse({ id, changed }, error) {
    if (/disconnected/i.test(String(error))) return;
    if (changed) this.#port.postMessage({ gap: changed.area, place: changed.place });
    if (id === undefined) return;
    this.#port.postMessage({ id, error: told(new SidekeepError('tooLarge', `The browser does not carry it: ${error}`)) });
  }
}

/** @returns {SidekeepError} with the text of Chromium */
function notAllowed() {
  return new SidekeepError('forbidden', 'Access to storage is not allowed from this context.', {
    next: 'Open the area to content scripts with setAccessLevel, in the worker or a page of the extension.',
  });
}

/**
 * @param {unknown} error
 * @returns {Parameters<typeof fromHost>[0]} what the other side makes an error of again
 */
function told(error) {
  if (!(error instanceof SidekeepError)) return { message: String(error) };
  const { kind, code, message, next, data } = error;
  return { code, message, data: { ...data, kind, ...(next === undefined ? {} : { next }) } };
}
