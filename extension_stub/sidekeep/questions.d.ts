/**
 * The types of turns, attachments, and how requests are made. The fields are those of
 * docs/protocol.md, "Attachments and turns".
 */

import type { SidekeepError } from './index.js';

/** Where a request goes, which decides its shape. */
export interface Target {
  style: 'chat' | 'responses' | 'anthropic' | 'runs' | 'agent';
  /** The system prompt. */
  system?: string | undefined;
  /** For `agent`: the conversation so far goes along as a transcript. */
  backfill?: boolean | undefined;
}

export interface Limits {
  /** Pictures of this turn at the most, default 8, and their characters together, default 3,145,728. */
  images?: number | undefined;
  bytes?: number | undefined;
  /** Bounds of the whole request; a picture counts 4,000 characters, or 1,000 tokens. None unless given. */
  chars?: number | undefined;
  tokens?: number | undefined;
}

/** What every turn says of its request. */
export interface TurnOptions {
  target: Target;
  limits?: Limits | undefined;
  /** May run beside another turn of the conversation, which is `busy` otherwise. */
  parallel?: boolean | undefined;
}

export interface NewTurn extends TurnOptions {
  text: string;
  /** `data:image/…` or `http(s)` URLs. */
  images?: string[] | undefined;
}

export interface EditedTurn extends TurnOptions {
  /** In place of the text, or the pictures, that the question had. */
  text?: string | undefined;
  images?: string[] | undefined;
}

/** What did not fit: how many pictures of this turn, and the ids of entries. */
export interface LeftOut {
  images: number;
  entries: string[];
}

export interface RescueResult {
  /** Whether the request was too large, as the error tells. */
  overflow: boolean;
  /** A smaller one, or null if there is nothing to make smaller, or it was done already. */
  request: any;
  /** The attachments that it names instead of having their text. */
  stubbed: string[];
  left: LeftOut;
}

/** A turn that runs. It keeps the worker awake and its port open until it is completed or failed. */
export interface Turn {
  readonly turnId: string;
  /** The question. */
  readonly entryId: string;
  readonly conversation: string;
  /** What is to be sent: by the style of the target; after a rescue the smaller one. */
  readonly request: any;
  readonly left: LeftOut;
  /** Of `edit` and `regenerate`: brings back what made room. */
  readonly undo?: string | null;
  /** Why the newest text of `progress` could not be saved; null if it could. */
  readonly unsaved: SidekeepError | null;
  /**
   * Saves the whole text of the answer so far, so that it is kept if the page, the worker or the host
   * ends. May be called with every word: one call at a time is sent, about every 300 ms, with the
   * newest text. Does nothing after the end of the turn.
   */
  progress(text: string): void;
  /**
   * Asks for a smaller request after the model's server refused one: `status`, `code` and `message`
   * say how. Nothing stored changes. Once per turn.
   */
  rescue(error: { status?: any; code?: any; message?: any }): Promise<RescueResult>;
  /** Appends the answer. `stamps` are further fields of it. Doing it again gives the first result. */
  complete(
    content: any,
    stamps?: object,
  ): Promise<{ id: string; seen: string[]; conversation: string; session: string | null }>;
  /**
   * Ends the turn without an answer: the question is marked, and what came of an answer is kept
   * (`partial`, or else the newest text of `progress`), but for `drop`. `id` is the entry of that.
   */
  fail(
    reason: 'error' | 'abort' | 'drop' | 'interrupted',
    partial?: string,
  ): Promise<{ id: string | null }>;
}

/** Questions to a model. One send is exactly one user entry, whatever becomes of it. */
export interface Turns {
  /** Appends the question and gives the request for it. `busy` while another turn runs. */
  begin(turn: NewTurn): Promise<Turn>;
  /** Takes a question and what follows out, and asks anew in its place. What is not given stays. */
  edit(entryId: string, turn: EditedTurn): Promise<Turn>;
  /** Asks the same question again in its place. */
  regenerate(entryId: string, turn: TurnOptions): Promise<Turn>;
}

export interface NewAttachment {
  url: string;
  title: string;
  /** How the text was taken, for instance `full`, `selection`, `screenshot`. */
  mode: string;
  format?: string | undefined;
  /** Further lines of the header; ends in a line feed. */
  block?: string | undefined;
  /** The mode was not possible and the whole page was taken. */
  fallback?: boolean | undefined;
  /** When an earlier state of the page was attached: milliseconds since 1970, or the text of a date. */
  changedSince?: number | string | undefined;
  /** A line with `[图N]` is followed by picture N. */
  text: string;
  images?: string[] | undefined;
  videoSrc?: object | undefined;
  /** Refused with `conflict` unless this conversation is live. */
  conversation?: string | undefined;
}

/** How a long text is cut for a model. */
export interface CondensePlan {
  chunks: string[];
  /** The length of the text. */
  chars: number;
}

/** A call of a model. `merge`: the text is made of the results of several chunks. */
export type Summarize = (
  text: string,
  info: { index: number; count: number; merge: boolean; signal: AbortSignal },
) => string | Promise<string>;

export interface CondenseOptions {
  /** Gives the summary of a chunk, and of several results in one text unless there is `merge`. */
  summarize: Summarize;
  merge?: Summarize | undefined;
  /** Ends it; nothing is written then. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for each call; default 90,000. */
  timeout?: number | undefined;
  /** Calls at a time, 1 to 64; default 3. */
  parallel?: number | undefined;
}

export interface Attachments {
  /** Puts a page or a text at the end of the live conversation. `condense` is not null if it is long. */
  add(attachment: NewAttachment): Promise<{ attachId: string; id: string; condense: CondensePlan | null }>;
  /** Takes one out again, or the newest. */
  undo(which: string | { last: true }): Promise<{ removed: boolean; index: number; undo: string | null }>;
  /** Whether a page is another than when it was last attached; notes how it is now. */
  changed(page: {
    url: string;
    mode: string;
    text: string;
  }): Promise<{ changed: boolean; previousAttachedAt?: any; previousLength?: number }>;
  /**
   * Puts a summary in place of the text of an attachment, whatever its length, wherever it is now;
   * `entries` says in how many conversations. The former text stays readable in `originalText`. If a
   * call fails, takes too long or gives nothing, it rejects and nothing is written.
   */
  condense(attachId: string, options: CondenseOptions): Promise<{ entries: number }>;
}

/** How requests are made, where it differs from the host's defaults. */
export interface RequestOptions {
  /** Characters from which an attachment should be condensed; default 100,000. */
  condenseFrom?: number;
  /** Which attachments are sent as a stub: after so many answered questions (3), from so many characters (8,000). */
  aging?: { turns?: number; chars?: number };
  /** Which attachments a rescue leaves out: from so many characters (8,000). */
  overflow?: { chars?: number };
  /** Wordings that a model reads. */
  texts?: {
    /** In place of an attachment that is old, and of one that a rescue leaves out. */
    aging?: string;
    overflow?: string;
    /** Before a summary; `{n}` is the length of the text. */
    condensed?: string;
    /** Of a picture that was seen; `{n}` is its number in the entry. */
    imageLabel?: string;
    /** What is stored for an empty question, and sent for it with pictures, and without. */
    noInstruction?: string;
    describeImages?: string;
    pageOnly?: string;
    /** Between the attachments and the question in the text for an agent. */
    agentNote?: string;
    /** Of the user, where a server wants a message of theirs first and there is none. */
    placeholder?: string;
  };
}
