/**
 * The types of conversations, sessions and pictures. The fields are those of docs/protocol.md.
 */

import type { ListenerSet } from './index.js';

/** Any JSON value; most are `{role, content}`. Pictures that were left out stand as tokens in it. */
export type Entry = any;

export interface EntryWithId {
  /** Kept when the entry changes, is saved, loaded, or brought back. */
  id: string;
  entry: Entry;
}

/**
 * How pictures are delivered. `full` (the default): as they were stored. `none`: as tokens.
 * `thumbnail`: as tokens, with thumbnails in `images`. `bounded`: the oldest so, until what is left
 * fits `budget`.
 */
export type Pixels = 'full' | 'bounded' | 'thumbnail' | 'none';

/** Which entries. At most one of `offset`, `before` and `after`. */
export interface ListOptions {
  /** From the start; a negative one from the end. */
  offset?: number | undefined;
  limit?: number | undefined;
  /** The entries before this one; with `limit` the last of them. */
  before?: string | undefined;
  /** The entries after this one. */
  after?: string | undefined;
  pixels?: Pixels | undefined;
  /** Characters of pictures that `bounded` leaves whole; default 8 MiB. */
  budget?: number | undefined;
}

/** A picture that was left out. */
export interface LeftPicture {
  /** Of its entry. */
  id: string;
  /** Where in the entry it stands. */
  path: (string | number)[];
  /** The token that stands for it; an entry that is given back with it keeps the picture. */
  ref: string;
  /** The length of its data URL. */
  bytes: number;
  /** What the picture says it is. */
  mime: string;
  /** `pending`: `keep.images.thumbnail` waits for it. `left`: none was asked for. */
  state: 'ready' | 'pending' | 'none' | 'left';
  /** A data URL, if it is `ready`. */
  thumbnail?: string;
  /** Why there is none. */
  reason?: string;
}

export interface HistoryList {
  entries: EntryWithId[];
  images: LeftPicture[];
  /** How many entries there are in all. */
  total: number;
  /** Which conversation is live. */
  conversation: string;
  /** Of the list, to be expected by a change. */
  revision: number;
}

/** A change is refused with `conflict` unless the list has this revision. */
export interface Expect {
  expect?: number | undefined;
}

export interface AppendOptions extends Expect {
  /** Refused with `conflict` unless this conversation is live. */
  conversation?: string | undefined;
}

export type EntryChange = Expect & (
  | { /** Takes the place of the entry. */ entry: Entry }
  | { /** Members that are set in the entry, one level deep. */ merge: object }
);

/** One entry: by its id, its index, or the id of an attachment. */
export type Which = string | number | { id: string } | { index: number } | { attachId: string };

export interface HistoryChange {
  readonly what: 'append' | 'update' | 'remove' | 'clear' | 'replace' | 'gap';
  /** The entries that it concerns. */
  readonly ids: readonly string[];
  readonly revision: number;
  /** The conversation that is live after it. */
  readonly conversation: string;
}

export interface SessionsChange {
  readonly what: 'save' | 'update' | 'delete' | 'gap';
  /** The sessions that it concerns. */
  readonly ids: readonly string[];
  readonly revision: number;
}

/**
 * The live conversation, entry by entry. Arguments of the wrong type throw a TypeError at once; an
 * index beyond the end rejects with `invalidParams`.
 */
export interface History {
  list(options?: ListOptions): Promise<HistoryList>;
  /** Puts one entry, or all of an array, at the end. */
  append(
    entries: Entry | Entry[],
    options?: AppendOptions,
  ): Promise<{ ids: string[]; length: number; revision: number }>;
  update(id: string, change: EntryChange): Promise<{ revision: number }>;
  /** Puts these entries in place of all. One with an `id` of the present list keeps it. */
  replace(
    entries: { id?: string | undefined; entry: Entry }[],
    options: { expect: number },
  ): Promise<{ ids: string[]; revision: number; undo: string | null }>;
  /** An id that is not there removes nothing: `{removed: false, index: -1, undo: null}`. */
  remove(which: Which, options?: Expect): Promise<{ removed: boolean; index: number; undo: string | null }>;
  /** Removes this entry and all that follow. */
  truncate(
    from: string | number | { id: string } | { index: number },
    options?: Expect,
  ): Promise<{ removed: number; length: number; undo: string | null }>;
  /** Removes everything; a new conversation begins. */
  clear(): Promise<{ undo: string | null; conversation: string }>;
  /** Brings back what `undo` names, or the newest thing that was removed from the live history. */
  undo(undo?: string): Promise<{ restored: string[]; revision: number }>;
  /**
   * Changes the list by a function: it gets all entries (pictures as tokens) and gives, or promises,
   * the array that is to take their place; null or nothing leaves it as it is. Entries that are the
   * same objects, or equal, keep their ids. If the list was changed meanwhile the function is called
   * again with the new one, a few times. Gives the entries as they are then.
   */
  mutate(
    change: (entries: Entry[]) => Entry[] | null | undefined | void | Promise<Entry[] | null | undefined | void>,
  ): Promise<Entry[]>;
  /**
   * Tells what became of the live conversation, whoever changed it and by whichever way. `gap`: some
   * changes cannot be told any more, read again.
   */
  readonly onChanged: ListenerSet<[HistoryChange]>;
}

