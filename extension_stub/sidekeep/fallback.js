// @ts-check
/**
 * `connect({ fallback: 'browser' })`: the browser's own areas serve until a host was reached; then the data
 * moves there, once, and from then on the host serves, whether it can be reached or not.
 *
 * It stands between the areas and the calls of a context. Nothing is known when it is made: the first
 * call, or listener, has it look where the data is.
 *
 * Rules of this module:
 * - What is served by the real areas never waits for a host. Each call there makes an attempt to reach one
 *   if its time has come (backoff.js), beside the call.
 * - Calls that only the host knows wait for the attempt and the move, `timeout` milliseconds at the most.
 * - Calls of one area take effect and settle in call order, also those that are on their way while the
 *   data moves.
 * - A listener hears of each change once: of those in the real areas until the mark is written, of those
 *   after it from the place that the mark names. The move itself is no change.
 * - The incognito side of a split extension, which shares the areas but no locks, never moves anything. It
 *   notes all its changes, and looks again after each call whether the data was still there.
 */

import { isIncognito } from './browser.js';
import { SidekeepError } from './errors.js';
import { fromBrowser, isMoved, readState, throughGate } from './move_state.js';
import { Mover } from './mover.js';
import { serveAll, serveUnlocked } from './real_batch.js';
import { isOfHostItself, SERVED } from './real_calls.js';
import { HandOver, RealEvents } from './real_events.js';
import { Measure } from './values.js';
import { Waiting } from './waiting.js';

/** @typedef {import('./area.js').Carrier} Carrier */
/** @typedef {import('./move_state.js').Moved} Moved */
/** @typedef {import('./index.d.ts').FallbackStatus} FallbackStatus */

/**
 * What the fallback needs of its context.
 * @typedef {object} Surroundings
 * @property {import('./calls.js').Calls} calls
 * @property {import('./events.js').StorageEvents} events
 * @property {import('./watcher.js').Watcher} watcher
 * @property {import('./status.js').StatusBoard} status
 * @property {number} timeout
 * @property {() => void} resumed listeners of the host may be heard
 */

/** @implements {Carrier} */
export class Fallback {
  #context;
  /** @type {'unknown' | 'browser' | 'host'} where the data is */
  #mode = 'unknown';
  #real;
  #mover;
  #next = 0;
  /** @type {Waiting[]} for the real areas */
  #queued = [];
  /** @type {Set<Waiting>} for the move */
  #waiting = new Set();
  /** @type {Promise<void> | null} */
  #serving = null;
  #closed = false;
  /** whether locks do not reach the contexts that move the data */
  #incognito = false;
  /** whether to look again where the data is: a listener is new */
  #unsure = false;
  /** @type {HandOver | null} */
  #handOver = null;

