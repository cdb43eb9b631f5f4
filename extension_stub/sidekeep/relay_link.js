// @ts-check
/**
 * The link of a content script to the relay in the worker: calls, events, and what becomes of both when
 * the worker sleeps or the extension is reloaded.
 *
 * Rules of this module:
 * - A port is opened for a call or a listener, and closed when it is idle. It does not keep the worker
 *   awake; when the worker stops it ends.
 * - A listener does not wake a worker that sleeps. It goes on from the place it had heard up to with the
 *   next call, or when the page is shown or gets the focus; what cannot be told any more is a gap.
 * - Nothing is sent before the relay has said that it is there; a worker without one is not asked again
 *   before a while (backoff.js).
 * - Every call settles. A read whose port ended is asked again, a change is `unknown` if it had left.
 * - A port may be dead and not say so. It is given up when the page comes back from the back/forward
 *   cache (page_shown.js), and when a call is late and nothing was heard for as long.
 * - An orphan says so once to every call and does nothing any more.
 */

import { Backoff } from './backoff.js';
import { extensionApi, isOrphaned } from './browser.js';
import { Call } from './call.js';
import { fromHost, orphaned, SidekeepError } from './errors.js';
import { Lanes } from './lanes.js';
import { changes } from './methods.js';
import { PageShown } from './page_shown.js';
import { Measure } from './values.js';
import { Watchdog } from './watchdog.js';

/** @typedef {import('./events.js').AreaName} AreaName */
/** @typedef {import('./place.js').Place} Place */
/** @typedef {import('./browser.js').RelayPort} RelayPort */
/** @typedef {import('./call.js').Request} Request */
/** @typedef {import('./channel.js').Outcome} Outcome */

/** Milliseconds in which the relay of a worker that has to start says that it is there. */
const GREETING = 5000;
/** Milliseconds after the end of a port in which it shows whether the whole extension is gone. */
const FAREWELL = 100;
/** Ports that may end under a read before it is given up. */
const LOSSES_LIMIT = 3;

export class RelayLink {
  #options;
  #status;
  #events;
  #onGap;
  #backoff = new Backoff();
  #lanes = new Lanes();
  #nextId = 1;
  /** @type {Map<number, Call>} without an outcome, in call order */
  #open = new Map();
  /** @type {Call[]} made in this tick */
  #tick = [];
  #flushing = false;
  /** @type {RelayPort | null} */
  #port = null;
  /** whether the relay has said that it is there, on this port */
  #greeted = false;
  /** when the worker was last heard on this port; by performance.now() */
  #heard = 0;
  /** whether there is something to send when the farewell is over */
  #due = false;
  /** what the worker was told that is listened to, on this port */
  #told = '';
  /** @type {Record<string, Place>} up to where was heard */
  #places = {};
  /** @type {Set<AreaName>} areas that were listened to when the last port ended */
  #missing = new Set();
  /** @type {SidekeepError | null} why no call is made any more */
  #ended = null;
  /** @type {SidekeepError | null} why the last port ended */
  #reason = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #idleTimer = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #greetingTimer = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #againTimer = undefined;
  #watchdog = new Watchdog(
    () => Math.min(...[...this.#open.values()].map((call) => call.since + this.#options.timeout)),
    (now) => this.#giveUpLate(now),
  );
  #page = new PageShown(
    () => this.#restored(),
    () => this.#shown(),
  );
  /** whether this context ever belonged to an extension */
  #lived = !isOrphaned();

  /**
   * @param {{timeout: number, idle: number, name: string}} options
   * @param {import('./status.js').StatusBoard} status
   * @param {import('./events.js').StorageEvents} events
   * @param {import('./event.js').Event<[{readonly area: AreaName}]>} onGap
   */
  constructor(options, status, events, onGap) {
    this.#options = options;
    this.#status = status;
    this.#events = events;
    this.#onGap = onGap;
  }

