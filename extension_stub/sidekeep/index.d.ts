/**
 * The public types of the stub. See README.md one folder up for how to use it.
 */

import type { History, Images, Sessions, Trash } from './conversations.js';
import type { Settings, SettingsOptions } from './configuration.js';
import type { Attachments, RequestOptions, Turns } from './questions.js';

export type * from './conversations.js';
export type * from './questions.js';
export type { Settings, SettingsOptions };

/** What went wrong, as one stable word; the error table is in docs/protocol.md. */
export type ErrorKind =
  | 'parse'
  | 'invalidRequest'
  | 'methodNotFound'
  | 'invalidParams'
  | 'internal'
  | 'quota'
  | 'conflict'
  | 'notFound'
  | 'busy'
  | 'damaged'
  | 'tooLarge'
  | 'diskFull'
  | 'forbidden'
  | 'unavailable'
  | 'unknown'
  | 'orphaned';

/** Every failure of a call. `message` is one sentence for a person. */
export class SidekeepError extends Error {
  constructor(
    kind: ErrorKind,
    message: string,
    more?: { next?: string | undefined; code?: number | undefined; data?: object | undefined },
  );
  /**
   * The stable word. `unavailable`: the call had no effect. `unknown`: a change may have taken
   * effect or not. `orphaned`: the extension was reloaded or removed under this context, which can
   * reach nothing any more; a change that was on its way may have taken effect or not.
   */
  kind: ErrorKind;
  /** The number of the error table. */
  code: number;
  /** What to do about it, where that is known. */
  next: string | undefined;
  /** Further fields that the host sent. */
  data: object | undefined;
  /** A new error of the same content. */
  copy(): SidekeepError;
}

export interface ConnectOptions {
  /** Name of the native host; default `org.sidekeep.host`. */
  host?: string;
  /** Milliseconds without progress after which a call rejects; default 10,000. */
  timeout?: number;
  /**
   * Milliseconds without a call after which the port is closed; default 5,000 in the worker (an
   * open port keeps it awake), 60,000 in pages. `Infinity`: never.
   */
  idle?: number;
  /** Parts that may be on their way unacknowledged, 1 to 64; default 16. */
  window?: number;
  /**
   * Keys that no event tells of, in any area; a `*` at the end stands for any ending. For values that
   * are big and change often: `['history', 'session_*']`.
   */
  quiet?: string[];
  /**
   * Wakes a sleeping worker for every change that a page of this extension makes with this option.
   * The worker must give it too, in its first turn. Default false.
   */
  wake?: boolean;
  /**
   * What happens as long as no host was ever reached. `error` (the default): calls are refused.
   * `browser`: the browser's own areas serve, and the data moves to the host once it is there. It needs
   * `unlimitedStorage` for more than 10 MiB, and from then on these areas belong to the stub.
   */
  fallback?: 'error' | 'browser';
  /** How site caches are kept. */
  siteCache?: SiteCacheOptions;
  /** What `keep.settings.getAll` reads. */
  settings?: SettingsOptions;
  /**
   * How the text of an entry begins that is an attachment, for the search and the names of sessions;
   * an entry with `attachId` is one in any case.
   */
  attachmentPrefix?: string;
  /** How requests are made, where it differs from the host's defaults. */
  requests?: RequestOptions;
}

export interface SiteCacheOptions {
  /**
   * Keeps a copy of every record by its URL in the local area too (not of private windows), so that
   * it is found again after the browser was restarted. Default false.
   */
  byUrl?: boolean;
  /**
   * Milliseconds after the last use after which the tab listeners are taken off, at most 20,000;
   * default 15,000. They go with the port in any case.
   */
  listen?: number;
  /** Messages of the extension's own content scripts that `fromMessage` takes, by their type. */
  messages?: SiteMessageKinds;
}

/** By `message.type`: the source, and the field of the message that holds the data. */
export type SiteMessageKinds = Record<string, { source: string; field: string }>;

/** What the stub looks at of `chrome.runtime.MessageSender`. */
export interface SiteSender {
  tab?: { id?: number | undefined; url?: string | undefined; incognito?: boolean | undefined } | undefined;
  url?: string | undefined;
  frameId?: number | undefined;
  documentLifecycle?: string | undefined;
}

/** What a page told about itself. */
export interface SiteContent {
  /** Which part of the extension understands the data, for instance `youtube`. */
  source: string;
  /** The page. */
  url: string;
  data: any;
}

export interface SiteRecord extends SiteContent {
  /** When it was stored: milliseconds since 1970. */
  time: number;
}

