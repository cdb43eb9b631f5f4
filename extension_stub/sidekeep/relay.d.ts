/**
 * The types of the relay for content scripts, in the worker.
 */

import type { Keep } from './index.js';

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
