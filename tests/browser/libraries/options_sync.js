/** `webext-options-sync`: options that follow a form, defaults, migrations in the worker. */

import OptionsSync from 'webext-options-sync';

const defaults = { color: 'blue', size: 12, sound: true, name: '' };

export const heard = [];

// Its default area is sync, which stays the browser's own.
const made = (more = {}) => new OptionsSync({ defaults, storageType: 'local', logging: false, ...more });

const shared = () => made({ storageName: 'shared', defaults: { value: '' } });

export const hear = () => shared().onChanged(({ value }) => heard.push(value));

export const tell = (value) => shared().set({ value });

export const read = async () => (await shared().getAll()).value;

export const getAll = () => made().getAll();

export const set = (options) => made().set(options);

export const setAll = (options) => made().setAll(options);

/** Shows a form of the options, which saves what a person enters. */
export async function showForm() {
  document.body.innerHTML = `
    <form>
      <input name="name"> <input name="size" type="number">
      <input name="sound" type="checkbox">
      <select name="color"><option>blue</option><option>green</option></select>
    </form>`;
  globalThis.saved = 0;
  document.addEventListener('options-sync:save-success', () => (saved += 1));
  globalThis.form = made();
  await form.syncForm('form');
}

/** Brings options of a former version along; to be called in the worker. */
export const migrate = () =>
  made({
    migrations: [
      (options) => {
        options.color = options.colour ?? options.color;
      },
      OptionsSync.migrations.removeUnused,
    ],
  }).getAll();
