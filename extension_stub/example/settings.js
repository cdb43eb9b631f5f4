// @ts-check
/**
 * A worked example of `keep.settings`: the settings of an extension that talks to models and agents.
 *
 *     import { connect } from '../sidekeep/index.js';
 *     import { SETTINGS } from './settings.js';
 *     const keep = connect({ settings: SETTINGS });
 *     const settings = await keep.settings.getAll();
 *
 * Rules of this module:
 * - Only agents ship by default: a model that a person deleted must not come back as a default.
 * - What is adjusted when settings are read (former labels, vendors that are gone) is not written back.
 */

/** @typedef {import('../sidekeep/index.d.ts').SettingsOptions} SettingsOptions */

/** What the bridge is called now, and what it was called by default before. */
export const BRIDGE_LABEL = 'Bridge (Codex, Claude Code)';
const FORMER_BRIDGE_LABELS = ['Agent Bridge', 'Agent Bridge (Codex / Claude Code)'];

/** Vendors of speech recognition that the extension knows. */
const ASR_VENDORS = ['ark', 'qwen'];
/** What belongs to one vendor and means nothing to another. */
const ASR_CONNECTION = ['provider', 'apiKey', 'baseUrl', 'model', 'videoModel'];

/**
 * @param {string} alias
 * @param {string} kind the flag that tells which agent it is
 */
function agent(alias, kind) {
  return {
    type: 'agent',
    alias,
    baseUrl: '',
    apiKey: '',
    model: '',
    stream: true,
    isHermes: kind === 'isHermes',
    [kind]: true,
    apiStyle: 'chat',
    temperature: null,
    maxTokens: 0,
  };
}

export const DEFAULTS = {
  providers: {
    hermes: agent('Hermes', 'isHermes'),
    squilla: agent('Squilla', 'isSquilla'),
    opencode: agent('OpenCode', 'isOpencode'),
    bridge: agent(BRIDGE_LABEL, 'isBridge'),
  },
  activeProvider: 'hermes',
  activeModel: '',
  pingStates: {},
  history: [], // given as it stands here: getAll never reads the conversation
  contextMode: 'auto',
  maxTextChars: 0,
  autoSummarizeAttachments: true,
  summarizeThresholdChars: 0, // 0: 100,000
  systemPrompt: 'You are a helpful assistant.',
  asr: {
    enabled: false,
    provider: 'qwen',
    apiKey: '',
    baseUrl: '',
    model: '',
    videoModel: '',
    language: 'zh',
    hotwords: '',
    format: 'audio/x-m4a',
    timeoutMs: 150_000,
    subtitleSource: 'original',
  },
  replyLanguage: '',
  llmsTxtEnabled: true,
  deepExtractEnabled: true,
};

/** Settings without a default: absent unless the person chose something. */
export const OPTION_KEYS = ['fontSize', 'sendShortcut', 'thoughtAutoCollapse'];

/** @type {NonNullable<SettingsOptions['merge']>} */
function adjust(settings, _stored, defaults) {
  const bridge = settings['providers']?.bridge;
  if (FORMER_BRIDGE_LABELS.includes(bridge?.alias)) bridge.alias = BRIDGE_LABEL;
  const { asr } = settings;
  if (asr?.provider && !ASR_VENDORS.includes(asr.provider)) {
    for (const field of ASR_CONNECTION) asr[field] = defaults['asr'][field];
  }
}

/** @type {SettingsOptions} */
export const SETTINGS = { defaults: DEFAULTS, options: OPTION_KEYS, merge: adjust };
