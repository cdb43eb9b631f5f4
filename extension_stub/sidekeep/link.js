// @ts-check
/**
 * The port of one context: when it is opened, kept, closed, and opened again.
 *
 * Rules of this module:
 * - While at rest after failures no attempt is made, and `refusal` says why.
 * - In a page a listener holds the port: a lost one is opened again with backoff, at rest too. A
 *   background that listens lets its port go when it is idle, and opens a lost one again only as
 *   long as the attempts do not fail.
 * - Work that needs the port (a turn) holds it everywhere, and has a lost one opened again as a
 *   listener does.
 * - A context whose extension was reloaded or removed makes no attempt any more, ever.
 * - What is said on the port, and what becomes of calls, is the owner's to know.
 */

import { Backoff, FAILURES_BEFORE_REST } from './backoff.js';
import { isOrphaned, openNativePort } from './browser.js';
import { Channel } from './channel.js';
import { explainLoss, orphaned, SidekeepError } from './errors.js';
import { newToken, profileToken, runToken } from './identity.js';

/** @typedef {import('./channel.js').Outcome} Outcome */
/** @typedef {import('./call.js').Call} Call */
/** @typedef {import('./status.js').StatusBoard} StatusBoard */
/** @typedef {import('./errors.js').PortLoss} PortLoss */
/** @typedef {import('./index.d.ts').HelloResult} HelloResult */

/** A port that was silent for so many timeouts while calls were open is given up. */
const SILENT_TIMEOUTS = 3;
/** Milliseconds after which a port on which nothing happened counts as one that works. */
const GOOD_LIFE = 5000;

/**
 * @typedef {object} LinkOptions
 * @property {string} host
 * @property {number} timeout
 * @property {number} idle
 * @property {number} window
 * @property {boolean} background whether an open port keeps this context from sleeping
 * @property {object | null} hello what the hello says as `settings`
 */

/**
 * Whose port it is.
 * @typedef {object} LinkOwner
 * @property {() => number} newId of a request
 * @property {() => Call[]} open calls without an outcome, in call order: a new port gets them all
 * @property {() => boolean} busy whether there are such calls
 * @property {() => Call[]} first calls that go before those on a new port
 * @property {() => Promise<void>} ready waits for what has to be known before the hello
 * @property {() => boolean} listens whether the port is wanted though no call is open
 * @property {() => boolean} holds whether it is needed, also where it keeps the context from sleeping
 * @property {(result: HelloResult) => void} greeted
 * @property {(call: Call) => void} posted
 * @property {(id: number, outcome: Outcome) => void} answered
 * @property {(method: string, params: any) => boolean} notified whether it was of use
 * @property {() => void} moved parts or their acknowledgements arrived
 * @property {(loss: PortLoss, resting: boolean) => void} lost no port is open any more
 */

export class Link {
  #options;
  #status;
  #owner;
  #backoff = new Backoff();
  #client = newToken();
  /** @type {Channel | null} */
  #channel = null;
  /** @type {SidekeepError | null} why no attempt is made at present */
  #rest = null;
  /** @type {Promise<{profile: string, run: string | null}> | null} */
  #tokens = null;
  /** @type {Timer} */
  #reopenTimer = undefined;
  /** @type {Timer} */
  #idleTimer = undefined;
  /** whether this context ever belonged to an extension */
  #lived = !isOrphaned();

  /**
   * @param {LinkOptions} options
   * @param {StatusBoard} status
   * @param {LinkOwner} owner
   */
  constructor(options, status, owner) {
    this.#options = options;
    this.#status = status;
    this.#owner = owner;
  }

  /** @returns {SidekeepError | null} why calls are refused at present */
  get refusal() {
    if (this.leftAlone()) return orphaned();
    return this.#backoff.wait > 0 ? this.#rest : null;
  }

  /** Whether there is a port. */
  get up() {
    return this.#channel !== null;
  }

  /** Whether calls leave at once. */
  get saidHello() {
    return this.#channel?.saidHello ?? false;
  }

  /** When anything last arrived on this port, 0 if nothing did; by performance.now(). */
  get lastHeard() {
    return this.#channel?.lastHeard ?? 0;
  }

