// Everything that Notes keeps: notes, tags, a journal of what was done, settings, and drafts that end with
// the browser. Older parts use callbacks, newer ones promises.

export const DEFAULTS = {
  settings: { theme: 'light', editor: { fontSize: 14, wrap: true, plugins: ['spell'] }, sort: 'changed' },
  order: [],
  tags: {},
};

const JOURNAL_LENGTH = 50;

/** A failed call becomes an Error with the text of lastError. */
function withCallback(area, method, ...args) {
  return new Promise((resolve, reject) => {
    chrome.storage[area][method](...args, (value) => {
      const { lastError } = chrome.runtime;
      if (lastError) reject(new Error(lastError.message));
      else resolve(value);
    });
  });
}

// --- settings ------------------------------------------------------------------------------

export async function settings() {
  const { settings: stored } = await chrome.storage.local.get({ settings: DEFAULTS.settings });
  return stored;
}

export async function changeSettings(change) {
  const present = await settings();
  const merged = { ...present, ...change, editor: { ...present.editor, ...change.editor } };
  await chrome.storage.local.set({ settings: merged });
  return merged;
}

export async function resetSettings() {
  await chrome.storage.local.remove('settings');
  return settings();
}

// --- notes ---------------------------------------------------------------------------------

const noteKey = (id) => `note:${id}`;

export async function addNote(text, { tags = [], pinned = false, picture } = {}) {
  const { order, nextId = 1 } = await chrome.storage.local.get({ order: DEFAULTS.order, nextId: 1 });
  const note = { id: nextId, text, tags, pinned, picture, changed: Date.parse('2024-05-01') + nextId, versions: [] };
  await chrome.storage.local.set({
    [noteKey(note.id)]: note,
    order: [...order, note.id],
    nextId: nextId + 1,
  });
  await indexTags(note.id, [], tags);
  await log('add', note.id);
  return note.id;
}

export async function note(id) {
  const key = noteKey(id);
  const { [key]: found } = await chrome.storage.local.get(key);
  if (!found) throw new Error(`There is no note ${id}.`);
  return found;
}

export async function allNotes() {
  const { order } = await chrome.storage.local.get({ order: DEFAULTS.order });
  const found = await chrome.storage.local.get(order.map(noteKey));
  return order.map((id) => found[noteKey(id)]).filter(Boolean);
}

export async function sortedNotes() {
  const [notes, { sort }] = await Promise.all([allNotes(), settings()]);
  const by = {
    changed: (a, b) => b.changed - a.changed,
    text: (a, b) => (a.text < b.text ? -1 : 1),
  }[sort];
  return notes.sort((a, b) => Number(b.pinned) - Number(a.pinned) || by(a, b));
}

export async function editNote(id, text) {
  const old = await note(id);
  const edited = { ...old, text, changed: old.changed + 1000, versions: [...old.versions, old.text].slice(-10) };
  await withCallback('local', 'set', { [noteKey(id)]: edited });
  await log('edit', id);
  return edited;
}

export async function undoEdit(id) {
  const present = await note(id);
  const text = present.versions.at(-1);
  if (text === undefined) return present;
  const undone = { ...present, text, versions: present.versions.slice(0, -1) };
  await chrome.storage.local.set({ [noteKey(id)]: undone });
  await log('undo', id);
  return undone;
}

export async function pin(id, pinned = true) {
  const present = await note(id);
  await chrome.storage.local.set({ [noteKey(id)]: { ...present, pinned } });
}

export async function removeNotes(ids) {
  const { order } = await chrome.storage.local.get({ order: DEFAULTS.order });
  for (const id of ids) {
    const { tags } = await note(id);
    await indexTags(id, tags, []);
  }
  await withCallback('local', 'remove', ids.map(noteKey));
  await chrome.storage.local.set({ order: order.filter((id) => !ids.includes(id)) });
  for (const id of ids) await log('remove', id);
}

// --- tags: by tag, the ids of the notes that have it ----------------------------------------

async function indexTags(id, before, after) {
  const { tags } = await withCallback('local', 'get', { tags: DEFAULTS.tags });
  const index = { ...tags };
  for (const tag of before) {
    index[tag] = (index[tag] ?? []).filter((other) => other !== id);
    if (index[tag].length === 0) delete index[tag];
  }
  for (const tag of after) index[tag] = [...(index[tag] ?? []), id];
  await chrome.storage.local.set({ tags: index });
}