export interface SiteLookUp {
  record: SiteRecord | null;
  /**
   * Why there is no record. `none`: the tab has none. `closed`: there is no such tab. `otherPage`: the
   * one it has is of another page. `unavailable`: the host could not be asked; see `error`.
   */
  reason?: 'none' | 'closed' | 'otherPage' | 'unavailable';
  error?: SidekeepError;
  /** The record is a copy that was kept by URL. */
  copy?: true;
}

export interface CacheOptions {
  /** Makes the value anew; gets the old one, or undefined. */
  refresh(old: any): unknown;
  /** Whether a kept value is still good; one that is not is never handed out. */
  validate?(data: any, kept: { data: any; time: number }): boolean | Promise<boolean>;
  /** Milliseconds for which a value is fresh; default: for ever. */
  maxAge?: number;
  /** Milliseconds more in which it is handed out while it is renewed; default 0. */
  staleWhileRevalidate?: number;
  /** With the id of a tab: the page, and the source of the record. */
  url?: string;
  source?: string;
}

export interface CachedValue {
  data: any;
  /** When it was made: milliseconds since 1970. */
  time: number;
  /** `stale`: it is being renewed. `renewed`: it was made for this call. */
  state: 'fresh' | 'stale' | 'renewed';
}

/** What pages told about themselves, one record per tab, gone with the tab and with the browser run. */
export interface SiteCache {
  /**
   * Stores the record of a tab in place of the one before. `stored` is false if the tab was closed
   * meanwhile; `evicted` names tabs whose records had to make room (at most 300 records of 5,000,000
   * bytes together are kept, the oldest go first).
   */
  put(content: SiteContent & { tabId: number }): Promise<{ stored: boolean; evicted: number[] }>;
  /**
   * The record of a tab that lives, at most 24 hours old; null if there is none. With `url` only if it
   * is of that page; `true` stands for the page that the tab shows now, and rejects with `forbidden`
   * where the extension may not know that. Without `url` it is compared with the page that the tab
   * shows where the extension may know it.
   */
  get(tabId: number, which?: { url?: string | true }): Promise<SiteRecord | null>;
  /** As `get`, and says why there is no record. */
  lookUp(tabId: number, which?: { url?: string | true }): Promise<SiteLookUp>;
  /** Removes the records of tabs. */
  purge(tabIds: number | number[]): Promise<void>;
  /**
   * Takes a message of a content script, with the sender that `runtime.onMessage` gives; tab and page
   * are the sender's. False at once if it is no site message, or the sender is no tab; else it
   * resolves whether the record was stored, and never rejects.
   */
  fromMessage(message: unknown, sender: SiteSender): false | Promise<boolean>;
  /** Removes the copies by URL of these pages, or of all. */
  forgetPages(urls?: string[]): Promise<void>;
  /**
   * A value that is made anew when it is too old or no longer valid: of a tab's page (with `url`), or
   * under a name of its own for this browser run. Renewals of one value are joined, whichever
   * contexts ask.
   */
  cached(key: number | string, options: CacheOptions): Promise<CachedValue>;
}

/** What became of the items that one call changed, by key, in byte order. */
export type Changes = Record<string, { newValue?: any; oldValue?: any }>;

/** A change of one value in one step. With `expect` only if that is its present revision. */
export type Update = { expect?: number } & (
  | { /** Is added; a missing value counts as 0. */ increment: number }
  | { /** Is put at the end of an array; a missing value counts as []. */ push: unknown }
  | { /** Members that are set in an object; a missing value counts as {}. */ merge: object }
  | { /** Takes the place of the value. */ value: unknown }
);

export interface UpdateResult {
  /** The new value, after `increment`. */
  value?: number;
  /** The revision of the value, to be expected by the next change. */
  revision: number;
}

export type AccessLevelName = 'TRUSTED_CONTEXTS' | 'TRUSTED_AND_UNTRUSTED_CONTEXTS';

/**
 * An area of storage, as one of `chrome.storage`. Each method takes a callback in place of returning a
 * promise; `chrome.runtime.lastError` is there for the length of it if the call failed.
 */
