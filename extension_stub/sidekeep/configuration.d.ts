/**
 * The types of settings.
 */

export interface SettingsOptions {
  /**
   * Every setting that has a default. `history` may be among them: its default is given and never
   * asked for.
   */
  defaults: Record<string, any>;
  /** Keys of settings that have no default: absent unless they are stored. */
  options?: string[];
  /**
   * Adjusts what `getAll` gives, at the time of reading; nothing of it is stored. Gets the settings,
   * what is stored, and the defaults, which are its own to change. What it returns takes the place of
   * the settings; nothing: they stay, with what it did to them.
   */
  merge?(
    settings: Record<string, any>,
    stored: Record<string, any>,
    defaults: Record<string, any>,
  ): Record<string, any> | void;
}

/** Settings in the local area. */
export interface Settings {
  /** The value of one key; undefined if there is none. Defaults are not looked at. */
  get(key: string): Promise<any>;
  /** What is stored under the keys; an object gives keys and their defaults. */
  get(keys: string[] | object): Promise<Record<string, any>>;
  set(key: string, value: unknown): Promise<void>;
  /** All of them in one change. */
  set(items: object): Promise<void>;
  remove(keys: string | string[]): Promise<void>;
  /**
   * Every setting, stored ones over the defaults at every level of plain objects; an array or null
   * that is stored takes the place of its default. One call that asks for the keys of the defaults
   * (without `history`) and the option keys, and for nothing else. A new object each time.
   */
  getAll(): Promise<Record<string, any>>;
  /** Stores `activeProvider` and `activeModel` in one change. */
  setActiveProvider(name: string, model?: string | null): Promise<void>;
  /** Stores `contextMode`. */
  setContextMode(mode: string): Promise<void>;
}