export async function tagNote(id, tags) {
  const present = await note(id);
  await indexTags(id, present.tags, tags);
  await chrome.storage.local.set({ [noteKey(id)]: { ...present, tags } });
}

export async function notesWithTag(tag) {
  const { tags } = await chrome.storage.local.get('tags');
  return Promise.all((tags?.[tag] ?? []).map(note));
}

export async function tagCloud() {
  const { tags = {} } = await chrome.storage.local.get('tags');
  return Object.entries(tags).map(([tag, ids]) => `${tag} ${ids.length}`);
}

// --- search --------------------------------------------------------------------------------

export async function search(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const notes = await allNotes();
  return notes
    .map((one) => ({ one, score: wanted.filter((word) => one.text.toLowerCase().includes(word)).length }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.one.id - b.one.id)
    .map(({ one, score }) => ({ id: one.id, score }));
}

// --- journal -------------------------------------------------------------------------------

let logging = Promise.resolve();

/** One at a time, since each reads what the one before wrote. */
function log(what, id) {
  logging = logging.then(async () => {
    const { journal = [] } = await chrome.storage.local.get('journal');
    await chrome.storage.local.set({ journal: [...journal, { what, id }].slice(-JOURNAL_LENGTH) });
  });
  return logging;
}

export async function journal() {
  const { journal: entries = [] } = await withCallback('local', 'get', 'journal');
  return entries.map(({ what, id }) => `${what} ${id}`);
}

// --- drafts --------------------------------------------------------------------------------

export function saveDraft(place, text) {
  return chrome.storage.session.set({ [`draft:${place}`]: { text, length: text.length } });
}

export async function draft(place) {
  const key = `draft:${place}`;
  return (await chrome.storage.session.get(key))[key]?.text ?? '';
}

export async function dropDrafts() {
  const all = await withCallback('session', 'get', null);
  const drafts = Object.keys(all).filter((key) => key.startsWith('draft:'));
  await withCallback('session', 'remove', drafts);
  return drafts;
}

// --- all of it -----------------------------------------------------------------------------

export async function size() {
  const [all, keys] = await Promise.all([
    chrome.storage.local.getBytesInUse(null),
    withCallback('local', 'getBytesInUse', ['order', 'tags', 'settings']),
  ]);
  return { all, keys };
}

export async function exportAll() {
  const { order = [], tags = {}, ...rest } = await chrome.storage.local.get(null);
  const notes = order.map((id) => rest[noteKey(id)]);
  return JSON.stringify({ version: 1, order, tags, notes, settings: rest.settings ?? null });
}

export async function importAll(text) {
  const { version, order, tags, notes, settings: stored } = JSON.parse(text);
  if (version !== 1) throw new Error('This is no export of Notes.');
  await chrome.storage.local.clear();
  await chrome.storage.local.set({
    order,
    tags,
    nextId: Math.max(0, ...order) + 1,
    ...(stored ? { settings: stored } : {}),
    ...Object.fromEntries(notes.map((one) => [noteKey(one.id), one])),
  });
}

// --- changes -------------------------------------------------------------------------------

/** Tells of changes in words, until what is returned is called. */
export function watch(tell) {
  const onLocal = (changes) => {
    for (const [key, { oldValue, newValue }] of Object.entries(changes)) {
      if (!key.startsWith('note:')) continue;
      if (oldValue === undefined) tell(`added ${newValue.text.slice(0, 20)}`);
      else if (newValue === undefined) tell(`removed ${oldValue.text.slice(0, 20)}`);
      else if (oldValue.text !== newValue.text) tell(`edited ${oldValue.text.slice(0, 20)}`);
      else tell(`changed ${newValue.id}`);
    }
  };
  const onAny = (changes, area) => {
    const keys = Object.keys(changes).filter((key) => key !== 'badge'); // the worker's, at its own time
    if (keys.length > 0) tell(`${area}: ${keys.join(' ')}`);
  };
  chrome.storage.local.onChanged.addListener(onLocal);
  chrome.storage.onChanged.addListener(onAny);
  return () => {
    chrome.storage.local.onChanged.removeListener(onLocal);
    chrome.storage.onChanged.removeListener(onAny);
  };
}
