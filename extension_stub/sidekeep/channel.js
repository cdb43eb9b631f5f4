// @ts-check
/**
 * One native port from its opening to its end: hello, frames, batches, parts and windows.
 *
 * Rules of this module:
 * - The calls handed over together travel in one frame. Effects follow the order of posting, so a
 *   call does not leave before the last part of an earlier one of its lane; other lanes pass.
 * - The hello shares the first frame with the calls after it. A call that needs parts waits until
 *   the host granted them; without a grant it goes out whole, as far as the browser takes it.
 * - At most `window` parts are unacknowledged, and about 4 MiB of whole calls unanswered, so that
 *   a page is not blocked by a pipe that does not flow.
 * - A channel knows nothing of retries: when its port ends it says so once and is done.
 */

import { Acknowledgements } from './acknowledgements.js';
import { lossText } from './browser.js';
import { fromHost, SidekeepError } from './errors.js';
import { cut, Incoming, Outgoing, PartsFault } from './parts.js';

/** @typedef {import('./browser.js').NativePort} NativePort */
/** @typedef {import('./call.js').Call} Call */
/** @typedef {import('./call.js').Request} Request */
/** @typedef {import('./parts.js').Part} Part */
/** @typedef {import('./index.d.ts').HelloResult} HelloResult */
/** @typedef {{result: unknown} | {error: SidekeepError}} Outcome */

/** Text that one frame is filled with, in bytes as estimated. */
const FRAME_FILL = 1_048_576;
/** Whole calls that may be posted and unanswered, in bytes as estimated. */
const UNANSWERED_LIMIT = 4 * FRAME_FILL;

/**
 * What a channel tells its owner.
 * @typedef {object} ChannelEvents
 * @property {(result: HelloResult) => void} greeted the host answered the hello
 * @property {(error: SidekeepError) => void} refused the host refused the hello
 * @property {(call: Call) => void} posted the call, or its first part, was handed to the browser
 * @property {(id: number, outcome: Outcome) => void} answered
 * @property {(method: string, params: any) => void} notified the host tells something unasked
 * @property {() => void} moved parts or their acknowledgements arrived
 * @property {(text: string) => void} lost the port ended; what the browser says of it
 */

/** A call on its way out in parts. */
class Stream {
  /** parts acknowledged */
  acked = 0;

  /**
   * @param {Call} call
   * @param {Outgoing} parts
   */
  constructor(call, parts) {
    this.call = call;
    this.parts = parts;
  }
}

export class Channel {
  #port;
  #events;
  /** @type {Request | null} */
  #hello = null;
  #helloPosted = false;
  #greeted = false;
  #ended = false;
  /** parts that may be unacknowledged; 0: the host grants no parts */
  #window = 0;
  #unacked = 0;
  #nextOf = 1;
  /** @type {Call[]} handed over and not yet posted */
  #waiting = [];
  /** @type {Stream[]} on their way out */
  #streams = [];
  /** @type {Map<number, Stream>} by `of`: some part is not yet acknowledged */
  #unackedStreams = new Map();
  /** @type {Map<number, number>} bytes of whole calls that are posted and unanswered, by id */
  #unanswered = new Map();
  #unansweredBytes = 0;
  #incoming = new Incoming();
  #acknowledgements = new Acknowledgements();
  /** when the port was opened; by performance.now() */
  opened = performance.now();
  /** when anything last arrived, 0 if nothing did; by performance.now() */
  lastHeard = 0;

