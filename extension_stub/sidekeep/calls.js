// @ts-check
/**
 * The calls of one context: they are collected, sent, repeated on a new port, and settled.
 *
 * Rules of this module:
 * - Every call settles: with the host's answer, with a typed error, or after `timeout` milliseconds
 *   without progress. Parts and their acknowledgements are progress; for a call that could not be
 *   posted yet so is whatever arrives.
 * - A call that had no effect is `unavailable`; a mutation that may have had one is `unknown`.
 * - Calls of one lane settle in call order.
 * - The calls of one tick are handed to the port together, by a microtask.
 * - When a port is lost, what was not answered is sent again on the next one, mutations under the
 *   same client and `op`, so that the host answers a repeated one with its first result. A call
 *   that saw its port end three times is not sent again: it may be what ends the host.
 * - While at rest after failures, calls are refused at once with the reason.
 */

import { Backoff, FAILURES_BEFORE_REST } from './backoff.js';
import { openNativePort } from './browser.js';
import { Call } from './call.js';
import { Channel } from './channel.js';
import { explainLoss, SidekeepError } from './errors.js';
import { newToken, profileToken } from './identity.js';
import { Measure } from './values.js';

/** @typedef {import('./channel.js').Outcome} Outcome */
/** @typedef {import('./call.js').Request} Request */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./errors.js').PortLoss} PortLoss */

/** Ports that may end under a call before it is given up. */
const LOSSES_LIMIT = 3;
/** A port that was silent for so many timeouts while calls were open is given up. */
const SILENT_TIMEOUTS = 3;
/** A timer later than this was held up with the whole context (sleep, debugger). */
const HELD_UP = 1000;

/**
 * @typedef {object} CallsOptions
 * @property {string} host
 * @property {number} timeout
 * @property {number} idle
 * @property {number} window
 */

export class Calls {
  #options;
  #status;
  #backoff = new Backoff();
  #client = newToken();
  #nextId = 1;
  #nextOp = 0;
  /** @type {Map<number, Call>} without an outcome, in call order */
  #open = new Map();
  /** @type {Map<string, Call[]>} not settled, by lane, in call order */
  #lanes = new Map();
  /** @type {Call[]} made in this tick */
  #tick = [];
  /** @type {Channel | null} */
  #channel = null;
  /** @type {SidekeepError | null} why no attempt is made at present */
  #rest = null;
  #closed = false;
  /** @type {Promise<string> | null} */
  #profile = null;
  /** when parts or acknowledgements last arrived; by performance.now() */
  #moved = 0;
  /** @type {Timer} */
  #reopenTimer = undefined;
  /** @type {Timer} */
  #idleTimer = undefined;
  /** @type {Timer} */
  #watchdog = undefined;
  #watchdogDue = Infinity;
  /** @type {(() => void)[]} */
  #whenDone = [];

  /**
   * @param {CallsOptions} options
   * @param {StatusBoard} status
   */
  constructor(options, status) {
    this.#options = options;
    this.#status = status;
  }

