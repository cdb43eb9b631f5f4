/**
 * The types of the relay for content scripts: `relay.js` in the worker, `content.js` in the page.
 */

import type { AreaStorage, Keep, ListenerSet, Status } from './index.js';

export interface RelayOptions {
  /** The areas that content scripts can use at all; default both, as their access levels allow. */
  areas?: ('local' | 'session')[];
  /** The name of the ports; the same on both sides. */
  name?: string;
}

export interface Relay {
  /** How many content scripts are bound to it now. */
  readonly bound: number;
  /** Serves nobody any more. */
  close(): void;
}

/** Serves the content scripts of this extension; to be called in the first turn of the worker. */
export function relay(keep: Keep, options?: RelayOptions): Relay;

export interface ContentOptions {
  /** Milliseconds without an answer after which a call rejects; default 30,000. */
  timeout?: number;
  /** Milliseconds without a call after which the port to the worker is closed; default 5,000. */
  idle?: number;
  /** The name of the ports; the same on both sides. */
  name?: string;
}

/** The areas in a content script. */
export interface ContentKeep {
  readonly storage: AreaStorage;
  /** An object in the place of `chrome`, for libraries. Always the same object. */
  asChrome(): any;
  /** Tells that changes of an area were missed for good: read again what you keep of it. */
  readonly onGap: ListenerSet<[{ readonly area: 'local' | 'session' }]>;
  /** The state of the link to the worker, in words. */
  status(): Status;
  readonly onStatus: ListenerSet<[Status]>;
  /** Ends the link; calls that are open are refused. */
  close(): void;
}

/** Makes a link to the worker; it opens its port at the first call, or with the first listener. */
export function connectContent(options?: ContentOptions): ContentKeep;
