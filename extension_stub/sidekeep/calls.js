// @ts-check
/**
 * The calls of one context: they are collected, sent, repeated on a new port, and settled.
 *
 * Rules of this module:
 * - Every call settles: with the host's answer, with a typed error, or after `timeout` milliseconds
 *   without progress. Parts, their acknowledgements and the host's word of its progress are progress;
 *   for a call that could not be posted yet so is whatever arrives.
 * - A call that had no effect is `unavailable`; a mutation that may have had one is `unknown`.
 * - The calls of one tick are handed to the port together, by a microtask.
 * - When a port is lost, what was not answered is sent again on the next one, mutations under the
 *   same client and `op`, so that the host answers a repeated one with its first result. A call
 *   that saw its port end three times is not sent again: it may be what ends the host.
 * - While the link is at rest after failures, calls are refused at once with the reason; so they are
 *   for good once the extension was reloaded or removed under this context.
 * - Whoever listens to changes is served first on every port.
 */

import { Call } from './call.js';
import { SidekeepError } from './errors.js';
import { Event } from './event.js';
import { Lanes } from './lanes.js';
import { Link } from './link.js';
import { changes } from './methods.js';
import { Measure } from './values.js';
import { Watchdog } from './watchdog.js';
import { Watches } from './watches.js';

/** @typedef {import('./channel.js').Outcome} Outcome */
/** @typedef {import('./call.js').Request} Request */
/** @typedef {import('./link.js').LinkOptions} LinkOptions */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./errors.js').PortLoss} PortLoss */
/** @typedef {import('./watches.js').Watcher} Watcher */
/** @typedef {{method: string, done: number, of: number}} HostProgress */

/** Ports that may end under a call before it is given up. */
const LOSSES_LIMIT = 3;

/** @typedef {LinkOptions & {changed: () => void}} CallsOptions `changed` is called when the host has
 *   made a change that was asked for here */