  /**
   * Makes a call.
   * @param {string} method
   * @param {object} params converted
   * @param {Measure} measure of the parameters
   * @param {{lane: string | null, mutates: boolean}} how
   * @returns {Promise<any>} the result
   */
  call(method, params, measure, { lane, mutates }) {
    /** @type {Request} */
    const request = { jsonrpc: '2.0', id: this.#nextId++, method, params };
    if (mutates && !this.#closed) request.op = this.#nextOp++;
    const call = new Call(request, measure, lane);
    this.#enlist(call);
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
    const call = new Call({ jsonrpc: '2.0', id: this.#nextId++, method: '', params: {} }, new Measure(), lane);
    this.#enlist(call);
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
    if (this.#open.size > 0) await new Promise((done) => this.#whenDone.push(() => done(undefined)));
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#watchdog);
    this.#channel?.close();
    this.#channel = null;
    this.#status.set('closed', null);
  }

  // --- from a call to the port -------------------------------------------------------------

  #endOfTick() {
    const calls = this.#tick.filter((call) => !call.outcome);
    this.#tick = [];
    clearTimeout(this.#idleTimer);
    this.#watch();
    if (this.#channel) this.#channel.send(calls);
    else if (this.#reopenTimer === undefined) this.#connectAfterWait();
  }

  #connectAfterWait() {
    const { wait } = this.#backoff;
    if (wait === 0) {
      this.#connect();
    } else {
      this.#status.set('waiting', this.#status.reason);
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
      greeted: (result) => this.#status.greeted(result),
      refused: (error) => this.#refused(error),
      posted: (call) => this.#posted(call),
      answered: (id, outcome) => this.#answered(id, outcome),
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
   * Says hello as soon as the token of the profile is known.
   * @param {Channel} channel
   */
  async #greet(channel) {
    this.#profile ??= profileToken();
    let profile;
    try {
      profile = await this.#profile;
    } catch (error) {
      this.#profile = null;
      if (this.#channel !== channel) return;
      channel.close();
      this.#lostPort({ cause: 'absent', error: /** @type {SidekeepError} */ (error) });
      return;
    }
    channel.greet({
      jsonrpc: '2.0',
      id: this.#nextId++,
      method: 'host.hello',
      params: {
        protocol: 1,
        profile,
        client: this.#client,
        parts: { window: this.#options.window },
      },
    });
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
    this.#backoff.reset();
    this.#finish(call, outcome);
  }

  /** @param {SidekeepError} error of the hello */
  #refused(error) {
    this.#channel = null;
    this.#lostPort({ cause: error.kind === 'busy' ? 'lost' : 'absent', error });
  }

  /** @param {PortLoss} loss */
  #lostPort({ cause, error }) {
    this.#channel = null;
    this.#backoff.failed();
    const resting = cause === 'absent' || this.#backoff.failures >= FAILURES_BEFORE_REST;
    this.#rest = resting ? error : null;
    this.#status.set(resting ? 'resting' : 'idle', error);
    for (const call of [...this.#open.values()]) {
      if (call.posted && cause === 'lost') {
        call.exposed = true;
        call.losses += 1;
      }
      call.posted = false;
      if (resting || call.losses >= LOSSES_LIMIT) this.#finish(call, { error: gaveUp(call, error) });
    }
    if (this.#open.size > 0) this.#connectAfterWait();
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

  /** @param {Call} call */
  #enlist(call) {
    if (call.lane === null) return;
    const lane = this.#lanes.get(call.lane);
    if (lane) lane.push(call);
    else this.#lanes.set(call.lane, [call]);
  }

  /**
   * @param {Call} call
   * @param {Outcome} outcome
   */
  #finish(call, outcome) {
    call.outcome = outcome;
    this.#open.delete(call.id);
    if (call.lane === null) call.settle();
    else this.#settleLane(call.lane);
    if (this.#open.size === 0) this.#allDone();
  }

  /** @param {string} name */
  #settleLane(name) {
    const lane = this.#lanes.get(name) ?? [];
    const end = lane.findIndex((call) => !call.outcome);
    for (const call of lane.splice(0, end < 0 ? lane.length : end)) call.settle();
  }

  #allDone() {
    for (const done of this.#whenDone.splice(0)) done();
    clearTimeout(this.#idleTimer);
    if (!this.#channel || !Number.isFinite(this.#options.idle)) return;
    this.#idleTimer = setTimeout(() => {
      if (this.#open.size > 0 || !this.#channel) return;
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

  /** Sets the one timer to the earliest deadline. */
  #watch() {
    let due = Infinity;
    for (const call of this.#open.values()) due = Math.min(due, this.#deadline(call));
    if (due >= this.#watchdogDue && this.#watchdog !== undefined) return;
    clearTimeout(this.#watchdog);
    this.#watchdog = undefined;
    if (due === Infinity) return;
    this.#watchdogDue = due;
    this.#watchdog = setTimeout(() => this.#lookAtClock(), Math.max(0, due - performance.now()));
  }

  #lookAtClock() {
    const now = performance.now();
    const heldUp = now - this.#watchdogDue > HELD_UP;
    this.#watchdog = undefined;
    this.#watchdogDue = Infinity;
    if (heldUp) {
      // What arrived meanwhile is still queued behind this timer: let it be heard first.
      this.#watchdogDue = now + HELD_UP;
      this.#watchdog = setTimeout(() => this.#lookAtClock(), HELD_UP);
      return;
    }
    const late = [...this.#open.values()].filter((call) => this.#deadline(call) <= now);
    for (const call of late) this.#finish(call, { error: timedOut(call, this.#options.timeout) });
    const channel = this.#channel;
    if (channel && late.length > 0) {
      const halfSent = late.some((call) => channel.isSending(call));
      if (halfSent || this.#overdue(channel, SILENT_TIMEOUTS)) this.#giveUpPort();
    }
    this.#watch();
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

/**
 * @param {Call} call
 * @param {SidekeepError} error why the port is gone
 * @returns {SidekeepError}
 */
function gaveUp(call, error) {
  if (!call.mutates || !call.exposed) return error.copy();
  return new SidekeepError('unknown', `Whether the change took effect is not known. ${error.message}`, {
    next: 'Read the value before changing it again.',
  });
}

/**
 * @param {Call} call
 * @param {number} timeout
 * @returns {SidekeepError}
 */
function timedOut(call, timeout) {
  const seconds = Math.round(timeout / 100) / 10;
  if (call.mutates && (call.posted || call.exposed)) {
    return new SidekeepError(
      'unknown',
      `The host did not answer for ${seconds} s; whether the change took effect is not known.`,
      { next: 'Read the value before changing it again.' },
    );
  }
  return new SidekeepError('unavailable', `The host did not answer for ${seconds} s.`, {
    next: 'Try again; if it stays so, restart the browser or run "sidekeep doctor".',
  });
}
