/**
 * 10,000 tabs that open, tell of their pages, navigate, are discarded and close, while the worker is
 * stopped and the host killed in between; in the end exactly the live tabs have records.
 *
 * The stub is the real one, the hosts are real processes, the tabs are those of fake_tabs.mjs.
 *
 *     node site_cache_simulation.mjs '{"command": [...], "tabs": 10000, "seed": 1}'
 *
 * Prints one line of JSON with what was done. Exit code 1 and the seed if anything is not as it must be.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { endianness } from 'node:os';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { FakeTabs } from './fake_tabs.mjs';

const { command, tabs: count, seed } = JSON.parse(process.argv[2]);
const MOST_LIVE = 200;

/** Mulberry32: the same numbers for the same seed. */
let state = seed;
function dice() {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const oneOf = (list) => list[Math.floor(dice() * list.length)];

// --- a browser -----------------------------------------------------------------------------------

class PortEvent {
  listeners = [];
  addListener(listener) {
    this.listeners.push(listener);
  }
  removeListener(listener) {
    this.listeners = this.listeners.filter((other) => other !== listener);
  }
  emit(value) {
    for (const listener of this.listeners) listener(value);
  }
}

const little = endianness() === 'LE';
const processes = new Set();
let lastError = null;

function connectNative() {
  const host = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
  processes.add(host);
  const port = { onMessage: new PortEvent(), onDisconnect: new PortEvent(), open: true, host };
  let received = Buffer.alloc(0);
  host.stdout.on('data', (data) => {
    received = Buffer.concat([received, data]);
    while (received.length >= 4) {
      const length = little ? received.readUInt32LE() : received.readUInt32BE();
      if (received.length < 4 + length) break;
      const text = received.subarray(4, 4 + length).toString();
      received = received.subarray(4 + length);
      if (port.open) port.onMessage.emit(JSON.parse(text));
    }
  });
  host.stdin.on('error', () => {}); // it was killed: 'exit' tells
  host.on('exit', () => {
    processes.delete(host);
    if (!port.open) return;
    port.open = false;
    lastError = { message: 'Native host has exited.' };
    port.onDisconnect.emit(port);
    lastError = null;
  });
  port.postMessage = (message) => {
    if (!port.open) throw new Error('Attempting to use a disconnected port object');
    const body = Buffer.from(JSON.stringify(message));
    const head = Buffer.alloc(4);
    if (little) head.writeUInt32LE(body.length);
    else head.writeUInt32BE(body.length);
    host.stdin.write(Buffer.concat([head, body]));
  };
  port.disconnect = () => {
    port.open = false;
    host.stdin.end();
  };
  ports.push(port);
  return port;
}

const ports = [];
const area = () => {
  const items = {};
  return {
    get: async (key) => (key in items ? { [key]: items[key] } : {}),
    set: async (more) => void Object.assign(items, more),
  };
};
const browser = new FakeTabs({ first: 1000 });
globalThis.chrome = {
  runtime: {
    id: 'simulated',
    connectNative,
    getManifest: () => ({}),
    get lastError() {
      return lastError;
    },
  },
  storage: { local: area(), session: area() },
  tabs: browser.api(),
};

// --- what must be --------------------------------------------------------------------------------

/** What each live tab has told last: {url, data}, or null. */
const told = new Map();
const done = { opened: 0, navigated: 0, discarded: 0, closed: 0, asked: 0, hostKills: 0, workerKills: 0 };
let asleep = false;
let pages = 0;
let keep = connect();
/** Messages that are on their way to the host. */
let sending = [];

const urlOf = (id) => browser.tabs.get(id).url;

/** The page tells: only while the worker is awake, since a message would wake it. */
function tell(id) {
  const record = { url: urlOf(id), data: { page: urlOf(id), text: 'x'.repeat(Math.floor(dice() * 300)) } };
  const sender = { tab: { id, incognito: false }, url: record.url, frameId: 0 };
  told.set(id, record);
  sending.push(
    keep.siteCache
      .fromMessage({ type: 'sidekeep:site', source: 'test', data: record.data }, sender)
      .then((stored) => assert.ok(stored || !browser.tabs.has(id), 'a message of a live tab was lost')),
  );
}

const acts = {
  open() {
    done.opened += 1;
    const id = browser.open(`https://v/${(pages += 1)}`);
    told.set(id, null);
    if (!asleep && dice() < 0.8) tell(id);
  },
  navigate(id) {
    done.navigated += 1;
    const url = `https://v/${(pages += 1)}`;
    browser.navigate(id, url);
    if (!asleep && dice() < 0.6) tell(id);
  },
  discard(id) {
    done.discarded += 1;
    const record = told.get(id);
    const added = browser.discard(id);
    told.delete(id);
    // Asleep only the URL tells which tab it was.
    told.set(added, asleep && record?.url !== urlOf(added) ? null : record);
  },
  close(id) {
    done.closed += 1;
    told.delete(id);
    browser.close(id);
  },
};

function act() {
  const live = [...browser.tabs.keys()];
  const chance = dice();
  if (live.length < 5 || (chance < 0.42 && live.length < MOST_LIVE)) acts.open();
  else if (chance < 0.56) acts.navigate(oneOf(live));
  else if (chance < 0.62) acts.discard(oneOf(live));
  else acts.close(oneOf(live));
}

async function ask(id) {
  done.asked += 1;
  const expected = told.get(id);
  const page = urlOf(id);
  const { record, reason, error } = await keep.siteCache.lookUp(id, dice() < 0.5 ? {} : { url: page });
  assert.equal(error, undefined);
  // What happened while it was asked may be in the answer or not.
  if (told.get(id) !== expected || !browser.tabs.has(id) || urlOf(id) !== page) return;
  if (expected && expected.url === page) assert.deepEqual(record?.data, expected.data, `tab ${id}: ${reason}`);
  else assert.equal(record, null, `tab ${id} shows ${page}`);
}

async function restartWorker() {
  done.workerKills += 1;
  await Promise.all(sending.splice(0));
  await ask(oneOf([...browser.tabs.keys()])); // moves of discarded tabs have ended
  for (const event of browser.events) event.listeners = [];
  for (const port of ports.splice(0)) {
    port.open = false;
    port.host.kill('SIGKILL');
  }
  keep.close();
  asleep = true;
  for (let event = 0; event < 40; event += 1) act();
  asleep = false;
  keep = connect();
  if (browser.tabs.size > 0) await ask(oneOf([...browser.tabs.keys()]));
}

function killHost() {
  done.hostKills += 1;
  for (const host of processes) host.kill('SIGKILL');
}

try {
  let next = 0;
  while (done.opened < count) {
    act();
    if (dice() < 0.05) await ask(oneOf([...browser.tabs.keys()]));
    if (sending.length > 100) await Promise.all(sending.splice(0));
    if (done.opened >= next) {
      next += count / 16;
      if (dice() < 0.5) killHost();
      else await restartWorker();
    }
  }
  await restartWorker();
  for (const id of browser.tabs.keys()) await ask(id);
  const expected = [...told].filter(([, record]) => record).map(([id]) => `sc_${id}`);
  const keys = (await keep.storage.session.getKeys()).filter((key) => key.startsWith('sc_'));
  assert.deepEqual(keys.sort(), expected.sort(), 'exactly the live tabs have records');
  assert.ok(expected.length > 20, 'enough is left to tell');
  await keep.close();
  assert.equal(browser.listeners, 0);
  console.log(JSON.stringify({ ...done, live: browser.tabs.size, records: keys.length }));
} catch (error) {
  console.error(`seed ${seed}:`, error);
  process.exitCode = 1;
}
for (const host of processes) host.stdin.end();
