// @ts-check
/**
 * The event of a storage area as the browser shows it, over one of the stub's own.
 *
 * Rules of this module (measured on Chromium 156):
 * - It owns its members, `dispatch` among them, and works on whatever event it is called on; on anything
 *   else it throws at once.
 * - What is no function is no listener and is passed over; a second argument throws, since there are
 *   no filters.
 */

/**
 * @template {unknown[]} Args
 * @typedef {import('./event.js').Event<Args>} Event
 */

/** The events behind the ones that are shown. @type {WeakMap<object, Event<any>>} */
const behind = new WeakMap();

/** @param {unknown} receiver */
function eventOf(receiver) {
  const event = typeof receiver === 'object' && receiver !== null ? behind.get(receiver) : undefined;
  if (event) return event;
  throw new TypeError('Illegal invocation: Function must be called on an object of type Event');
}

const proto = Object.defineProperty({}, 'constructor', {
  value: Object.defineProperty(
    function () {
      throw new Error('Objects of type Event cannot be created using the constructor.');
    },
    'name',
    { value: '' },
  ),
  writable: true,
  configurable: true,
});
proto.constructor.prototype = proto;

// Shorthand methods are no constructors; rest parameters leave their length at 0.
const members = {
  /** @this {unknown} @param {unknown[]} args */
  addListener(...args) {
    const event = eventOf(this);
    if (typeof args[0] !== 'function') return;
    if (args.length > 1) throw new TypeError('This event does not support filters');
    event.addListener(/** @type {any} */ (args[0]));
  },
  /** @this {unknown} @param {unknown[]} args */
  removeListener(...args) {
    eventOf(this).removeListener(/** @type {any} */ (args[0]));
  },
  /** @this {unknown} @param {unknown[]} args */
  hasListener(...args) {
    const event = eventOf(this);
    if (args.length === 0) throw new TypeError('Insufficient number of arguments.');
    const [listener] = args;
    if (typeof listener !== 'function') {
      const shown = typeof listener === 'string' || listener === null || listener === undefined ? listener : '';
      throw new TypeError(`Error processing argument at index 0, conversion failure from ${shown}`);
    }
    return event.hasListener(/** @type {any} */ (listener));
  },
  /** @this {unknown} @param {unknown[]} _args */
  hasListeners(..._args) {
    return eventOf(this).hasListeners();
  },
  /** @this {unknown} @param {unknown[]} args what the listeners get */
  dispatch(...args) {
    const results = eventOf(this).emit(...args);
    return results.length > 0 ? { results } : undefined;
  },
};

/**
 * @template {unknown[]} Args
 * @param {Event<Args>} event
 * @returns {import('./index.d.ts').ListenerSet<Args>}
 */
export function chromeEvent(event) {
  const face = Object.assign(Object.create(proto), members);
  behind.set(face, event);
  return face;
}