  /**
   * @param {NativePort} port just opened
   * @param {ChannelEvents} events
   */
  constructor(port, events) {
    this.#port = port;
    this.#events = events;
    port.onMessage.addListener((message) => this.#receive(message));
    port.onDisconnect.addListener(() => this.#end(lossText(port)));
  }

  /**
   * Gives the hello; from now on frames leave.
   * @param {Request} hello
   * @param {Call[]} first calls that go before those that wait already
   */
  greet(hello, first) {
    this.#hello = hello;
    this.#waiting.unshift(...first);
    this.#pump();
  }

  /** Whether the hello was given. */
  get saidHello() {
    return this.#hello !== null;
  }

  /**
   * Posts calls, in this order, as soon as the rules allow.
   * @param {Call[]} calls
   */
  send(calls) {
    this.#waiting.push(...calls);
    this.#pump();
  }

  /**
   * Whether some but not all of a call has left: it cannot be taken back.
   * @param {Call} call
   * @returns {boolean}
   */
  isSending(call) {
    return this.#streams.some((stream) => stream.call === call);
  }

  /** Ends the port without telling the owner. What was posted still arrives. */
  close() {
    if (this.#ended) return;
    this.#ended = true;
    this.#port.disconnect();
  }

  /** @param {string} text */
  #end(text) {
    if (this.#ended) return;
    this.#ended = true;
    this.#events.lost(text);
  }

  /** Posts whatever may leave now. */
  #pump() {
    if (!this.#hello) return;
    this.#postWhole();
    let finished = this.#postParts();
    while (finished) {
      this.#postWhole(); // a lane is free again
      finished = this.#postParts();
    }
  }

  /** Posts waiting calls in frames, and turns those that need parts into streams. */
  #postWhole() {
    if (this.#ended) return;
    /** @type {Call[]} */
    const kept = [];
    /** @type {Call[]} */
    let frame = [];
    let bytes = 0;
    let stopped = false;
    const busyLanes = new Set(this.#streams.map((stream) => stream.call.lane));
    busyLanes.delete(null);
    const waiting = this.#waiting;
    this.#waiting = kept;
    for (const call of waiting) {
      if (call.outcome) continue;
      const big = call.big && !(this.#greeted && this.#window === 0);
      if (stopped || busyLanes.has(call.lane) || (big && !this.#greeted)) {
        stopped ||= big && !this.#greeted;
        kept.push(call);
      } else if (big) {
        this.#streams.push(new Stream(call, new Outgoing(this.#nextOf, call.cut(cut))));
        this.#nextOf += 1;
        if (call.lane !== null) busyLanes.add(call.lane);
      } else if (this.#unansweredBytes > UNANSWERED_LIMIT) {
        stopped = true;
        kept.push(call);
      } else {
        if (bytes > 0 && bytes + call.bytes > FRAME_FILL) {
          this.#postFrame(frame);
          frame = [];
          bytes = 0;
        }
        frame.push(call);
        bytes += call.bytes;
        this.#unanswered.set(call.id, call.bytes);
        this.#unansweredBytes += call.bytes;
      }
    }
    if (frame.length > 0 || !this.#helloPosted) this.#postFrame(frame);
  }

  /** @param {Call[]} calls */
  #postFrame(calls) {
    if (this.#ended) return;
    const requests = calls.map((call) => call.request);
    if (!this.#helloPosted) {
      requests.unshift(/** @type {Request} */ (this.#hello));
      this.#helloPosted = true;
    }
    for (const call of calls) this.#events.posted(call);
    try {
      this.#post(requests.length === 1 ? requests[0] : requests);
    } catch (error) {
      // Only a single call can be that large: frames are filled up to 1 MiB.
      for (const call of calls) this.#answer(call.id, { error: cannotBePosted(error) });
    }
  }

  /** @returns {boolean} whether the last part of some call was posted */
  #postParts() {
    let finished = false;
    while (!this.#ended && this.#streams.length > 0 && this.#unacked < this.#window) {
      // In turn, so that calls of different lanes share the window.
      const stream = /** @type {Stream} */ (this.#streams.shift());
      if (stream.parts.made === 0) this.#events.posted(stream.call);
      this.#unackedStreams.set(stream.parts.of, stream);
      this.#unacked += 1;
      this.#post(stream.parts.next()); // a piece is small enough for every browser
      if (stream.parts.done) finished = true;
      else this.#streams.push(stream);
    }
    return finished;
  }

  /**
   * @param {unknown} message
   * @throws {Error} what the browser throws, unless the port turns out to be gone
   */
  #post(message) {
    if (this.#ended) return;
    try {
      this.#port.postMessage(message);
    } catch (error) {
      if (!/disconnected/i.test(String(error))) throw error;
      this.#end('');
    }
  }

  /** @param {unknown} message */
  #receive(message) {
    if (this.#ended) return;
    this.lastHeard = performance.now();
    try {
      if (Array.isArray(message)) for (const element of message) this.#receiveOne(element);
      else this.#receiveOne(message);
    } catch (error) {
      if (!(error instanceof PartsFault || error instanceof SyntaxError)) throw error;
      this.#port.disconnect();
      this.#end(`Error when communicating: ${error.message}`);
      return;
    }
    const acks = this.#acknowledgements.take();
    if (acks.length > 0) this.#post(acks.length === 1 ? acks[0] : acks);
    this.#pump();
  }

  /** @param {unknown} message */
  #receiveOne(message) {
    if (typeof message !== 'object' || message === null) return;
    if ('ack' in message) {
      this.#acknowledged(/** @type {{of: number, i: number}} */ (message.ack));
    } else if ('part' in message) {
      const part = /** @type {Part} */ (message);
      const whole = this.#incoming.add(part);
      this.#acknowledgements.add(part.part, whole !== undefined, this.#window);
      this.#events.moved();
      if (whole !== undefined) this.#receiveOne(whole);
    } else if ('id' in message) {
      this.#response(/** @type {{id: unknown, result?: unknown, error?: object}} */ (message));
    } else if ('method' in message) {
      const { method, params } = /** @type {{method: unknown, params?: unknown}} */ (message);
      if (typeof method === 'string') this.#events.notified(method, params);
    }
  }

  /** @param {{of: number, i: number}} ack */
  #acknowledged({ of, i }) {
    const stream = this.#unackedStreams.get(of);
    if (!stream || !(i < stream.parts.made)) return;
    this.#unacked -= Math.max(0, i + 1 - stream.acked);
    stream.acked = Math.max(stream.acked, i + 1);
    if (stream.acked === stream.parts.made) this.#unackedStreams.delete(of);
    this.#events.moved();
  }

  /** @param {{id: unknown, result?: unknown, error?: {data?: {of?: unknown}}}} response */
  #response(response) {
    const outcome = response.error
      ? { error: fromHost(response.error) }
      : { result: response.result };
    if (this.#hello && response.id === this.#hello.id) {
      this.#helloAnswered(outcome);
    } else if (typeof response.id === 'number') {
      this.#forgetStream((stream) => stream.call.id === response.id);
      this.#answer(response.id, outcome);
    } else if (typeof response.error?.data?.of === 'number') {
      const of = response.error.data.of;
      const stream = this.#forgetStream((candidate) => candidate.parts.of === of);
      if (stream) this.#answer(stream.call.id, outcome);
    }
  }

  /** @param {Outcome} outcome */
  #helloAnswered(outcome) {
    if (this.#greeted) return;
    if ('error' in outcome) {
      this.close();
      this.#events.refused(outcome.error);
      return;
    }
    this.#greeted = true;
    const result = /** @type {HelloResult} */ (outcome.result);
    this.#window = result.parts?.window ?? 0;
    this.#events.greeted(result);
  }

  /**
   * Ends a stream whose call was answered: the host wants no more of it.
   * @param {(stream: Stream) => boolean} which
   * @returns {Stream | undefined}
   */
  #forgetStream(which) {
    const stream = [...this.#unackedStreams.values()].find(which);
    if (!stream) return undefined;
    this.#unacked -= stream.parts.made - stream.acked;
    this.#unackedStreams.delete(stream.parts.of);
    this.#streams = this.#streams.filter((other) => other !== stream);
    return stream;
  }

  /**
   * @param {number} id
   * @param {Outcome} outcome
   */
  #answer(id, outcome) {
    this.#unansweredBytes -= this.#unanswered.get(id) ?? 0;
    this.#unanswered.delete(id);
    this.#events.answered(id, outcome);
  }
}

/**
 * @param {unknown} error what `postMessage` threw
 * @returns {SidekeepError}
 */
function cannotBePosted(error) {
  const text = error instanceof Error ? error.message : String(error);
  return new SidekeepError('tooLarge', `The browser does not carry this message: ${text}`, {
    next: 'Update the host to a version that takes messages in parts, or store smaller values.',
  });
}
