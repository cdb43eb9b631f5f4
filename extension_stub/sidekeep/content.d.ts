/**
 * The types of the stub in a content script.
 */

import type { AreaStorage, ListenerSet, Status } from './index.js';

export { SidekeepError } from './index.js';

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
