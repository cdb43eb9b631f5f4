// @ts-check
/**
 * The calls of one context: they are collected, sent, repeated on a new port, and settled.
 *
 * Rules of this module:
 * - Every call settles: with the host's answer, with a typed error, or after `timeout` milliseconds
 *   without progress. Parts and their acknowledgements are progress; for a call that could not be
 *   posted yet so is whatever arrives.
 * - A call that had no effect is `unavailable`; a mutation that may have had one is `unknown`.
 * - The calls of one tick are handed to the port together, by a microtask.
 * - When a port is lost, what was not answered is sent again on the next one, mutations under the
 *   same client and `op`, so that the host answers a repeated one with its first result. A call
 *   that saw its port end three times is not sent again: it may be what ends the host.
 * - While at rest after failures, calls are refused at once with the reason.
 * - Whoever listens to changes is served first on every port. In a page a listener holds the port:
 *   a lost one is opened again with backoff, at rest too. A background that listens lets its port
 *   go when it is idle, and opens a lost one again only as long as the attempts do not fail.
 */

import { Backoff, FAILURES_BEFORE_REST } from './backoff.js';
import { isOrphaned, openNativePort } from './browser.js';
import { Call } from './call.js';
import { Channel } from './channel.js';
import { explainLoss, SidekeepError } from './errors.js';
import { newToken, profileToken, runToken } from './identity.js';
import { Lanes } from './lanes.js';
import { changes } from './methods.js';
import { Measure } from './values.js';
import { Watchdog } from './watchdog.js';

/** @typedef {import('./channel.js').Outcome} Outcome */
/** @typedef {import('./call.js').Request} Request */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./errors.js').PortLoss} PortLoss */
/** @typedef {import('./watcher.js').Watcher} Watcher */
/** @typedef {import('./watcher.js').Watch} Watch */

/** Ports that may end under a call before it is given up. */
const LOSSES_LIMIT = 3;
/** A port that was silent for so many timeouts while calls were open is given up. */
const SILENT_TIMEOUTS = 3;
/** Milliseconds after which a port on which nothing happened counts as one that works. */
const GOOD_LIFE = 5000;
/** Milliseconds after which a watch that the host refused is tried again. */
const WATCH_AGAIN = 5000;

/**
 * @typedef {object} CallsOptions
 * @property {string} host
 * @property {number} timeout
 * @property {number} idle
 * @property {number} window
 * @property {boolean} background whether an open port keeps this context from sleeping
 * @property {() => void} changed called when the host has made a change that was asked for here
 */

