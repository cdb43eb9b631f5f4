// @ts-check
/**
 * Messages in parts: cutting what goes out, joining what comes in ("Parts" in docs/protocol.md).
 *
 * Rules of this module:
 * - A message is its JSON text with every long string taken out, and those strings ("holes") as
 *   bare strings, so that no byte of them is escaped or parsed twice.
 * - Pieces are measured as the browser will write them, in bytes of JSON text, and never split a
 *   surrogate pair. Measuring is left to native code (JSON.stringify and TextEncoder).
 * - Nothing here knows of ports, windows or requests.
 */

/** A message with a longer JSON text, in bytes, travels in parts. */
export const MESSAGE_LIMIT = 262_144;
/** A longer string, in bytes of JSON text, becomes a hole. */
export const STRING_LIMIT = 65_536;
/** Bytes of JSON text in one piece. */
export const PIECE_LIMIT = 262_144;
/** Bytes of one message in parts. */
export const PARTS_LIMIT = 536_870_912;

/** Paths that one text part carries at the most, so that a part stays small. */
const PATHS_PER_PART = 1000;

/** @typedef {(string | number)[]} Path */
/** @typedef {{of: number, i: number, last: boolean, holes?: Path[], hole?: number}} PartHead */
/** @typedef {{part: PartHead, text?: string, s?: string}} Part */
/** @typedef {{parent: Record<string | number, unknown>, path: Path, string: string}} Hole */
/** @typedef {{text: string, holes: Hole[]}} Cut */

const encoder = new TextEncoder();
const buffer = new Uint8Array(PIECE_LIMIT + 2);

/** Text of which each unit is one byte of JSON text, as base64 is: four times as fast to see. */
const PLAIN = /^[ !#-[\]-~]*$/;

/**
 * Whether the JSON text of a string, between its quotes, is longer than `limit` bytes.
 * @param {string} string well formed
 * @param {number} limit
 * @returns {boolean}
 */
export function longerThan(string, limit) {
  if (string.length > limit) return true;
  if (string.length * 6 <= limit) return false;
  return encoder.encode(JSON.stringify(string)).length - 2 > limit;
}

/** Takes pieces of at most PIECE_LIMIT bytes of JSON text off the front of a string. */
export class Pieces {
  #string;
  #at = 0;
  #guess = PIECE_LIMIT;

  /** @param {string} string well formed */
  constructor(string) {
    this.#string = string;
  }

  get done() {
    return this.#at >= this.#string.length;
  }

  /** @returns {string} the next piece; '' only of an empty string */
  next() {
    const plain = this.#string.slice(this.#at, this.#at + PIECE_LIMIT);
    if (PLAIN.test(plain)) {
      this.#at += plain.length;
      return plain;
    }
    let units = Math.min(this.#guess, this.#string.length - this.#at);
    for (;;) {
      const piece = this.#string.slice(this.#at, this.#wholePair(this.#at + units));
      const json = JSON.stringify(piece);
      const { read, written } = encoder.encodeInto(json, buffer);
      if (read === json.length) {
        this.#at += piece.length;
        // Texts are even enough that what fitted tells how much will; a little more is tried.
        const fitting = Math.ceil((units * 1.02 * PIECE_LIMIT) / written);
        this.#guess = Math.min(PIECE_LIMIT, Math.max(1024, fitting));
        return piece;
      }
      units = Math.max(2, Math.floor(units * Math.min(0.97, (read / json.length) * 0.99)));
    }
  }

  /**
   * @param {number} end
   * @returns {number} the same, or one less where it would split a pair
   */
  #wholePair(end) {
    if (end >= this.#string.length) return end;
    const unit = this.#string.charCodeAt(end - 1);
    return unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
  }
}

/**
 * Cuts a message. Its long strings are taken out for the moment in which its text is written, so
 * the tree must be the caller's own; it is whole again on return.
 * @param {object} message of plain objects, arrays, well-formed strings, numbers, booleans, null
 * @returns {Cut}
 */
export function cut(message) {
  /** @type {Hole[]} */
  const holes = [];
  takeLongStrings(message, [], holes);
  const text = JSON.stringify(message);
  for (const { parent, path, string } of holes) {
    parent[/** @type {string | number} */ (path.at(-1))] = string;
  }
  return { text, holes };
}

/**
 * @param {object} node
 * @param {Path} path where the node is
 * @param {Hole[]} holes
 */
function takeLongStrings(node, path, holes) {
  const tree = /** @type {Record<string | number, unknown>} */ (node);
  const keys = Array.isArray(node) ? node.keys() : Object.keys(node);
  for (const key of keys) {
    const child = tree[key];
    if (typeof child === 'string') {
      if (longerThan(child, STRING_LIMIT)) {
        holes.push({ parent: tree, path: [...path, key], string: child });
        tree[key] = '';
      }
    } else if (typeof child === 'object' && child !== null) {
      path.push(key);
      takeLongStrings(child, path, holes);
      path.pop();
    }
  }
}

/** The parts of one outgoing message, made one at a time. */
export class Outgoing {
  #cut;
  #pieces;
  #paths = 0;
  /** number of the current hole; -1 while the text goes out */
  #hole = -1;

  /**
   * @param {number} of number of the message in this direction
   * @param {Cut} cut
   */
  constructor(of, cut) {
    this.of = of;
    this.#cut = cut;
    this.#pieces = new Pieces(cut.text);
    /** how many parts were made */
    this.made = 0;
    this.done = false;
  }

  /** @returns {Part} */
  next() {
    /** @type {Part} */
    const part = { part: { of: this.of, i: this.made, last: false } };
    const piece = this.#pieces.next();
    part.part.last = this.#pieces.done;
    if (this.#hole < 0) {
      part.text = piece;
      this.#addPaths(part.part);
    } else {
      part.part.hole = this.#hole;
      part.s = piece;
    }
    this.made += 1;
    if (part.part.last) this.#nextHole();
    return part;
  }

  /** @param {PartHead} head of a text part */
  #addPaths(head) {
    const end = head.last ? this.#cut.holes.length : this.#paths + PATHS_PER_PART;
    const paths = this.#cut.holes.slice(this.#paths, end).map((hole) => hole.path);
    this.#paths = end;
    if (paths.length > 0) head.holes = paths;
  }

  #nextHole() {
    this.#hole += 1;
    const hole = this.#cut.holes[this.#hole];
    if (hole) this.#pieces = new Pieces(hole.string);
    else this.done = true;
  }
}