  /**
   * Hands over calls, and opens a port if there is none: a new one gets all that are open.
   * @param {Call[]} calls
   */
  send(calls) {
    clearTimeout(this.#idleTimer);
    if (this.#channel) this.#channel.send(calls);
    else if (this.#reopenTimer === undefined) this.#connectAfterWait();
  }

  /**
   * Whether the extension is gone; then what is open is told. The browser does not end the ports of an
   * orphan, so this has to be asked.
   * @returns {boolean}
   */
  leftAlone() {
    if (!this.#orphaned) return false;
    if (this.#channel) this.#lost({ cause: 'absent', error: orphaned() });
    return true;
  }

  /** Notes that the host works. */
  worked() {
    this.#backoff.reset();
  }

  /** Forgets failures and the rest; a silent port is given up. */
  retry() {
    this.#backoff.reset();
    this.#rest = null;
    if (this.#channel && this.#overdue(this.#channel, 1)) this.#giveUp();
    if (this.#reopenTimer !== undefined) this.#connect();
  }

  /** No call is open: the port is closed after a while, unless it is held. */
  rest() {
    clearTimeout(this.#idleTimer);
    if (!this.#channel || !Number.isFinite(this.#options.idle) || this.#held) return;
    this.#idleTimer = setTimeout(() => {
      if (this.#owner.busy() || !this.#channel || this.#held) return;
      this.#channel.close();
      this.#channel = null;
      this.#status.set('idle', null);
    }, this.#options.idle);
  }

  /** Ends the port for good. */
  close() {
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#reopenTimer);
    this.#channel?.close();
    this.#channel = null;
    this.#status.set('closed', this.#orphaned ? this.#status.reason : null);
  }

  /**
   * These calls got no answer in time: a port that is silent, or stuck in one of them, is given up.
   * @param {Call[]} late
   */
  late(late) {
    const channel = this.#channel;
    if (!channel || late.length === 0) return;
    const halfSent = late.some((call) => channel.isSending(call));
    if (halfSent || this.#overdue(channel, SILENT_TIMEOUTS)) this.#giveUp();
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
    if (this.#orphaned) {
      this.#lost({ cause: 'absent', error: orphaned() });
      return;
    }
    this.#status.attempt();
    let channel;
    try {
      channel = this.#openChannel();
    } catch (error) {
      this.#lost(
        error instanceof SidekeepError
          ? { cause: 'absent', error }
          : explainLoss(error instanceof Error ? error.message : String(error), this.#options.host),
      );
      return;
    }
    this.#channel = channel;
    channel.send(this.#owner.open());
    this.#greet(channel);
  }

  /** @returns {Channel} */
  #openChannel() {
    const owner = this.#owner;
    const channel = new Channel(openNativePort(this.#options.host), {
      greeted: (result) => {
        this.#status.greeted(result);
        owner.greeted(result);
        if (!owner.busy()) this.rest(); // nobody waits for it any more
      },
      refused: (error) => this.#refused(error),
      posted: owner.posted,
      answered: owner.answered,
      notified: (method, params) => {
        if (!owner.notified(method, params)) return;
        this.#backoff.reset();
        if (!owner.busy()) this.rest();
      },
      moved: owner.moved,
      lost: (text) => {
        if (this.#channel !== channel) return;
        this.#status.browserSaid(text);
        this.#lost(explainLoss(text, this.#options.host));
      },
    });
    return channel;
  }

  /**
   * Says hello as soon as the tokens are known.
   * @param {Channel} channel
   */
  async #greet(channel) {
    this.#tokens ??= tokens();
    let known;
    try {
      [known] = await Promise.all([this.#tokens, this.#owner.ready()]);
    } catch (error) {
      this.#tokens = null;
      if (this.#channel !== channel) return;
      channel.close();
      this.#lost({ cause: 'absent', error: /** @type {SidekeepError} */ (error) });
      return;
    }
    if (this.#channel !== channel) return;
    const params = {
      protocol: 1,
      profile: known.profile,
      ...(known.run === null ? {} : { run: known.run }),
      client: this.#client,
      parts: { window: this.#options.window },
      ...(this.#options.hello ? { settings: this.#options.hello } : {}),
    };
    const id = this.#owner.newId();
    channel.greet({ jsonrpc: '2.0', id, method: 'host.hello', params }, this.#owner.first());
  }

  get #orphaned() {
    return this.#lived && isOrphaned();
  }

  /** Whether work, or a listener, keeps the port from being closed when it is idle. */
  get #held() {
    return this.#owner.holds() || (!this.#options.background && this.#owner.listens());
  }

  /**
   * Whether a port that was lost is opened again though no call waits for it.
   * @param {boolean} resting
   */
  #reopensFor(resting) {
    const wanted = this.#owner.listens() || this.#owner.holds();
    if (!wanted) return false;
    return !(this.#options.background && resting);
  }

  /** @param {SidekeepError} error of the hello */
  #refused(error) {
    this.#channel = null;
    this.#lost({ cause: error.kind === 'busy' ? 'lost' : 'absent', error });
  }

  /** @param {PortLoss} loss */
  #lost(loss) {
    if (this.#channel && performance.now() - this.#channel.opened > GOOD_LIFE) this.#backoff.reset();
    this.#channel = null;
    if (this.#orphaned || loss.error.kind === 'orphaned') {
      const error = orphaned();
      this.#status.set('closed', error);
      this.#owner.lost({ cause: 'absent', error }, true);
      return;
    }
    this.#backoff.failed();
    const resting = loss.cause === 'absent' || this.#backoff.failures >= FAILURES_BEFORE_REST;
    this.#rest = resting ? loss.error : null;
    this.#status.set(resting ? 'resting' : 'idle', loss.error);
    this.#owner.lost(loss, resting);
    if (this.#owner.busy() || this.#reopensFor(resting)) this.#connectAfterWait();
  }

  #giveUp() {
    this.#channel?.close();
    this.#lost({
      cause: 'lost',
      error: new SidekeepError('unavailable', 'The host does not answer.', {
        next: 'Try again; if it stays so, end the process named sidekeep.',
      }),
    });
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