  /** @param {Surroundings} context */
  constructor(context) {
    this.#context = context;
    this.#real = new RealEvents(
      (area, changes) => context.events.tell(area, changes),
      (mark) => this.#heardMark(mark),
    );
    this.#mover = new Mover(context.calls, {
      moving: (done, of) => this.#mode === 'browser' && this.#tellStatus('moving', { done, of }),
      moved: (mark) => this.#moved(mark),
      failed: (error, reached) => {
        if (reached && this.#mode === 'browser') this.#tellStatus('failed', { error });
        this.#giveUp([...this.#waiting], error);
      },
    });
    context.calls.pause();
    this.#tellStatus('waiting');
  }

  /**
   * What the stub itself keeps with the host, never in the real areas.
   * @type {Carrier}
   */
  get hosted() {
    const refuse = this.refuse.bind(this);
    return { call: (method, params, measure, lane, view = itself) => this.#ask(method, params, measure, lane, view), refuse };
  }

  /**
   * @param {string} method
   * @param {any} params converted
   * @param {Measure} measure of the parameters
   * @param {string | null} lane
   * @param {(result: any) => any} [view]
   * @returns {Promise<any>}
   */
  call(method, params, measure, lane, view = itself) {
    const { calls } = this.#context;
    if (this.#mode === 'host' || isOfHostItself(method)) return calls.call(method, params, measure, lane, view);
    if (!SERVED.includes(method)) return this.#ask(method, params, measure, lane, view);
    return this.#enqueue(new Waiting(this.#next++, method, params, measure, lane, view));
  }

  /**
   * @param {string} lane
   * @param {SidekeepError} error
   * @returns {Promise<any>} rejects
   */
  refuse(lane, error) {
    if (this.#mode === 'host') return this.#context.calls.refuse(lane, error);
    const call = new Waiting(this.#next++, '', {}, new Measure(), lane, itself);
    call.error = error;
    return this.#enqueue(call);
  }

  /** To be called when what somebody listens to has changed. */
  listenersChanged() {
    if (this.#mode === 'host' || this.#closed) return;
    if (this.#context.calls.wanted) {
      if (!this.#real.listening) this.#unsure = true;
      this.#real.listen();
      this.#look();
    } else {
      this.#real.end();
    }
  }

  /**
   * A person asks for an attempt.
   * @returns {Promise<void>} fulfilled when the data is with the host
   * @throws {SidekeepError} why it is not
   */
  async retry() {
    await this.#look();
    await this.#mover.retry();
    if (this.#mode === 'browser' && !this.#incognito) await this.#mover.reach();
  }

  /** Takes no more calls, and waits for those of the real areas. */
  async close() {
    this.#closed = true;
    while (this.#serving) await this.#serving;
    this.#real.end();
  }

  /** @param {Waiting} call */
  #enqueue(call) {
    if (this.#closed) {
      call.reject(new SidekeepError('unavailable', 'The stub was closed.'));
    } else {
      this.#queued.push(call);
      this.#look();
    }
    return call.promise;
  }

  // --- where the data is -------------------------------------------------------------------

  /** Serves what is queued; looks where the data is, if that is not known. */
  #look() {
    this.#serving ??= this.#serve();
    return this.#serving;
  }

  /** Whether it has to be looked where the data is. */
  get #isUndecided() {
    return this.#mode === 'unknown' || (this.#unsure && this.#mode === 'browser');
  }

  async #serve() {
    await null; // it is noted before it can end
    try {
      // Calls and listeners come while it looks and serves: who asks then has this run.
      while (this.#isUndecided || (this.#queued.length > 0 && this.#mode === 'browser')) {
        if (this.#isUndecided) await this.#find();
        // A lock of the incognito side would hold nobody up.
        else await (this.#incognito ? this.#serveBatch() : throughGate('shared', () => this.#serveBatch()));
      }
    } catch (error) {
      this.#giveUp([...this.#queued.splice(0), ...this.#waiting], fromBrowser(error));
    }
    this.#serving = null;
  }

  async #find() {
    this.#unsure = false; // a listener that comes while it reads is not covered by what it reads
    this.#incognito = isIncognito();
    const state = await readState().catch((error) => {
      this.#unsure = true;
      throw error;
    });
    if (this.#mode === 'host') return; // the event of the mark was faster
    if (isMoved(state)) {
      this.#moved(state);
      return;
    }
    if (this.#mode === 'unknown') {
      this.#mode = 'browser';
      this.#tellStatus('waiting');
    }
    this.#real.tell();
  }

  /** The calls of one turn; nothing moves meanwhile. */
  async #serveBatch() {
    const state = await readState();
    if (this.#mode !== 'browser') return; // the event of the mark was faster
    if (isMoved(state)) {
      this.#moved(state);
      return;
    }
    if (!this.#incognito && !this.#closed) this.#mover.attempt();
    const batch = this.#queued.splice(0);
    if (!this.#incognito) {
      await serveAll(batch, state !== null, () => this.#tellNew());
      return;
    }
    const moved = await serveUnlocked(batch, () => this.#tellNew());
    if (!moved) return;
    this.#moved(moved);
    for (const call of batch) this.#again(call);
  }

  /** Tells listeners that came while calls were served what these changed: before they settle. */
  async #tellNew() {
    if (!this.#isUndecided) return;
    await this.#find().catch(() => {}); // it is looked for again after these calls, and said then
  }

  /**
   * The data moved while the real areas were asked.
   * @param {Waiting} call
   */
  #again(call) {
    if (call.method !== 'storage.update') {
      call.forward(this.#context.calls);
      return;
    }
    call.fail(new SidekeepError('unknown', 'The data was moved to the host at this moment.', {
      next: 'Read the value before changing it again.',
    }));
  }

  // --- to the host -------------------------------------------------------------------------

  /**
   * A call that only the host knows.
   * @param {string} method
   * @param {object} params
   * @param {Measure} measure
   * @param {string | null} lane
   * @param {(result: any) => any} view
   */
  #ask(method, params, measure, lane, view) {
    const { calls, timeout } = this.#context;
    if (this.#mode === 'host') return calls.call(method, params, measure, lane, view);
    const call = new Waiting(this.#next++, method, params, measure, lane, view);
    if (this.#closed) {
      call.reject(new SidekeepError('unavailable', 'The stub was closed.'));
      return call.promise;
    }
    this.#waiting.add(call);
    call.timer = setTimeout(() => this.#giveUp([call], this.#whyLate()), timeout);
    this.#look().then(() => this.#reachForWaiting());
    return call.promise;
  }

  #whyLate() {
    const next = 'Try again in a moment.';
    if (this.#mover.reached) return new SidekeepError('busy', 'The data is still being moved to the host.', { next });
    return new SidekeepError('unavailable', 'The host did not answer.', { next });
  }

  #reachForWaiting() {
    if (this.#mode !== 'browser' || this.#waiting.size === 0) return;
    if (this.#incognito) {
      this.#giveUp([...this.#waiting], new SidekeepError('unavailable', 'The data is not with the host yet.', {
        next: 'Use the extension in a window that is not private first.',
      }));
    } else if (this.#mover.refusal) {
      this.#giveUp([...this.#waiting], this.#mover.refusal);
    } else {
      this.#mover.reach().catch(() => {}); // the calls say it
    }
  }

  /**
   * The data is with the host: so are the calls, in call order.
   * @param {Moved} mark
   */
  #moved(mark) {
    if (this.#mode === 'host') return;
    if (this.#mode === 'browser') this.#context.calls.retry(); // a host was there: attempts that failed are past
    this.#mode = 'host';
    this.#tellStatus('moved');
    const calls = [...this.#queued.splice(0), ...this.#waiting].sort((one, other) => one.number - other.number);
    this.#waiting.clear();
    for (const call of calls) call.forward(this.#context.calls);
    this.#handOver = new HandOver(this.#real, mark, (told) => this.#listenToHost(told ? mark : null));
    if (mark.left && !this.#incognito) this.#mover.reach().catch(() => {}); // the next start goes on
  }

  /**
   * @param {Waiting[]} calls
   * @param {SidekeepError} error
   */
  #giveUp(calls, error) {
    for (const call of calls) {
      this.#waiting.delete(call);
      call.fail(error);
    }
  }

  // --- listeners ---------------------------------------------------------------------------

  /** @param {Moved} mark just written */
  #heardMark(mark) {
    if (this.#closed) return;
    if (this.#mode === 'unknown') {
      this.#mode = 'browser'; // it was, up to now
      this.#real.tell();
    }
    this.#moved(mark);
    this.#handOver?.heardMark();
  }

  /** @param {Moved | null} place from which on changes are heard; null: from now on */
  #listenToHost(place) {
    const { calls, resumed, watcher } = this.#context;
    if (this.#closed) return;
    if (place) watcher.begin(place);
    calls.resume();
    resumed();
  }

  /**
   * @param {FallbackStatus['state']} state
   * @param {{done?: number, of?: number, error?: SidekeepError}} [more]
   */
  #tellStatus(state, { done = 0, of = 0, error } = {}) {
    const serves = this.#mode === 'unknown' ? null : this.#mode;
    const told = { serves, state, done, of, reason: error?.message ?? null, next: error?.next ?? null };
    this.#context.status.fellBack(Object.freeze(told));
  }
}

/**
 * @param {any} result
 * @returns {any}
 */
function itself(result) {
  return result;
}
