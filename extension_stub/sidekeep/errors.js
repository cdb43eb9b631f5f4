// @ts-check
/**
 * The one error class of the stub, and the sentences people read.
 *
 * Rules of this module:
 * - `code` and `kind` are those of the error table in docs/protocol.md, whether the host or the
 *   stub itself refuses; `message` is one sentence for a person, `next` says what to do.
 * - `unavailable` means the call had no effect. `unknown` means it may have had one.
 */

/** @typedef {import('./index.d.ts').ErrorKind} ErrorKind */

/** The error table of docs/protocol.md: code by kind. Codes only grow. */
export const CODES = Object.freeze(
  /** @type {Record<Exclude<ErrorKind, 'orphaned'>, number>} */ ({
    parse: -32700,
    invalidRequest: -32600,
    methodNotFound: -32601,
    invalidParams: -32602,
    internal: -32603,
    quota: -32001,
    conflict: -32002,
    notFound: -32003,
    busy: -32004,
    damaged: -32005,
    tooLarge: -32006,
    diskFull: -32007,
    forbidden: -32008,
    unavailable: -32009,
    unknown: -32010,
  }),
);

/** What only the stub says, since no host can: the extension was reloaded under this context. */
const ORPHANED = -32011;

/** Every failure of a call to the host. */
export class SidekeepError extends Error {
  /**
   * @param {ErrorKind} kind the stable word of the error table
   * @param {string} message one sentence for a person
   * @param {{next?: string | undefined, code?: number | undefined, data?: object | undefined}} [more]
   *   what to do, the code where the host sent one, further fields of `error.data`
   */
  constructor(kind, message, more = {}) {
    super(message);
    this.name = 'SidekeepError';
    /** @type {ErrorKind} */
    this.kind = kind;
    this.code = more.code ?? (kind === 'orphaned' ? ORPHANED : CODES[kind]);
    this.next = more.next;
    this.data = more.data;
  }

  /**
   * A new error of the same content, so that each rejected call has a stack and an identity of
   * its own.
   * @returns {SidekeepError}
   */
  copy() {
    return new SidekeepError(this.kind, this.message, {
      next: this.next,
      code: this.code,
      data: this.data,
    });
  }
}

/**
 * The error that a JSON-RPC `error` object of the host stands for.
 * @param {{code?: unknown, message?: unknown, data?: unknown}} error
 * @returns {SidekeepError}
 */
export function fromHost(error) {
  const data = /** @type {Record<string, unknown>} */ (
    typeof error.data === 'object' && error.data !== null ? error.data : {}
  );
  const kind = typeof data['kind'] === 'string' ? data['kind'] : 'internal';
  return new SidekeepError(
    /** @type {ErrorKind} */ (kind),
    typeof error.message === 'string' ? error.message : 'The host refused the call.',
    {
      code: typeof error.code === 'number' ? error.code : undefined,
      next: typeof data['next'] === 'string' ? data['next'] : undefined,
      data,
    },
  );
}

/**
 * Why nothing can be called any more in a context whose extension was reloaded, updated or removed.
 * @returns {SidekeepError}
 */
export function orphaned() {
  return new SidekeepError('orphaned', 'The extension was reloaded or removed while this page was open.', {
    next: 'Reload this page.',
  });
}

/**
 * Why a native port ended, from the text the browser gives.
 *
 * `cause` is `absent` where no host process can have seen a message and trying again at once is
 * no use, `lost` where a process was there.
 * @typedef {{cause: 'absent' | 'lost', error: SidekeepError}} PortLoss
 */

/**
 * Chromium's and Firefox's texts for a port that ended (facts measured on Chromium 156 and
 * Firefox 153), and what they mean for a person.
 * @param {string} text what the browser said; '' if it said nothing
 * @param {string} host the native host's name
 * @returns {PortLoss}
 */
export function explainLoss(text, host) {
  if (/host not found|no such native application|Invalid native messaging host name/i.test(text)) {
    return {
      cause: 'absent',
      error: new SidekeepError(
        'unavailable',
        `The browser finds no Sidekeep host named ${host}.`,
        { next: 'Install the host (./install.sh) for this browser, then try again.' },
      ),
    };
  }
  if (/forbidden|not allowed to|may not access/i.test(text)) {
    return {
      cause: 'absent',
      error: new SidekeepError(
        'forbidden',
        'The Sidekeep host is installed, but not for this extension.',
        { next: 'Run ./install.sh --extension-id with the id of this extension, then try again.' },
      ),
    };
  }
  if (/context invalidated/i.test(text)) return { cause: 'absent', error: orphaned() };
  if (/Error when communicating/i.test(text)) {
    return {
      cause: 'lost',
      error: new SidekeepError(
        'unavailable',
        'The host sent something that is no message, and the browser closed the connection.',
        { next: 'Run "sidekeep doctor", or ./install.sh again.' },
      ),
    };
  }
  return {
    cause: 'lost',
    error: new SidekeepError('unavailable', 'The host process ended.', {
      next: 'Try again; if it stays so, run "sidekeep doctor" or ./install.sh again.',
    }),
  };
}