  /**
   * Makes a call.
   * @param {string} method
   * @param {object} params converted
   * @param {Measure} measure of the parameters
   * @param {string | null} lane
   * @param {(result: any) => any} [view]
   * @returns {Promise<any>}
   */
  call(method, params, measure, lane, view = (result) => result) {
    /** @type {Request} */
    const request = { jsonrpc: '2.0', id: this.#nextId++, method, params };
    if (changes(method)) request.op = 0; // known as a change; numbers are the worker's to give
    const call = new Call(request, measure, lane, view);
    this.#lanes.enter(call);
    const refusal = this.#refusal;
    if (refusal) {
      this.#finish(call, { error: refusal.copy() });
    } else {
      this.#open.set(call.id, call);
      this.#tick.push(call);
      this.#flushSoon();
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
    const call = new Call({ jsonrpc: '2.0', id: this.#nextId++, method: '', params: {} }, new Measure(), lane, () => {});
    this.#lanes.enter(call);
    this.#finish(call, { error });
    return call.promise;
  }

  /** To be called when what somebody listens to has changed. */
  listenersChanged() {
    if (this.#ended) return;
    const { areas } = this.#events;
    for (const area of Object.keys(this.#places)) {
      if (!areas.includes(/** @type {AreaName} */ (area))) delete this.#places[area];
    }
    this.#followPage();
    if (this.#port || areas.length > 0) this.#flushSoon();
  }

  close() {
    this.#end(new SidekeepError('unavailable', 'The stub was closed.'), null);
  }

  /** @returns {SidekeepError | null} why calls are refused at present */
  get #refusal() {
    if (!this.#ended && this.#lived && isOrphaned()) this.#orphan();
    return this.#ended ?? (this.#port || this.#backoff.wait === 0 ? null : this.#reason);
  }

  // --- to the worker -----------------------------------------------------------------------

  #flushSoon() {
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  /** Sends what has not left, over a new port if there is none. */
  #flush() {
    clearTimeout(this.#idleTimer);
    this.#due = this.#againTimer !== undefined;
    if (this.#ended || this.#due) return;
    if (!this.#port && !this.#connect()) return;
    this.#watchdog.watch();
    if (!this.#greeted) return;
    const listen = this.#listening();
    const calls = this.#tick.splice(0).filter((call) => !call.outcome);
    const requests = calls.map(({ request: { id, method, params } }) => ({ id, method, params }));
    for (const call of calls) call.posted = call.exposed = true;
    const frame = [...listen, ...requests];
    if (frame.length > 0) this.#post(frame, calls);
    this.#rest();
  }

  /** @returns {object[]} what the worker has to be told of listeners */
  #listening() {
    const { areas } = this.#events;
    const told = areas.join();
    if (told === this.#told) return [];
    this.#told = told;
    for (const area of areas) if (this.#missing.has(area) && !this.#places[area]) this.#gap(area);
    this.#missing.clear();
    return [{ listen: areas, since: this.#places }];
  }

  /**
   * @param {object[]} frame
   * @param {Call[]} calls in it
   */
  #post(frame, calls) {
    try {
      this.#port?.postMessage(frame);
    } catch (error) {
      if (/disconnected|invalidated/i.test(String(error))) {
        this.#lost(String(error));
        return;
      }
      if (calls.length > 1) {
        for (const { request: { id, method, params } } of calls) this.#post([{ id, method, params }], calls.filter((call) => call.id === id));
        return;
      }
      for (const call of calls) {
        this.#finish(call, { error: new SidekeepError('tooLarge', `The browser does not carry this message: ${error}`) });
      }
    }
  }

  /** @returns {boolean} whether there is a port now */
  #connect() {
    if (this.#lived && isOrphaned()) {
      this.#orphan();
      return false;
    }
    this.#status.attempt();
    try {
      const { runtime } = /** @type {{runtime: {connect(info: {name: string}): RelayPort}}} */ (
        /** @type {unknown} */ (extensionApi())
      );
      const port = runtime.connect({ name: this.#options.name });
      this.#port = port;
      this.#followPage();
      this.#greeted = false;
      this.#told = '';
      port.onMessage.addListener((message) => {
        if (this.#port === port) this.#receive(message);
      });
      port.onDisconnect.addListener(() => {
        if (this.#port === port) this.#lost(extensionApi().runtime.lastError?.message ?? '');
      });
      this.#greetingTimer = setTimeout(() => {
        this.#disconnect();
        this.#lost('');
      }, Math.min(GREETING, this.#options.timeout / 2));
    } catch (error) {
      this.#lost(error instanceof Error ? error.message : String(error));
      return false;
    }
    this.#tick = [...this.#open.values()];
    return true;
  }

  // --- from the worker ---------------------------------------------------------------------

  /** @param {any} message */
  #receive(message) {
    this.#heard = performance.now();
    if (message?.relay) {
      clearTimeout(this.#greetingTimer);
      this.#greeted = true;
      this.#backoff.reset();
      this.#status.set('connected', null);
      this.#flush();
      return;
    }
    const { id, changed, gap, places } = message ?? {};
    if (typeof id === 'number') {
      const call = this.#open.get(id);
      if (call) this.#finish(call, message.error ? { error: fromHost(message.error) } : { result: message.result });
      this.#rest();
    } else if (changed) {
      if (changed.place) this.#places[changed.area] = changed.place;
      this.#events.tell(changed.area, changed.changes);
    } else if (gap) {
      if (message.place) this.#places[gap] = message.place;
      this.#gap(gap);
    } else if (places) {
      for (const [area, place] of Object.entries(places)) if (place) this.#places[area] = place;
    }
  }

  /** @param {AreaName} area */
  #gap(area) {
    this.#onGap.emit(Object.freeze({ area }));
  }

  /** @param {string} text what the browser said when the port ended */
  #lost(text) {
    this.#port = null;
    this.#followPage();
    clearTimeout(this.#greetingTimer);
    this.#status.browserSaid(text);
    if (/context invalidated/i.test(text) || (this.#lived && isOrphaned())) {
      this.#orphan();
      return;
    }
    for (const area of this.#events.areas) this.#missing.add(area);
    // The port of an orphan ends before the browser says that it is one.
    if (this.#open.size > 0) this.#againTimer = setTimeout(() => this.#afterLoss(), FAREWELL);
    else this.#afterLoss();
  }

  #afterLoss() {
    this.#againTimer = undefined;
    if (this.#lived && isOrphaned()) {
      this.#orphan();
      return;
    }
    const error = this.#greeted ? workerStopped() : noRelay();
    this.#reason = error;
    if (!this.#greeted) this.#backoff.failed();
    this.#status.set(this.#greeted ? 'idle' : 'resting', error);
    for (const call of [...this.#open.values()]) {
      if (call.posted) call.losses += 1;
      call.posted = false;
      const again = this.#greeted && !(call.mutates && call.exposed) && call.losses < LOSSES_LIMIT;
      if (!again) this.#finish(call, { error: call.gaveUp(error) });
    }
    if (this.#open.size > 0 || (this.#due && this.#greeted)) this.#flush();
  }

  /** The page was in the back/forward cache: its port is dead, and its calls could not be answered. */
  #restored() {
    if (!this.#port) return;
    for (const call of this.#open.values()) call.since = performance.now();
    clearTimeout(this.#greetingTimer);
    this.#disconnect();
    if (this.#greeted) this.#lost('');
    else this.#flush(); // nothing has left yet: what waits for the greeting waits for another one
  }

  /** Somebody looks at the page. */
  #shown() {
    if (!this.#port && this.#events.areas.length > 0) this.#flush();
  }

  #followPage() {
    this.#page.follow(this.#port !== null, !this.#ended && this.#events.areas.length > 0);
  }

  /** Ends the port; in an orphan that throws, and it has ended. */
  #disconnect() {
    const port = this.#port;
    this.#port = null;
    this.#followPage();
    try {
      port?.disconnect();
    } catch (error) {
      if (!isOrphaned()) throw error;
    }
  }

  #orphan() {
    this.#end(orphaned(), orphaned());
  }

  /**
   * @param {SidekeepError} error of the calls, those to come too
   * @param {SidekeepError | null} reason of the status
   */
  #end(error, reason) {
    if (this.#ended) return;
    this.#ended = error;
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#againTimer);
    clearTimeout(this.#greetingTimer);
    this.#watchdog.stop();
    this.#disconnect();
    this.#status.set('closed', reason);
    for (const call of [...this.#open.values()]) this.#finish(call, { error: call.gaveUp(error) });
  }

  /**
   * @param {Call} call
   * @param {Outcome} outcome
   */
  #finish(call, outcome) {
    call.outcome = outcome;
    this.#open.delete(call.id);
    this.#lanes.leave(call);
  }

  /** Closes the port after a while, unless it is of use. */
  #rest() {
    clearTimeout(this.#idleTimer);
    if (!this.#port || this.#open.size > 0 || this.#events.areas.length > 0) return;
    this.#idleTimer = setTimeout(() => {
      this.#disconnect();
      this.#status.set('idle', null);
    }, this.#options.idle);
  }

  /** @param {number} now */
  #giveUpLate(now) {
    if (this.#lived && isOrphaned()) this.#orphan();
    const late = [...this.#open.values()].filter((call) => call.since + this.#options.timeout <= now);
    for (const call of late) this.#finish(call, { error: call.timedOut(this.#options.timeout) });
    const silent = this.#greeted && this.#heard + this.#options.timeout <= now;
    if (late.length > 0 && this.#port && silent) {
      this.#disconnect();
      this.#lost('');
    }
  }
}

function workerStopped() {
  return new SidekeepError('unavailable', 'The worker of the extension stopped.', { next: 'Try again.' });
}

function noRelay() {
  return new SidekeepError('unavailable', 'The worker of the extension does not serve content scripts.', {
    next: 'Call relay(keep) in the first turn of the worker.',
  });
}