export interface SessionRow {
  id: string;
  name: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  updatedAt: number;
  pinned: boolean;
  /** How many there are. */
  entries: number;
  /** `text`: JSON text without pictures. `own`: pictures that no other conversation has. */
  bytes: { text: number; own: number; shared: number };
  /** Where the query was found; `entryId` is null for a name. */
  hit?: { in: 'name' | 'text' | 'attachment'; entryId: string | null; excerpt: string };
}

/** Conversations that were saved. Arguments of the wrong type throw a TypeError at once. */
export interface Sessions {
  /**
   * Saves the live conversation, into the session of this id or a new one; null if it is empty.
   * Without a name the first question names a new one.
   */
  save(session?: { id?: string | undefined; name?: string | undefined }): Promise<SessionRow | null>;
  /** Pinned ones first, then the newest; with a query those that contain it. */
  list(options?: {
    query?: string | undefined;
    offset?: number | undefined;
    limit?: number | undefined;
  }): Promise<{ rows: SessionRow[]; total: number }>;
  /**
   * Puts a session in place of the live conversation, which is saved first unless `saveCurrent` is
   * false; `savedAs` names the session that was made for that, if one was.
   */
  load(
    id: string,
    options?: { saveCurrent?: boolean | undefined },
  ): Promise<{ length: number; savedAs: string | null; conversation: string }>;
  /** Reads a session without loading it. */
  get(id: string, options?: ListOptions): Promise<{ row: SessionRow; entries: EntryWithId[]; images: LeftPicture[] }>;
  /** Puts one entry, or all of an array, at the end of a session. */
  append(id: string, entries: Entry | Entry[]): Promise<{ ids: string[]; length: number }>;
  rename(id: string, name: string): Promise<SessionRow>;
  pin(id: string, pinned: boolean): Promise<SessionRow>;
  delete(id: string): Promise<{ undo: string | null }>;
  /** Deletes all. */
  clear(): Promise<{ undo: string | null }>;
  /** Brings back a deleted session, or what `undo` names; of several the newest is given. */
  restore(which: { id: string } | { undo: string | null }): Promise<SessionRow>;
  /** Tells what became of sessions. `gap`: some changes cannot be told any more, read again. */
  readonly onChanged: ListenerSet<[SessionsChange]>;
}

/** A thumbnail as a data URL, or why there is none. */
export type Thumbnail = { url: string; reason: null } | { url: null; reason: string };

/** An entry as it may be drawn. */
export interface DrawnEntry extends EntryWithId {
  /**
   * A copy in which each token is the thumbnail, or `sidekeep:shown:pending`, `sidekeep:shown:none` or
   * `sidekeep:shown:left` where there is none. Storing it throws a TypeError.
   */
  entry: Entry;
  /** What was left out of this entry. */
  images: LeftPicture[];
}

export interface Images {
  /** The picture that a token stands for, as the data URL that was stored. */
  get(ref: string): Promise<string>;
  /** Waits for the thumbnail of a picture; `edge` is its longest side, 16 to 1024, default 480. */
  thumbnail(ref: string, options?: { edge?: number | undefined }): Promise<Thumbnail>;
  /** The entries of a list as a panel may draw them. */
  shown(result: { entries: EntryWithId[]; images: LeftPicture[] }): DrawnEntry[];
}

export interface TrashItem {
  undo: string;
  what: string;
  /** When it was removed and how long it is kept at least: milliseconds since 1970. */
  time: number;
  until: number;
  /** How many. */
  entries: number;
  sessions: { id: string; name: string }[];
  bytes: number;
}

/** What was removed and can be brought back. */
export interface Trash {
  /** Newest first. */
  list(): Promise<TrashItem[]>;
  /** Removes one thing for good, or everything, and then the journal of changes too. */
  empty(undo?: string): Promise<{ items: number; bytes: number }>;
}
