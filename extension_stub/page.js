// @ts-check
/**
 * The page of the shipped extension: the host's status in words, and a round trip on demand.
 */

import { connect, SidekeepError } from './sidekeep/index.js';

/** A key that nobody's data uses; it is removed again. */
const TRIP_KEY = 'sidekeep:round-trip';

const keep = connect();

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * @param {string} id of the line
 * @param {'good' | 'bad' | 'wait'} tone
 * @param {string} text
 * @param {string | null | undefined} next what to do
 */
function say(id, tone, text, next) {
  const line = element(id);
  line.dataset['tone'] = tone;
  line.textContent = text;
  const hint = element(id === 'state' ? 'next' : 'trip-next');
  hint.textContent = next ?? '';
  hint.hidden = !next;
}

/**
 * @param {unknown} error
 * @returns {{text: string, next: string | undefined}}
 */
function reasonOf(error) {
  if (error instanceof SidekeepError) return { text: error.message, next: error.next };
  return { text: error instanceof Error ? error.message : String(error), next: undefined };
}

/**
 * @param {unknown} bytes
 * @returns {string}
 */
function inWords(bytes) {
  if (typeof bytes !== 'number') return 'unknown';
  const units = ['bytes', 'KB', 'MB', 'GB'];
  const power = bytes < 1 ? 0 : Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toLocaleString('en', { maximumFractionDigits: 1 })} ${units[power]}`;
}

/** @param {Record<string, any>} status what `host.status` answered */
function showFacts(status) {
  const host = keep.status().host;
  const facts = [
    ['Host', host ? `version ${host.version}, process ${host.pid}` : 'unknown'],
    ['File', status['file']],
    ['Size on disk', inWords(status['bytes'])],
    ['Stored values', `${status['entries']}, ${inWords(status['valueBytes'])}`],
    ['Profile', status['profile']],
  ];
  element('facts').replaceChildren(
    ...facts.flatMap(([name, value]) => {
      const term = document.createElement('dt');
      const description = document.createElement('dd');
      term.textContent = String(name);
      description.textContent = String(value);
      return [term, description];
    }),
  );
  element('facts').hidden = false;
}

/** Asks the host for its status and shows it. */
async function refresh() {
  say('state', 'wait', 'Asking the host…', null);
  try {
    await keep.retry();
    const status = await keep.call('host.status');
    if (status.health === 'good') say('state', 'good', 'The host answers and its store is good.', null);
    else say('state', 'bad', `The host answers, but its store cannot be used: ${status.problem}`, null);
    showFacts(status);
  } catch (error) {
    const { text, next } = reasonOf(error);
    say('state', 'bad', text, next);
    element('facts').hidden = true;
  }
  showBrowserText();
}

function showBrowserText() {
  const text = keep.status().lastError;
  element('browser-text').textContent = text;
  element('technical').hidden = text === '';
}

/** Sets a value, gets it back, compares, removes, and says how it went. */
async function roundTrip() {
  const value = { time: new Date().toISOString(), words: 'grüße, 世界, 😀', numbers: [0, -1.5, 1e300] };
  const started = performance.now();
  say('trip', 'wait', 'Trying…', null);
  try {
    await keep.storage.local.set({ [TRIP_KEY]: value });
    const back = (await keep.storage.local.get(TRIP_KEY))[TRIP_KEY];
    await keep.storage.local.remove(TRIP_KEY);
    const gone = (await keep.storage.local.get(TRIP_KEY))[TRIP_KEY] === undefined;
    const took = Math.max(1, Math.round(performance.now() - started));
    if (!sameJson(back, value)) say('trip', 'bad', 'The value came back changed.', null);
    else if (!gone) say('trip', 'bad', 'The value could not be removed.', null);
    else say('trip', 'good', `It works: the value came back unchanged and was removed, in ${took} ms.`, null);
  } catch (error) {
    const { text, next } = reasonOf(error);
    say('trip', 'bad', text, next);
  }
  showBrowserText();
}

/**
 * @param {unknown} left
 * @param {unknown} right
 * @returns {boolean} equal whatever the order of keys
 */
function sameJson(left, right) {
  if (typeof left !== 'object' || left === null || typeof right !== 'object' || right === null) {
    return left === right;
  }
  const a = Object.entries(left);
  const b = new Map(Object.entries(right));
  return a.length === b.size && a.every(([key, value]) => b.has(key) && sameJson(value, b.get(key)));
}

/**
 * Runs an action when a button is pressed, with the buttons disabled meanwhile.
 * @param {string} id
 * @param {() => Promise<void>} action
 */
function onPress(id, action) {
  element(id).addEventListener('click', async () => {
    const buttons = document.querySelectorAll('button');
    for (const button of buttons) button.disabled = true;
    await action();
    for (const button of buttons) button.disabled = false;
  });
}

onPress('run', roundTrip);
onPress('refresh', refresh);
refresh();
