// @ts-check
/**
 * When a native port may be opened again.
 *
 * Rules of this module:
 * - The first attempts follow quickly, so that a killed host is replaced well under 2 s; then they
 *   back off to one in 15 s: fewer than ten in the first minute, and a host that is installed later
 *   is found within 15 s of the next call.
 * - Attempts are made for calls only, never by an interval of their own.
 */

/** Milliseconds to wait after the first, second, … failure in a row; the last one repeats. */
export const WAITS = Object.freeze([50, 250, 1000, 4000, 15_000]);

/** Failures in a row after which waiting calls are refused. */
export const FAILURES_BEFORE_REST = 4;

export class Backoff {
  /** failures in a row */
  failures = 0;
  /** when the next attempt may be made; by performance.now() */
  #next = 0;

  /** Milliseconds until an attempt may be made; 0 if it may now. */
  get wait() {
    return Math.max(0, this.#next - performance.now());
  }

  /** Notes that a port could not be opened, or ended. */
  failed() {
    const wait = WAITS[Math.min(this.failures, WAITS.length - 1)] ?? 0;
    this.failures += 1;
    this.#next = performance.now() + wait;
  }

  /** Notes that the host answers, or that a person asks for an attempt. */
  reset() {
    this.failures = 0;
    this.#next = 0;
  }
}
