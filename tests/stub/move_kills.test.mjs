/**
 * The move of the data to the host, with the browser killed at every step of it: whatever was acknowledged
 * is there, wherever the truth is at that moment, and the next start brings it to the host once.
 */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { Life, restoreTimers, sleep, World } from './fake_areas.mjs';

const LIMIT = 2000; // steps; a life has some hundreds

let life;
afterEach(async () => {
  await life?.end();
  restoreTimers();
});

const START = {
  count: 1,
  theme: 'dark',
  same: [1],
  history: [{ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' }],
  old: 'value',
};

function world() {
  const made = new World();
  for (const [key, value] of Object.entries(START)) made.real.local.set(key, value);
  made.store.put('local', 'theme', 'light');
  made.store.put('local', 'same', [1]);
  made.store.put('local', 'only', 'here');
  made.store.put('local', 'history', [{ role: 'user', content: 'of the host' }]);
  return made;
}

/** What two contexts write, in turn; each is a function of the model and the same call of an area. */
const WRITES = [
  { set: { count: 2, theme: 'blue' } },
  { set: { fresh: { deep: [1, 2] } } },
  { remove: ['old'] },
  { set: { history: [...START.history, { role: 'user', content: 'c' }] } },
  { set: { old: 'again' } },
  { set: { count: 3 } },
  { remove: ['fresh', 'none'] },
  { set: { fresh: 2, count: 4 } },
  { set: { theme: 'green' } },
  { set: { last: true } },
];

function applied(model, write) {
  const next = { ...model, ...write.set };
  for (const key of write.remove ?? []) delete next[key];
  return next;
}

const written = (area, { set, remove }) => (set ? area.set(set) : area.remove(remove));

/** What the application sees: all items but what the host had and what it keeps of losers. */
const seen = (items) =>
  Object.fromEntries(Object.entries(items).filter(([key]) => key !== 'only' && !key.startsWith('sidekeep:')));

/**
 * Asserts that these are the items after what was acknowledged, or after the write under way too.
 * @param {Record<string, unknown>} items
 */
function assertHolds(items, { model, underWay }, when) {
  const choices = [model, ...(underWay ? [applied(model, underWay)] : [])];
  const found = choices.some((choice) => {
    try {
      assert.deepEqual(seen(items), choice);
      return true;
    } catch {
      return false;
    }
  });
  assert.ok(found, `${when}: ${JSON.stringify(seen(items))} is none of ${JSON.stringify(choices)}`);
}

/** Lives until it is killed, or everything is written and moved. */
async function run(progress) {
  life.installed = isMoved(life.world); // after the move a missing host is an error
  const mine = life;
  const killed = mine.killed.then(() => 'killed');
  const pause = async (milliseconds) => {
    await sleep(milliseconds);
    if (mine.dead) await new Promise(() => {}); // what was killed does not go on
  };
  const [one, two] = [connect({ fallback: 'browser', timeout: 5000 }), connect({ fallback: 'browser', timeout: 5000 })];
  const work = (async () => {
    const [first, second] = [one.storage.local, two.storage.local];
    const next = async (area) => {
      progress.underWay = WRITES[progress.written];
      await written(area, progress.underWay);
      progress.model = applied(progress.model, progress.underWay);
      progress.underWay = null;
      progress.written += 1;
    };
    await next(first);
    mine.installed = true;
    await pause(0);
    const moving = one.retry();
    moving.catch(() => {});
    while (progress.written < WRITES.length) {
      await next(progress.written % 3 ? second : first);
      if (progress.pause > 0) await pause(progress.pause);
    }
    await moving;
    return 'moved';
  })();
  const how = await Promise.race([killed, work]);
  for (let turn = 0; turn < 4; turn += 1) await new Promise((done) => setImmediate(done));
  return how;
}

const isMoved = (place) => place.real.local.get('sidekeep:move')?.state === 'moved';

/** Where the truth is at this moment. */
function truth(place) {
  return isMoved(place) ? place.store.plain() : place.originals();
}

/** The next starts: one without a host, then one with it, then one more. */
async function settle(place, progress, when) {
  assertHolds(truth(place), progress, `${when}, at the kill`);
  if (!isMoved(place)) {
    life = new Life(place);
    assertHolds(await connect({ fallback: 'browser' }).storage.local.get(), progress, `${when}, without a host`);
    await life.end();
  }
  life = new Life(place);
  life.installed = true;
  await connect({ fallback: 'browser' }).retry();
  const items = place.store.plain();
  assertHolds(items, progress, `${when}, moved`);
  assert.deepEqual(place.originals(), {}, when);
  const own = [...place.real.local.keys()].filter((key) => !['sidekeep:profile', 'sidekeep:move'].includes(key));
  assert.deepEqual(own, [], when);
  assert.equal(place.real.local.get('sidekeep:move').left, undefined, when);
  assert.equal(items.only, 'here', when);
  assert.equal(items['sidekeep:replaced:theme'], 'light', when);
  assert.deepEqual(place.store.trash.slice(0, 1), [{ role: 'user', content: 'of the host' }], when);
  const before = { ...place.store.seq };
  await life.end();
  life = new Life(place);
  life.installed = true;
  const again = connect({ fallback: 'browser' });
  await again.retry();
  assertHolds(await again.storage.local.get(), progress, `${when}, a second run`);
  assert.deepEqual(place.store.seq, before, `${when}: a second run is harmless`);
  await life.end();
}

const fresh = (pause) => ({ model: { ...START }, written: 0, underWay: null, pause });

for (const pause of [0, 3]) { // milliseconds; with some the writes spread over the whole move
  test(`killed at each step, ${pause ? 'with pauses between' : 'in a row of'} writes`, async () => {
    let steps = 0;
    for (let killAt = 1; killAt < LIMIT; killAt += 1) {
      const place = world();
      const progress = fresh(pause);
      life = new Life(place, { killAt });
      const how = await run(progress);
      await life.end();
      await settle(place, progress, `killed at ${killAt}`);
      steps = killAt;
      if (how === 'moved') break;
    }
    assert.ok(steps > 50 && steps < LIMIT - 1, `${steps} steps`);
  });
}

test('killed again and again', async () => {
  let seed = 7;
  const random = (most) => (seed = (seed * 48_271) % 2_147_483_647) % most;
  let moved = 0;
  for (let round = 0; round < 25; round += 1) {
    const place = world();
    const progress = fresh(random(4));
    const kills = [];
    for (let turn = 0; turn < 4; turn += 1) {
      kills.push(1 + random(220));
      life = new Life(place, { killAt: kills.at(-1) });
      if (progress.underWay) {
        // Which of both it is, a read tells; what was read once stays.
        progress.model = seen(truth(place));
        progress.written += 1;
        progress.underWay = null;
      }
      if (progress.written === WRITES.length) progress.written = 0;
      const how = await run(progress);
      await life.end();
      assertHolds(truth(place), progress, `killed at ${kills}`);
      if (how === 'moved') moved += 1;
    }
    await settle(place, progress, `killed at ${kills}`);
  }
  assert.ok(moved > 0);
});