export class Calls {
  #options;
  #link;
  #watches;
  /** @type {Event<[HostProgress]>} how far long work of the host is */
  progress = new Event();
  #nextId = 1;
  #nextOp = 0;
  /** @type {Map<number, Call>} without an outcome, in call order */
  #open = new Map();
  #lanes = new Lanes();
  /** @type {Call[]} made in this tick */
  #tick = [];
  #closed = false;
  /** pieces of work that need the port */
  #holds = 0;
  /** when parts or acknowledgements last arrived; by performance.now() */
  #moved = 0;
  #watchdog = new Watchdog(
    () => this.#earliestDeadline(),
    (now) => this.#giveUpLate(now),
  );
  /** @type {(() => void)[]} */
  #whenDone = [];

  /**
   * @param {CallsOptions} options
   * @param {StatusBoard} status
   * @param {Watcher[]} watchers in the order in which they ask the host to tell
   */
  constructor(options, status, watchers) {
    this.#options = options;
    const newId = () => this.#nextId++;
    this.#watches = new Watches(watchers, {
      newId,
      opened: (call) => void this.#open.set(call.id, call),
      dropped: (call) => {
        this.#open.delete(call.id);
        if (this.#open.size === 0) this.#allDone();
      },
      again: (watcher) => {
        if (this.#link.up) this.listenersChanged(watcher, true);
      },
    });
    this.#link = new Link(options, status, {
      newId,
      open: () => [...this.#open.values()],
      busy: () => this.#open.size > 0,
      first: () => this.#first(),
      ready: () => this.#watches.load(),
      listens: () => this.#watches.listening,
      holds: () => this.#holds > 0,
      greeted: (hello) => this.#watches.greeted(hello),
      posted: (call) => this.#posted(call),
      answered: (id, outcome) => this.#answered(id, outcome),
      notified: (method, params) => this.#notified(method, params),
      moved: () => {
        this.#moved = performance.now();
      },
      lost: (loss, resting) => this.#lostPort(loss, resting),
    });
  }

  /**
   * Makes a call.
   * @param {string} method
   * @param {object} params converted
   * @param {Measure} measure of the parameters
   * @param {string | null} lane
   * @param {(result: any) => any} [view]
   * @returns {Promise<any>} what `view` gives of the result, or the result
   */
  call(method, params, measure, lane, view = itself) {
    /** @type {Request} */
    const request = { jsonrpc: '2.0', id: this.#nextId++, method, params };
    if (changes(method) && !this.#closed) request.op = this.#nextOp++;
    const call = new Call(request, measure, lane, view);
    this.#lanes.enter(call);
    const { refusal } = this.#link;
    if (this.#closed) {
      this.#finish(call, { error: new SidekeepError('unavailable', 'The stub was closed.') });
    } else if (refusal) {
      this.#finish(call, { error: refusal.copy() });
    } else {
      this.#open.set(call.id, call);
      this.#hand(call);
    }
    return call.promise;
  }

  /**
   * A call that fails before it is sent; it settles in its turn.
   * @param {string} lane
   * @param {SidekeepError} error
   * @returns {Promise<any>} rejects
   */
  refuse(lane, error) {
    /** @type {Request} */
    const request = { jsonrpc: '2.0', id: this.#nextId++, method: '', params: {} };
    const call = new Call(request, new Measure(), lane, itself);
    this.#lanes.enter(call);
    this.#finish(call, { error });
    return call.promise;
  }

  /**
   * Work begins that needs the port, in a worker too: it stays open, and a lost one is opened again.
   * @returns {() => void} to be called when it has ended; more than once does no harm
   */
  hold() {
    let held = true;
    this.#holds += 1;
    return () => {
      if (!held) return;
      held = false;
      this.#holds -= 1;
      if (this.#open.size === 0) this.#link.rest();
    };
  }

  /** Forgets failures and the rest; a silent port is given up. The next call opens a port. */
  retry() {
    this.#link.retry();
  }

  /**
   * Takes no more calls, waits for those that are open, and ends the port.
   * @returns {Promise<void>}
   */
  async close() {
    this.#closed = true;
    this.#watches.end();
    if (this.#open.size > 0) await new Promise((done) => this.#whenDone.push(() => done(undefined)));
    this.#watchdog.stop();
    this.#link.close();
  }

  /** Whether somebody listens to changes of the host. */
  get listening() {
    return this.#watches.listening;
  }

  /** Whether somebody listens, also while the host is not asked. */
  get wanted() {
    return this.#watches.wanted;
  }

  /** Asks the host for no changes, until `resume`. */
  pause() {
    this.#watches.paused = true;
  }

  resume() {
    this.#watches.paused = false;
    for (const watcher of this.#watches.watchers) if (watcher.listening) this.listenersChanged(watcher, true);
  }

  /**
   * To be called when what somebody listens to has changed.
   * @param {Watcher} watcher
   * @param {boolean} gained whether there is something new: only for that is a port opened
   */
  listenersChanged(watcher, gained) {
    watcher.forget();
    if (this.#closed) return;
    if (this.#link.saidHello) {
      const watch = this.#watches.next(watcher);
      if (watch) this.#hand(watch);
    } else if (gained) {
      this.hear();
    }
  }

  /** Opens a port, if there is none, to hear what was missed. */
  hear() {
    if (this.#closed || this.#link.up || !this.#watches.listening) return;
    queueMicrotask(() => this.#endOfTick());
  }

  // --- from a call to the port -------------------------------------------------------------

  /** @param {Call} call to leave with the others of this tick */
  #hand(call) {
    if (this.#tick.push(call) === 1) queueMicrotask(() => this.#endOfTick());
  }

  #endOfTick() {
    const calls = this.#tick.filter((call) => !call.outcome);
    this.#tick = [];
    if (this.#closed && calls.length === 0) return;
    this.#watchdog.watch();
    this.#link.send(calls);
  }

  #first() {
    const watches = this.#watches.first();
    this.#watchdog.watch();
    return watches;
  }

  /** @param {Call} call */
  #posted(call) {
    // A call that waited for others to get through starts its time when they did.
    call.since = Math.max(call.since, this.#link.lastHeard, this.#moved);
    call.posted = true;
  }

  // --- from the port to a call -------------------------------------------------------------

  /**
   * @param {number} id
   * @param {Outcome} outcome
   */
  #answered(id, outcome) {
    const call = this.#open.get(id);
    if (!call) return; // too late
    // A host that ends whenever it is to tell of a change must not be started without end.
    if (!this.#watches.has(call)) this.#link.worked();
    this.#finish(call, outcome);
    if (call.mutates && 'result' in outcome) this.#options.changed();
  }

  /**
   * @param {string} method
   * @param {any} params
   * @returns {boolean} whether somebody had asked for it
   */
  #notified(method, params) {
    if (method !== 'host.progress') return this.#watches.notified(method, params);
    this.#moved = performance.now();
    this.progress.emit(params);
    return this.progress.hasListeners();
  }

  /**
   * @param {PortLoss} loss
   * @param {boolean} resting whether no attempt is made at present
   */
  #lostPort({ cause, error }, resting) {
    this.#watches.lost(cause === 'lost');
    if (error.kind === 'orphaned') this.#watches.end();
    for (const call of [...this.#open.values()]) {
      if (call.posted && cause === 'lost') {
        call.exposed = true;
        call.losses += 1;
      }
      call.posted = false;
      if (resting || call.losses >= LOSSES_LIMIT) this.#finish(call, { error: call.gaveUp(error) });
    }
  }

  /**
   * @param {Call} call
   * @param {Outcome} outcome
   */
  #finish(call, outcome) {
    call.outcome = outcome;
    this.#open.delete(call.id);
    this.#lanes.leave(call);
    if (this.#open.size === 0) this.#allDone();
  }

  #allDone() {
    for (const done of this.#whenDone.splice(0)) done();
    this.#link.rest();
  }

  // --- time --------------------------------------------------------------------------------

  /**
   * When a call is given up; by performance.now().
   * @param {Call} call
   */
  #deadline(call) {
    const progress = call.posted ? this.#moved : Math.max(this.#moved, this.#link.lastHeard);
    return Math.max(call.since, progress) + this.#options.timeout;
  }

  #earliestDeadline() {
    let due = Infinity;
    for (const call of this.#open.values()) due = Math.min(due, this.#deadline(call));
    return due;
  }

  /** @param {number} now */
  #giveUpLate(now) {
    if (this.#link.leftAlone()) return;
    const late = [...this.#open.values()].filter((call) => this.#deadline(call) <= now);
    for (const call of late) this.#finish(call, { error: call.timedOut(this.#options.timeout) });
    this.#link.late(late);
  }
}

/**
 * @param {any} result
 * @returns {any}
 */
function itself(result) {
  return result;
}
