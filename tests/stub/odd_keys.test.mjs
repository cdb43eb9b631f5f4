/** Keys that every object inherits something under: `constructor`, `valueOf`, `__proto__` and the like. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { Life, restoreTimers, sleep, World } from './fake_areas.mjs';

const INHERITED = Object.getOwnPropertyNames(Object.prototype);

/** @type {Life | undefined} */
let life;
afterEach(async () => {
  await life?.end();
  restoreTimers();
});

const item = (key, value) => Object.fromEntries([[key, value]]);
const here = () => connect({ fallback: 'browser', timeout: 2000 });

/** A context served by the browser, and one served by the host. */
async function servedBy(place) {
  const world = new World();
  life = new Life(world);
  life.installed = place === 'host';
  const keep = here();
  if (place === 'host') await keep.retry();
  else await keep.storage.local.get('x');
  assert.equal(keep.status().fallback.serves, place);
  return { world, keep };
}

for (const key of INHERITED) {
  test(`the data moves to the host with a key ${key}, whatever its value and whatever the host has`, async () => {
    for (const value of [7, null, 'text', [1], { a: 1 }, item(key, item(key, 1))]) {
      for (const before of [undefined, value, 'of the host']) {
        for (const area of ['local', 'session']) {
          const world = new World();
          world.real[area].set(key, value).set('plain', 1);
          if (before !== undefined) world.store.put(area, key, before);
          life = new Life(world);
          life.installed = true;
          const keep = here();
          await keep.retry();
          const replaced = before === 'of the host' ? { [`sidekeep:replaced:${key}`]: before } : {};
          assert.deepEqual(world.store.plain(area), { plain: 1, ...item(key, value), ...replaced });
          assert.deepEqual(await keep.storage[area].get(key), item(key, value));
          if (area === 'local') assert.deepEqual(world.originals(), {});
          life.browser.assertSound();
          await life.end();
        }
      }
    }
  });

  test(`a key ${key} that is removed or written while the data moves is the same with the host`, async () => {
    for (const removed of [true, false]) {
      const world = new World();
      world.real.local.set(key, 1);
      for (let extra = 0; extra < 60; extra += 1) world.real.local.set(`extra${extra}`, extra);
      life = new Life(world);
      const other = here().storage.local;
      await other.get(key);
      life.installed = true;
      const moving = here().retry();
      for (let n = 0; n < 400 && !world.store.areas.local.has(key); n += 1) await new Promise((done) => setImmediate(done));
      if (removed) await other.remove(key);
      else await other.set(item(key, 2));
      await moving;
      assert.deepEqual(await other.get(key), removed ? {} : item(key, 2));
      const { [key]: _, ...kept } = world.store.plain();
      assert.equal(Object.hasOwn(world.store.plain(), key), !removed);
      assert.equal(Object.keys(kept).filter((name) => name.startsWith('extra')).length, 60);
      await life.end();
    }
  });

  for (const place of ['browser', 'host']) {
    test(`a key ${key} is set, read, updated, told and removed like any other, served by the ${place}`, async () => {
      const { keep } = await servedBy(place);
      for (const area of [keep.storage.local, keep.storage.session]) {
        const heard = [];
        const listener = (changes) => heard.push(changes);
        area.onChanged.addListener(listener);
        assert.deepEqual(await area.get(key), {});
        assert.deepEqual(await area.get(item(key, { x: 1 })), item(key, { x: 1 }));
        assert.equal((await area.update(key, { increment: 2 })).value, 2);
        assert.equal((await area.update(key, { increment: 1 })).value, 3);
        await area.set(item(key, { b: 2 }));
        assert.deepEqual(await area.get([key, 'none']), item(key, { b: 2 }));
        assert.deepEqual(await area.get(item(key, { a: 1 })), item(key, { a: 1, b: 2 }));
        assert.deepEqual(await area.getKeys(), [key]);
        await area.remove(key);
        assert.deepEqual(await area.get(), {});
        await sleep(5);
        area.onChanged.removeListener(listener);
        assert.deepEqual(heard, [
          item(key, { newValue: 2 }),
          item(key, { newValue: 3, oldValue: 2 }),
          item(key, { newValue: { b: 2 }, oldValue: 3 }),
          item(key, { oldValue: { b: 2 } }),
        ]);
      }
    });
  }
}
