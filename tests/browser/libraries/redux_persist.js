/** `redux-persist-webextension-storage`: a Redux state that is kept and brought back. */

import { legacy_createStore as createStore } from 'redux';
import { createMigrate, persistReducer, persistStore } from 'redux-persist';
import { localStorage } from 'redux-persist-webextension-storage';

const empty = { notes: [], draft: '' };

function reducer(state = empty, { type, note, draft } = {}) {
  if (type === 'add') return { ...state, notes: [...state.notes, note] };
  if (type === 'draft') return { ...state, draft };
  return state;
}

const migrations = {
  2: (state) => ({ ...state, notes: state.notes.map((text) => ({ text })) }),
};

/** Makes a store and waits until what was kept is in it. */
export async function open(version = 1) {
  const migrate = createMigrate(migrations, { debug: false });
  const config = { key: 'panel', storage: localStorage, version, migrate, blacklist: ['draft'] };
  const store = createStore(persistReducer(config, reducer));
  const persistor = await new Promise((done) => {
    const opened = persistStore(store, null, () => done(opened));
  });
  Object.assign(globalThis, { store, persistor });
  return store.getState();
}

export async function dispatch(action) {
  store.dispatch(action);
  await persistor.flush();
}

export const purge = () => persistor.purge();

export const tell = (value) => localStorage.setItem('shared', value);

export const read = () => localStorage.getItem('shared');

export async function remove() {
  await localStorage.removeItem('shared');
  return localStorage.getItem('shared');
}