/** The other side broke the rules for parts. */
export class PartsFault extends Error {}

/** Joins the parts of incoming messages. */
export class Incoming {
  /** @type {Map<number, Joining>} */
  #open = new Map();

  /**
   * @param {Part} part
   * @returns {unknown} the whole message, or undefined while parts of it are missing
   * @throws {PartsFault} if the part breaks the rules
   */
  add(part) {
    const head = part.part;
    if (typeof head !== 'object' || head === null || !Number.isInteger(head.of)) {
      throw new PartsFault('a part without a number');
    }
    let joining = this.#open.get(head.of);
    if (!joining) {
      joining = new Joining();
      this.#open.set(head.of, joining);
    }
    if (!joining.add(part)) return undefined;
    this.#open.delete(head.of);
    return joining.message;
  }
}

/** One incoming message whose parts are arriving. */
class Joining {
  #next = 0;
  #units = 0;
  #hole = -1;
  /** @type {string[]} */
  #pieces = [];
  /** @type {Path[]} */
  #paths = [];
  /** @type {unknown} */
  message = undefined;

  /**
   * @param {Part} part
   * @returns {boolean} whether the message is whole
   */
  add(part) {
    const head = part.part;
    if (head.i !== this.#next) throw new PartsFault(`part ${head.i} in place of ${this.#next}`);
    this.#next += 1;
    const piece = this.#hole < 0 ? part.text : part.s;
    if (typeof piece !== 'string' || (head.hole ?? -1) !== this.#hole) {
      throw new PartsFault('parts of a message in the wrong order');
    }
    this.#units += piece.length;
    if (this.#units > PARTS_LIMIT) throw new PartsFault('a message beyond 512 MiB');
    this.#pieces.push(piece);
    if (head.holes) for (const path of head.holes) this.#paths.push(path);
    if (head.last) this.#endOfString();
    return head.last && this.#hole === this.#paths.length;
  }

  #endOfString() {
    const string = this.#pieces.length === 1 ? this.#pieces[0] : this.#pieces.join('');
    this.#pieces = [];
    if (this.#hole < 0) this.message = JSON.parse(/** @type {string} */ (string));
    else this.#fill(/** @type {Path} */ (this.#paths[this.#hole]), /** @type {string} */ (string));
    this.#hole += 1;
  }

  /**
   * @param {Path} path
   * @param {string} string
   */
  #fill(path, string) {
    let node = this.message;
    path.forEach((key, index) => {
      if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) {
        throw new PartsFault('a hole outside the message');
      }
      const parent = /** @type {Record<string | number, unknown>} */ (node);
      node = parent[key];
      if (index < path.length - 1) return;
      if (node !== '') throw new PartsFault('a hole where no string was cut out');
      parent[key] = string;
    });
  }
}