export class Calls {
  #options;
  #status;
  #watcher;
  #backoff = new Backoff();
  #client = newToken();
  #nextId = 1;
  #nextOp = 0;
  /** @type {Map<number, Call>} without an outcome, in call order */
  #open = new Map();
  #lanes = new Lanes();
  /** @type {Call[]} made in this tick */
  #tick = [];
  /** @type {Channel | null} */
  #channel = null;
  /** @type {SidekeepError | null} why no attempt is made at present */
  #rest = null;
  #closed = false;
  /** @type {Promise<{profile: string, run: string | null}> | null} */
  #tokens = null;
  /** the watch that the host has not answered yet
   * @type {{call: Call, watch: Watch} | null} */
  #watch = null;
  /** whether the host was asked on this port to tell of some area */
  #watching = false;
  /** @type {Timer} */
  #watchTimer = undefined;
  /** when parts or acknowledgements last arrived; by performance.now() */
  #moved = 0;
  /** @type {Timer} */
  #reopenTimer = undefined;
  /** @type {Timer} */
  #idleTimer = undefined;
  #watchdog = new Watchdog(
    () => this.#earliestDeadline(),
    (now) => this.#giveUpLate(now),
  );
  /** @type {(() => void)[]} */
  #whenDone = [];

  /**
   * @param {CallsOptions} options
   * @param {StatusBoard} status
   * @param {Watcher} watcher
   */
  constructor(options, status, watcher) {
    this.#options = options;
    this.#status = status;
    this.#watcher = watcher;
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
    if (this.#closed) {
      this.#finish(call, { error: new SidekeepError('unavailable', 'The stub was closed.') });
    } else if (this.#rest && this.#backoff.wait > 0) {
      this.#finish(call, { error: this.#rest.copy() });
    } else {
      this.#open.set(call.id, call);
      if (this.#tick.push(call) === 1) queueMicrotask(() => this.#endOfTick());
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

  /** Forgets failures and the rest; a silent port is given up. The next call opens a port. */
  retry() {
    this.#backoff.reset();
    this.#rest = null;
    if (this.#channel && this.#overdue(this.#channel, 1)) this.#giveUpPort();
    if (this.#reopenTimer !== undefined) this.#connect();
  }

  /**
   * Takes no more calls, waits for those that are open, and ends the port.
   * @returns {Promise<void>}
   */
  async close() {
    this.#closed = true;
    this.#dropWatch();
    clearTimeout(this.#watchTimer);
    if (this.#open.size > 0) await new Promise((done) => this.#whenDone.push(() => done(undefined)));
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#reopenTimer);
    this.#watchdog.stop();
    this.#channel?.close();
    this.#channel = null;
    this.#status.set('closed', null);
  }

  /**
   * To be called when the areas that somebody listens to have changed.
   * @param {boolean} gained whether one of them is new: only for that is a port opened
   */
  listenersChanged(gained) {
    this.#watcher.forget();
    if (this.#closed) return;
    if (this.#channel?.saidHello) {
      if (!this.#watcher.listening && !this.#watching) return;
      if (this.#tick.push(this.#newWatch()) === 1) queueMicrotask(() => this.#endOfTick());
    } else if (gained) {
      this.hear();
    }
  }

  /** Opens a port, if there is none, to hear what was missed. */
  hear() {
    if (this.#closed || this.#channel || !this.#watcher.listening) return;
    queueMicrotask(() => this.#endOfTick());
  }

  // --- from a call to the port -------------------------------------------------------------

  #endOfTick() {
    const calls = this.#tick.filter((call) => !call.outcome);
    this.#tick = [];
    if (this.#closed && calls.length === 0) return;
    clearTimeout(this.#idleTimer);
    this.#watchdog.watch();
    if (this.#channel) this.#channel.send(calls);
    else if (this.#reopenTimer === undefined) this.#connectAfterWait();
  }

  #connectAfterWait() {
    const { wait } = this.#backoff;
    if (wait === 0) {
      this.#connect();
    } else {
      if (!this.#rest) this.#status.set('waiting', this.#status.reason);
      this.#reopenTimer = setTimeout(() => this.#connect(), wait);
    }
  }

  /** Opens a port and hands it everything that is open. */
  #connect() {
    clearTimeout(this.#reopenTimer);
    this.#reopenTimer = undefined;
    this.#status.attempt();
    let channel;
    try {
      channel = this.#openChannel();
    } catch (error) {
      this.#lostPort(
        error instanceof SidekeepError
          ? { cause: 'absent', error }
          : explainLoss(error instanceof Error ? error.message : String(error), this.#options.host),
      );
      return;
    }
    this.#channel = channel;
    channel.send([...this.#open.values()]);
    this.#greet(channel);
  }

  /** @returns {Channel} */
  #openChannel() {
    const channel = new Channel(openNativePort(this.#options.host), {
      greeted: (result) => {
        this.#status.greeted(result);
        if (this.#open.size === 0) this.#allDone(); // nobody waits for it any more
      },
      refused: (error) => this.#refused(error),
      posted: (call) => this.#posted(call),
      answered: (id, outcome) => this.#answered(id, outcome),
      notified: (method, params) => {
        if (!this.#watcher.notified(method, params)) return;
        this.#backoff.reset();
        if (this.#open.size === 0) this.#allDone();
      },
      moved: () => {
        this.#moved = performance.now();
      },
      lost: (text) => {
        if (this.#channel !== channel) return;
        this.#status.browserSaid(text);
        this.#lostPort(explainLoss(text, this.#options.host));
      },
    });
    return channel;
  }

  /**
   * Says hello as soon as the tokens are known, and asks for the events first.
   * @param {Channel} channel
   */
  async #greet(channel) {
    this.#tokens ??= tokens();
    let known;
    try {
      [known] = await Promise.all([this.#tokens, this.#watcher.load()]);
    } catch (error) {
      this.#tokens = null;
      if (this.#channel !== channel) return;
      channel.close();
      this.#lostPort({ cause: 'absent', error: /** @type {SidekeepError} */ (error) });
      return;
    }
    if (this.#channel !== channel) return;
    /** @type {Request} */
    const hello = {
      jsonrpc: '2.0',
      id: this.#nextId++,
      method: 'host.hello',
      params: {
        protocol: 1,
        profile: known.profile,
        ...(known.run === null ? {} : { run: known.run }),
        client: this.#client,
        parts: { window: this.#options.window },
      },
    };
    this.#watching = false;
    channel.greet(hello, this.#watcher.listening && !this.#closed ? [this.#newWatch()] : []);
    this.#watchdog.watch();
  }

  // --- events ------------------------------------------------------------------------------

  /** @returns {Call} a watch of what is listened to now, in place of an earlier one */
  #newWatch() {
    this.#dropWatch();
    const watch = this.#watcher.request();
    /** @type {Request} */
    const request = { jsonrpc: '2.0', id: this.#nextId++, method: 'storage.watch', params: watch };
    const call = new Call(request, new Measure(), null, (answer) => {
      this.#watch = null;
      this.#watcher.watched(watch, answer);
    });
    call.promise.catch((error) => {
      if (this.#watch?.call === call) this.#watchRefused(error);
    });
    this.#open.set(call.id, call);
    this.#watch = { call, watch };
    this.#watching = watch.areas.length > 0;
    return call;
  }

  #dropWatch() {
    if (!this.#watch) return;
    const { call } = this.#watch;
    this.#watch = null;
    call.outcome = { result: null }; // so that it does not leave if it waits; it never settles
    this.#open.delete(call.id);
    if (this.#open.size === 0) this.#allDone();
  }

  /** @param {SidekeepError} error */
  #watchRefused(error) {
    this.#watch = null;
    if (this.#closed || !this.#channel) return; // the next port asks again
    console.warn('The Sidekeep stub cannot hear of changes at present:', error.message);
    clearTimeout(this.#watchTimer);
    this.#watchTimer = setTimeout(() => this.listenersChanged(true), WATCH_AGAIN);
  }

  /** Whether a listener keeps the port from being closed when it is idle. */
  get #held() {
    return !this.#options.background && this.#watcher.listening;
  }

  /**
   * Whether a port that was lost is opened again though no call waits for it.
   * @param {boolean} resting
   */
  #reopensFor(resting) {
    if (this.#closed || !this.#watcher.listening || isOrphaned()) return false;
    return !(this.#options.background && resting);
  }

  /** @param {Call} call */
  #posted(call) {
    // A call that waited for others to get through starts its time when they did.
    call.since = Math.max(call.since, this.#channel?.lastHeard ?? 0, this.#moved);
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
    if (call !== this.#watch?.call) this.#backoff.reset();
    this.#finish(call, outcome);
    if (call.mutates && 'result' in outcome) this.#options.changed();
  }

  /** @param {SidekeepError} error of the hello */
  #refused(error) {
    this.#channel = null;
    this.#lostPort({ cause: error.kind === 'busy' ? 'lost' : 'absent', error });
  }

  /** @param {PortLoss} loss */
  #lostPort({ cause, error }) {
    if (this.#channel && performance.now() - this.#channel.opened > GOOD_LIFE) this.#backoff.reset();
    this.#channel = null;
    this.#backoff.failed();
    if (this.#watch) {
      if (this.#watch.call.posted && cause === 'lost') this.#watcher.lost(this.#watch.watch);
      this.#dropWatch();
    }
    const resting = cause === 'absent' || this.#backoff.failures >= FAILURES_BEFORE_REST;
    this.#rest = resting ? error : null;
    this.#status.set(resting ? 'resting' : 'idle', error);
    for (const call of [...this.#open.values()]) {
      if (call.posted && cause === 'lost') {
        call.exposed = true;
        call.losses += 1;
      }
      call.posted = false;
      if (resting || call.losses >= LOSSES_LIMIT) this.#finish(call, { error: call.gaveUp(error) });
    }
    if (this.#open.size > 0 || this.#reopensFor(resting)) this.#connectAfterWait();
  }

  #giveUpPort() {
    this.#channel?.close();
    this.#lostPort({
      cause: 'lost',
      error: new SidekeepError('unavailable', 'The host does not answer.', {
        next: 'Try again; if it stays so, end the process named sidekeep.',
      }),
    });
  }

  // --- settling ----------------------------------------------------------------------------

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
    clearTimeout(this.#idleTimer);
    if (!this.#channel || !Number.isFinite(this.#options.idle) || this.#held) return;
    this.#idleTimer = setTimeout(() => {
      if (this.#open.size > 0 || !this.#channel || this.#held) return;
      this.#channel.close();
      this.#channel = null;
      this.#status.set('idle', null);
    }, this.#options.idle);
  }

  // --- time --------------------------------------------------------------------------------

  /**
   * When a call is given up; by performance.now().
   * @param {Call} call
   */
  #deadline(call) {
    const progress = call.posted ? this.#moved : Math.max(this.#moved, this.#channel?.lastHeard ?? 0);
    return Math.max(call.since, progress) + this.#options.timeout;
  }

  #earliestDeadline() {
    let due = Infinity;
    for (const call of this.#open.values()) due = Math.min(due, this.#deadline(call));
    return due;
  }

  /** @param {number} now */
  #giveUpLate(now) {
    const late = [...this.#open.values()].filter((call) => this.#deadline(call) <= now);
    for (const call of late) this.#finish(call, { error: call.timedOut(this.#options.timeout) });
    const channel = this.#channel;
    if (!channel || late.length === 0) return;
    const halfSent = late.some((call) => channel.isSending(call));
    if (halfSent || this.#overdue(channel, SILENT_TIMEOUTS)) this.#giveUpPort();
  }

  /**
   * @param {Channel} channel
   * @param {number} timeouts
   * @returns {boolean} whether nothing was heard for so many timeouts
   */
  #overdue(channel, timeouts) {
    const heard = Math.max(channel.opened, channel.lastHeard);
    return performance.now() - heard >= timeouts * this.#options.timeout;
  }
}

/** @typedef {ReturnType<typeof setTimeout> | undefined} Timer */

/** @returns {Promise<{profile: string, run: string | null}>} */
async function tokens() {
  const [profile, run] = await Promise.all([profileToken(), runToken()]);
  return { profile, run };
}

/**
 * @param {any} result
 * @returns {any}
 */
function itself(result) {
  return result;
}