export interface StorageArea {
  /**
   * What is stored under the keys. `null` or nothing: everything. An object gives keys and their
   * defaults, into which stored objects are merged at every level.
   */
  get(keys?: null | string | string[] | object): Promise<Record<string, any>>;
  get(callback: (items: Record<string, any>) => void): void;
  get(keys: undefined | null | string | string[] | object, callback: (items: Record<string, any>) => void): void;
  /** Every key, in byte order. */
  getKeys(): Promise<string[]>;
  getKeys(callback: (keys: string[]) => void): void;
  /** Stores values; fulfilled when they are on disk. All of them or none. */
  set(items: object): Promise<void>;
  set(items: object, callback: () => void): void;
  /**
   * Stores values if the revisions of the keys that are named are the expected ones (0: the key does
   * not exist); else it rejects with `conflict`, and `data.revisions` has the present ones.
   */
  set(items: object, condition: { expect: Record<string, number> }): Promise<{ revisions: Record<string, number> }>;
  remove(keys: string | string[]): Promise<void>;
  remove(keys: string | string[], callback: () => void): void;
  clear(): Promise<void>;
  clear(callback: () => void): void;
  /** Bytes of the keys in UTF-8 and of the values as JSON text. */
  getBytesInUse(keys?: null | string | string[]): Promise<number>;
  getBytesInUse(callback: (bytes: number) => void): void;
  getBytesInUse(keys: undefined | null | string | string[], callback: (bytes: number) => void): void;
  /**
   * Whether content scripts may use the area, through the relay; it is remembered for good. At first
   * `local` is open to them and `session` is not.
   */
  setAccessLevel(options: { accessLevel: AccessLevelName }): Promise<void>;
  setAccessLevel(options: { accessLevel: AccessLevelName }, callback: () => void): void;
  /** 10,485,760, as in Chromium; it says nothing of what is enforced. */
  QUOTA_BYTES: number;
  /**
   * Tells what changed in this area, whichever context or process changed it: one event per call,
   * before the promise of the call that caused it settles, in the same order everywhere.
   */
  readonly onChanged: ListenerSet<[Changes]>;
  /**
   * Changes one value in one step, whoever else changes it at the same time. Rejects with `conflict`
   * if the value has another type, or another revision than `expect` says.
   */
  update(key: string, change: Update): Promise<UpdateResult>;
  /** Values with their revisions, of one moment; 0 for a key that was named and does not exist. */
  getWithRevisions(
    keys?: null | string | string[],
  ): Promise<{ items: Record<string, any>; revisions: Record<string, number> }>;
}

/**
 * `idle`: no port, the next call opens one. `connecting`: opened, the host has not answered yet.
 * `waiting`: calls wait for the next attempt. `resting`: attempts failed; calls are refused at once
 * until the next attempt may be made, at most 15 s. `closed`: by `keep.close()`, or for good since the
 * extension was reloaded or removed under this context.
 */
export type LinkState = 'idle' | 'connecting' | 'connected' | 'waiting' | 'resting' | 'closed';

export interface Status {
  readonly state: LinkState;
  /** The state, or why it is so, in one sentence. */
  readonly reason: string;
  /** What to do about it, where there is something to do. */
  readonly next: string | null;
  /** The kind of the error behind the state, null if there is none. */
  readonly kind: ErrorKind | null;
  /** What the browser itself said when the port last ended; '' if nothing. */
  readonly lastError: string;
  /** Ports opened since the host last answered. */
  readonly attempts: number;
  /** The host that answered last. */
  readonly host: { readonly name: string; readonly version: string; readonly pid: number } | null;
  /** Epoch of its store. */
  readonly store: string | number | null;
  readonly features: readonly string[];
  /** What the host wants a person to know. */
  readonly notices: readonly Notice[];
  /** What became of `fallback: 'browser'`; null without it. */
  readonly fallback: FallbackStatus | null;
}

/** How far a check is: `done` of `of` steps, which take about the same time each. */
export interface VerifyProgress {
  readonly done: number;
  readonly of: number;
}

/** What a check of the store found. */
export interface VerifyReport {
  /** Whether there are no problems. */
  ok: boolean;
  /** How many of each were looked at. */
  checked: {
    items: number;
    lists: number;
    entries: number;
    records: number;
    blobs: number;
    blobBytes: number;
    journal: number;
  };
  /** At most 100. */
  problems: VerifyProblem[];
  /** Problems beyond those. */
  more: number;
}

export interface VerifyProblem {
  /** One word; hosts to come may have others. The table is in docs/protocol.md. */
  code: 'damaged' | 'missing' | 'count' | 'orphan' | 'index' | 'order' | 'unreadable' | (string & {});
  /** One sentence. */
  text: string;
  /** The beginning of the key of the item or list. */
  item?: string;
  /** The number of the record. */
  record?: number;
  /** The beginning of the hash of the content. */
  blob?: string;
}

