// @ts-check
/**
 * A panel that talks to a model and keeps everything in the host: an example of how the calls of the
 * stub go together. No state of the conversation is kept here; what is shown is what is stored.
 */

import { connect, SidekeepError } from '../../sidekeep/index.js';
import { ask, summaries } from './asking.js';
import { Bubbles } from './bubbles.js';
import { Composer } from './composer.js';
import { Drawer } from './drawer.js';
import { find } from './page.js';

/** @typedef {import('./model.js').ModelSettings} ModelSettings */

const DEFAULTS = { endpoint: 'http://127.0.0.1:8080/v1', model: '', apiKey: '', systemPrompt: '' };
const PAGE = 100;

const keep = connect({ settings: { defaults: DEFAULTS }, quiet: ['history', 'savedSessions', 'session_*'] });
Object.assign(globalThis, { keep }); // for the developer tools
const modelSettings = async () => /** @type {ModelSettings} */ (await keep.settings.getAll());

// --- saying what happened --------------------------------------------------------------------------

/** @type {(() => Promise<unknown>) | null} */
let undo = null;

/**
 * @param {string} text
 * @param {(() => Promise<unknown>) | null} [back] brings back what was removed
 */
function say(text, back = null) {
  find('#state').textContent = text;
  undo = back;
  find('#undo').hidden = back === null;
}

/** @param {unknown} error */
function tell(error) {
  const next = error instanceof SidekeepError && error.next ? ` ${error.next}` : '';
  say(`${error instanceof Error ? error.message : error}${next}`);
}

/** @param {() => Promise<unknown>} work */
const run = (work) => work().catch(tell);

// --- what is shown ---------------------------------------------------------------------------------

const page = find('main');
let shown = PAGE;
let wanted = false;
/** @type {Promise<unknown> | null} */
let reading = null;

/** Shows the newest entries as they are stored; asked for while it reads, it reads once more. */
function refresh() {
  wanted = true;
  reading ??= run(async () => {
    while (wanted) {
      wanted = false;
      const listed = await keep.history.list({ offset: -shown, pixels: 'thumbnail' });
      const atEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 40;
      bubbles.show(listed);
      if (atEnd) page.scrollTop = page.scrollHeight;
      find('#earlier').hidden = listed.total <= shown;
    }
  }).finally(() => {
    reading = null;
  });
}

const bubbles = new Bubbles(keep, find('#bubbles'), {
  askAgain: (id) => send((options) => keep.turns.regenerate(id, options)),
  edit: (id, text) => composer.edit(id, text),
  remove: (which) => run(async () => {
    const gone = typeof which === 'string' ? await keep.history.remove(which) : await keep.attachments.undo(which.attachId);
    const token = gone.undo;
    if (token !== null) say('Removed.', () => keep.history.undo(token));
  }),
  open: (url) => run(async () => {
    /** @type {HTMLDialogElement} */
    const dialog = find('#picture');
    /** @type {HTMLImageElement} */ (find('#picture img')).src = await url;
    dialog.showModal();
  }),
});

// --- asking ----------------------------------------------------------------------------------------

/** @type {AbortController | null} */
let asking = null;

/**
 * @param {(options: import('../../sidekeep/index.d.ts').TurnOptions) => Promise<import('../../sidekeep/index.d.ts').Turn>} begin
 * @param {() => void} [begun]
 */
async function send(begin, begun = () => {}) {
  if (asking) return;
  asking = new AbortController();
  const { signal } = asking;
  const live = find('#live');
  const onText = (/** @type {string} */ text) => {
    live.hidden = false;
    live.textContent = text;
    live.scrollIntoView({ block: 'end' });
  };
  find('#send').hidden = true;
  find('#stop').hidden = false;
  say('');
  try {
    const settings = await modelSettings();
    await ask(settings, (options) => begin(options).then((turn) => (begun(), turn)), { signal, onText, onNote: say });
  } catch (error) {
    if (signal.aborted) say('Stopped.');
    else tell(error);
  } finally {
    asking = null;
    live.hidden = true;
    find('#send').hidden = false;
    find('#stop').hidden = true;
  }
}

const composer = new Composer(({ text, images, editing }) => {
  const pictures = images.length > 0 ? { images } : {};
  const begin = (/** @type {import('../../sidekeep/index.d.ts').TurnOptions} */ options) =>
    editing === null
      ? keep.turns.begin({ text, ...pictures, ...options })
      : keep.turns.edit(editing, { text, ...pictures, ...options });
  send(begin, () => composer.clear());
}, tell);

// --- attaching and settings ------------------------------------------------------------------------

/**
 * Opens a dialog with a form and gives its fields if it is not cancelled.
 * @param {string} id
 * @param {Record<string, string>} values
 * @param {(fields: any) => Promise<unknown>} done
 */
function fillIn(id, values, done) {
  /** @type {HTMLDialogElement} */
  const dialog = find(id);
  const form = /** @type {HTMLFormElement} */ (dialog.querySelector('form'));
  form.reset();
  for (const [name, value] of Object.entries(values)) {
    /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = value;
  }
  dialog.returnValue = '';
  dialog.addEventListener('close', () => {
    if (dialog.returnValue) run(() => done(Object.fromEntries(new FormData(form))));
  }, { once: true });
  dialog.showModal();
}

find('#open-attach').addEventListener('click', () =>
  fillIn('#attach', {}, async ({ url, title, text }) => {
    const { attachId, condense } = await keep.attachments.add({ url, title, text, mode: 'text' });
    const back = async () => void (await keep.attachments.undo(attachId));
    say('Attached.', back);
    if (condense === null) return;
    say(`It is long (${condense.chars} characters); a summary is being made.`, back);
    await keep.attachments.condense(attachId, { summarize: summaries(await modelSettings()) });
    say('Attached and condensed; its text is kept.', back);
  }),
);
find('#open-settings').addEventListener('click', () =>
  run(async () => fillIn('#settings', { ...(await modelSettings()) }, (fields) => keep.settings.set(fields))),
);

// --- the rest --------------------------------------------------------------------------------------

new Drawer(keep, run, say);
find('#new').addEventListener('click', () => run(async () => {
  const id = await keep.settings.get('activeSessionId');
  await keep.sessions.save(id ? { id } : {});
  await keep.history.clear();
  composer.clear();
  say('');
}));
find('#stop').addEventListener('click', () => asking?.abort());
find('#undo').addEventListener('click', () => {
  const back = undo;
  say('');
  if (back) run(back);
});
find('#earlier').addEventListener('click', () => {
  shown += PAGE;
  refresh();
});
keep.history.onChanged.addListener(refresh);
keep.onNotice.addListener(({ id, text }) => {
  say(text);
  run(() => keep.acknowledge(id)); // the entry itself stays marked, with a button to retry
});
refresh();
