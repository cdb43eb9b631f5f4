import * as store from './store.js';

// A person's day with Notes; what it says must not depend on where the notes are kept.
globalThis.day = async () => {
  const said = [];
  const say = (what, value) => said.push([what, value]);
  const heard = [];
  const pause = () => new Promise((done) => setTimeout(done, 150));
  const stop = store.watch((text) => heard.push(text));
  const failing = (promise) => promise.then(() => 'done', (error) => `${error.constructor === Error} ${error.message}`);

  say('settings', await store.settings());
  say('changed', await store.changeSettings({ theme: 'dark', editor: { fontSize: 18 } }));
  say('again', await store.settings());
  const picture = `data:image/png;base64,${'iVBORw0KGgo'.repeat(4000)}`;
  const ids = [];
  ids.push(await store.addNote('Buy bread and Käse', { tags: ['shop', 'food'] }));
  ids.push(await store.addNote('Write to 世界 about bread', { tags: ['mail'], pinned: true }));
  ids.push(await store.addNote('A picture 😀', { picture }));
  ids.push(await store.addNote('Bread again', { tags: ['food'] }));
  say('ids', ids);
  await store.editNote(ids[0], 'Buy bread, butter and Käse');
  await store.editNote(ids[0], 'Buy nothing');
  say('undone', (await store.undoEdit(ids[0])).text);
  await store.tagNote(ids[3], ['food', 'old']);
  await store.pin(ids[3]);
  say('sorted', (await store.sortedNotes()).map(({ text }) => text));
  say('food', (await store.notesWithTag('food')).map(({ id }) => id));
  say('cloud', await store.tagCloud());
  say('search', await store.search('bread butter'));
  say('picture', (await store.note(ids[2])).picture === picture);
  await store.removeNotes([ids[1]]);
  say('removed', await failing(store.note(ids[1])));
  say('cloud later', await store.tagCloud());
  say('journal', await store.journal());
  await store.saveDraft('new', 'half a thought');
  await store.saveDraft('reply', '');
  say('drafts', [await store.draft('new'), await store.draft('reply'), await store.draft('none')]);
  say('dropped', await store.dropDrafts());
  const exported = await store.exportAll();
  say('export', exported.length);
  await store.importAll(exported);
  say('imported', (await store.exportAll()) === exported);
  say('no import', await failing(store.importAll('{"version":2}')));
  say('reset', await store.resetSettings());
  say('wrong', await failing(Promise.resolve().then(() => store.draft(Symbol('s')))));
  let thrown = '';
  try {
    chrome.storage.local.get(5);
  } catch (error) {
    thrown = `${error.name} ${error.message}`;
  }
  say('thrown', thrown);
  await pause();
  const { all, keys } = await store.size();
  say('size', [all - (await ownBytes()), keys]);
  await pause();
  say('count', await chrome.runtime.sendMessage('count'));
  stop();
  say('heard', heard);
  return said;
};

/** What the stub itself keeps in the browser's local area; nothing where that is not the one in use. */
async function ownBytes() {
  const keys = (await chrome.storage.local.getKeys()).filter((key) => key.startsWith('sidekeep:'));
  return chrome.storage.local.getBytesInUse(keys);
}