export interface FallbackStatus {
  /** Where the data is; null until the first call, or listener, had the stub look. */
  readonly serves: 'browser' | 'host' | null;
  /**
   * `waiting`: for a host. `moving`: `done` items of `of`. `failed`: a host was reached, but the data
   * could not be moved, and `reason` says why; it is tried again. `moved`: for good.
   */
  readonly state: 'waiting' | 'moving' | 'failed' | 'moved';
  readonly done: number;
  readonly of: number;
  readonly reason: string | null;
  readonly next: string | null;
}

/** What the host wants a person to know; it is told again until it is acknowledged. */
export interface Notice {
  readonly id: string;
  /**
   * `interruptedTurn`: an answer was cut off; `turnId`, `entryId` and `conversation` say which.
   * `unsettledTurns`: some were, and could not be looked after; the next hello tries again.
   */
  readonly kind: string;
  /** One sentence. */
  readonly text: string;
  readonly turnId?: string;
  /** The question. */
  readonly entryId?: string;
  readonly conversation?: string;
}

/** What the host answers to `host.hello`. */
export interface HelloResult {
  protocol: number;
  host: { name: string; version: string; pid: number };
  features: string[];
  store: string | number | null;
  seq: Record<string, number>;
  conversation?: string;
  parts?: { window: number };
  notices: Notice[];
}

export interface ListenerSet<Args extends unknown[]> {
  addListener(listener: (...args: Args) => void): void;
  removeListener(listener: (...args: Args) => void): void;
  hasListener(listener: (...args: Args) => void): boolean;
  hasListeners(): boolean;
}

/** The areas in the shape of `chrome.storage`. */
export interface AreaStorage {
  /** As `chrome.storage.session`: gone when the browser ends or the extension is reloaded. */
  readonly session: StorageArea;
  readonly local: StorageArea;
  /** Tells what changed in any area; after the listeners of the area itself. */
  readonly onChanged: ListenerSet<[changes: Changes, area: 'local' | 'session']>;
  readonly AccessLevel: { readonly [Name in AccessLevelName]: Name };
}

/** A link to the host. */
export interface Keep {
  readonly storage: AreaStorage;
  /**
   * An object in the place of `chrome`, for libraries: `storage` has the areas of the stub beside the
   * browser's own `sync` and `managed`, everything else is the browser's own. Always the same object.
   */
  asChrome(): any;
  /** Small values of the local area, read together over their defaults. */
  readonly settings: Settings;
  /** The live conversation, entry by entry. */
  readonly history: History;
  /** Conversations that were saved. */
  readonly sessions: Sessions;
  /** Pages and texts that were put into the live conversation. */
  readonly attachments: Attachments;
  /** Questions to a model, and what became of them. */
  readonly turns: Turns;
  /** Pictures of entries. */
  readonly images: Images;
  /** What was removed and can be brought back. */
  readonly trash: Trash;
  /**
   * Calls any method of the host. Objects are converted as those of `storage.set` are.
   * @throws TypeError (at once) if an argument has the wrong type
   */
  call(method: string, params?: object): Promise<any>;
  /** What pages told about themselves. */
  readonly siteCache: SiteCache;
  /**
   * Keeps the worker awake until the work has ended, at most `most` milliseconds (600,000 unless
   * given); settles as the work does. Nothing else in the stub keeps it awake longer than `idle`.
   */
  duringTurn<T>(work: Promise<T> | (() => T | Promise<T>), options?: { most?: number }): Promise<T>;
  /** The state of the link, in words. */
  status(): Status;
  /**
   * Checks everything that the host keeps: checksums, references, counts, indexes. Nothing is changed, and
   * other calls are answered meanwhile. A big store takes a while.
   */
  verify(options?: { onProgress?: (progress: VerifyProgress) => void }): Promise<VerifyReport>;
  /** Tells of every change of the status. */
  readonly onStatus: ListenerSet<[Status]>;
  /** What the host has to tell and nobody has acknowledged; asks it if it was not asked yet. */
  notices(): Promise<readonly Notice[]>;
  /** Tells of each notice once, as soon as a host was reached. Listening opens no port. */
  readonly onNotice: ListenerSet<[Notice]>;
  /** The notice of this id need not be told again. */
  acknowledge(id: string): Promise<void>;
  /**
   * Tells that changes of an area were missed for good (the file was restored, or the journal no
   * longer has them): read again what you keep of it.
   */
  readonly onGap: ListenerSet<[{ readonly area: 'local' | 'session' }]>;
  /** Tries now, whatever failed before; rejects with the reason if the host does not answer. */
  retry(): Promise<Status>;
  /** Takes no more calls, waits for those that are open, and closes the port. */
  close(): Promise<void>;
}

/** Makes a link to the host. It opens its port at the first call. */
export function connect(options?: ConnectOptions): Keep;
