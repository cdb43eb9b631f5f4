/** Site caches in the stub: whose record is whose, lazy restore, listeners that come and go. */

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { browserWithTabs } from './fake_tabs.mjs';

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
/** Long enough for all that is on its way to arrive. */
const settle = () => sleep(100);

const MESSAGES = {
  YOUTUBE_DATA: { source: 'youtube', field: 'video' },
  ZHIHU_CONTENT: { source: 'zhihu', field: 'content' },
};

/** Every link of the running test. */
const links = [];
const closeAll = () => Promise.all(links.splice(0).map((keep) => keep.close()));
afterEach(closeAll);

function start(options = {}, settings = {}) {
  const world = browserWithTabs(options);
  const connectAgain = () => {
    const keep = connect({ ...settings, siteCache: { messages: MESSAGES, ...settings.siteCache } });
    links.push(keep);
    return keep;
  };
  const restartWorker = () => {
    world.cutWorker();
    closeAll(); // nothing of it reaches a host or a tab any more
  };
  return { ...world, restartWorker, keep: connectAgain(), connectAgain };
}
const sender = (tabs, tabId, more = {}) => ({
  tab: { id: tabId, incognito: false },
  url: tabs.tabs.get(tabId)?.url,
  frameId: 0,
  ...more,
});

/** Asks for a tab's data and reason. */
async function ask(keep, tabId, which) {
  const { record, reason } = await keep.siteCache.lookUp(tabId, which);
  return record ? record.data : reason;
}

// --- what is whose -------------------------------------------------------------------------------

test('a site message is the record of its tab', async () => {
  const { keep, tabs, records, session } = start();
  const tab = tabs.open('https://v/1');
  assert.equal(await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: { title: 'V' } }, sender(tabs, tab)), true);
  const record = await keep.siteCache.get(tab);
  assert.deepEqual({ ...record, time: 0 }, { source: 'youtube', url: 'https://v/1', data: { title: 'V' }, time: 0 });
  assert.deepEqual(records(), { [tab]: { title: 'V' } });
  assert.equal(session.runs.size, 1);
});

test('the tab is the sender\'s, whatever the message says', async () => {
  const { keep, tabs, records } = start();
  const [mine, other] = [tabs.open('https://v/1'), tabs.open('https://v/2')];
  await keep.siteCache.fromMessage(
    { type: 'YOUTUBE_DATA', video: 'V', tabId: other, tab: { id: other }, url: 'https://v/2' },
    sender(tabs, mine),
  );
  assert.deepEqual(records(), { [mine]: 'V' });
  assert.equal((await keep.siteCache.get(mine)).url, 'https://v/1');
  assert.equal(await keep.siteCache.get(other), null);
});

test('what is no site message, or comes from no tab, is left alone at once', async () => {
  const { browser, keep, tabs } = start();
  const from = sender(tabs, tabs.open('https://v/1'));
  const site = { type: 'YOUTUBE_DATA', video: 'V' };
  for (const [message, who] of [
    [site, {}],
    [site, { url: 'chrome-extension://a/panel.html' }],
    [site, { ...from, tab: { id: -1 } }],
    [site, undefined],
    [{ type: 'UNKNOWN', video: 'V' }, from],
    [{ type: 'YOUTUBE_DATA' }, from],
    [{ type: 'YOUTUBE_DATA', video: '' }, from],
    [{ type: 'YOUTUBE_DATA', video: null }, from],
    [{ type: 'YOUTUBE_DATA', content: 'the field of another type' }, from],
    [{ type: 'sidekeep:site', data: 1 }, from],
    [{ type: 'toString', data: 1 }, from],
    ['YOUTUBE_DATA', from],
    [null, from],
  ]) {
    assert.equal(keep.siteCache.fromMessage(message, who), false, JSON.stringify(message));
  }
  assert.equal(browser.opened, 0);
  assert.equal(tabs.listeners, 0);
});

test('the newest site of a tab is its record, after a restart of the worker too', async () => {
  const { keep, tabs, restartWorker, connectAgain } = start();
  const tab = tabs.open('https://v/1');
  keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 'V' }, sender(tabs, tab));
  await keep.siteCache.fromMessage({ type: 'ZHIHU_CONTENT', content: 'Z' }, sender(tabs, tab));
  assert.equal(await ask(keep, tab), 'Z');
  restartWorker();
  assert.equal(await ask(connectAgain(), tab), 'Z');
});

test('a message of a frame below the page is of the page, where its URL is known', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://blog/');
  const frame = { frameId: 4, url: 'https://embedded/' };
  const site = { type: 'YOUTUBE_DATA', video: 'V' };
  assert.equal(keep.siteCache.fromMessage(site, sender(tabs, tab, frame)), false);
  const known = { ...frame, tab: { id: tab, url: 'https://blog/' } };
  assert.equal(await keep.siteCache.fromMessage(site, sender(tabs, tab, known)), true);
  assert.equal((await keep.siteCache.get(tab)).url, 'https://blog/');
});

test('data of another page is refused, and told', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  for (let round = 0; round < 2; round += 1) {
    assert.equal(await ask(keep, tab, { url: 'https://v/2' }), 'otherPage');
    assert.equal(await ask(keep, tab, { url: 'https://v/1' }), 1);
  }
});

test('a tab that went to another page gives nothing until that page tells', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(await ask(keep, tab), 1);
  tabs.navigate(tab, 'https://v/2');
  assert.equal(await ask(keep, tab), 'otherPage');
  assert.equal(await ask(keep, tab, { url: true }), 'otherPage');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/2', data: 2 });
  assert.equal(await ask(keep, tab), 2);
  assert.equal(await ask(keep, tab, { url: true }), 2);
});

test('a tab that went to a page the extension may not know gives nothing unasked', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(await ask(keep, tab), 1);
  tabs.onUpdated.emit(tab, { status: 'loading' }, { id: tab });
  assert.equal(await ask(keep, tab), 'otherPage');
  assert.equal(await ask(keep, tab, { url: 'https://v/1' }), 1);
});

test('a prerendered page takes nothing from the page that is shown, and has its data when it is', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 'shown' }, sender(tabs, tab));
  const prerendered = { url: 'https://v/2', documentLifecycle: 'prerender', frameId: 7 };
  await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 'next' }, sender(tabs, tab, prerendered));
  assert.equal(await ask(keep, tab), 'shown');
  assert.equal(await ask(keep, tab, { url: 'https://v/1' }), 'shown');
  tabs.navigate(tab, 'https://v/2');
  assert.equal(await ask(keep, tab), 'next');
});

test('a prerendered page has its data where the extension may not know URLs', async () => {
  const { keep, tabs } = start({ urls: false });
  const tab = tabs.open('https://v/1');
  const prerendered = { url: 'https://v/2', documentLifecycle: 'prerender', frameId: 7 };
  await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 'next' }, sender(tabs, tab, prerendered));
  assert.equal(await ask(keep, tab, { url: 'https://v/1' }), 'none');
  assert.equal(await ask(keep, tab, { url: 'https://v/2' }), 'next');
});

test('what is handed out can be changed by nobody else', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: { list: [1] } });
  await keep.siteCache.get(tab);
  (await keep.siteCache.get(tab)).data.list.push(2);
  assert.deepEqual((await keep.siteCache.get(tab)).data, { list: [1] });
});

// --- lazy restore --------------------------------------------------------------------------------

test('a worker that starts reads nothing, opens nothing and listens to nothing', async () => {
  const { browser, keep, tabs, restartWorker, connectAgain, calls } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  restartWorker();
  const [opened, sent] = [browser.opened, calls().length];
  connectAgain();
  await settle();
  assert.deepEqual([browser.opened, calls().length, tabs.queries, tabs.listeners], [opened, sent, 0, 0]);
});

test('the first read asks once which tabs live, drops the rest, and the next answer from memory', async () => {
  const { keep, tabs, restartWorker, connectAgain, calls, records } = start();
  const ids = Array.from({ length: 6 }, (_, number) => tabs.open(`https://v/${number}`));
  for (const id of ids) await keep.siteCache.put({ tabId: id, source: 's', url: tabs.tabs.get(id).url, data: id });
  restartWorker();
  tabs.close(ids[1]);
  tabs.close(ids[4]);
  const again = connectAgain();
  assert.equal(calls('siteCache.get').length, 0);
  assert.deepEqual(
    await Promise.all(ids.map((id) => ask(again, id))),
    [ids[0], 'closed', ids[2], ids[3], 'closed', ids[5]],
  );
  assert.deepEqual(Object.keys(records()).map(Number), [ids[0], ids[2], ids[3], ids[5]]);
  assert.equal(tabs.queries, 1);
  assert.equal(calls('siteCache.get').filter(({ params }) => params.live).length, 1);
  const sent = calls().length;
  // The first answer may not be kept: the host told of changes while it was on its way.
  for (const id of ids.slice(2)) await again.siteCache.get(id);
  assert.equal(calls().length, sent);
  assert.equal(tabs.queries, 1);
});

test('a read of many tabs whose first is closed hands out nothing of a closed one', async () => {
  const { keep, tabs, restartWorker, connectAgain } = start();
  const ids = [tabs.open('https://v/1'), tabs.open('https://v/2'), tabs.open('https://v/3')];
  for (const id of ids) await keep.siteCache.put({ tabId: id, source: 's', url: 'https://v/', data: id });
  restartWorker();
  tabs.close(ids[0]);
  tabs.close(ids[1]);
  const again = connectAgain();
  assert.deepEqual(await Promise.all(ids.map((id) => ask(again, id, { url: 'https://v/' }))), ['closed', 'closed', ids[2]]);
});

test('a tab that closes while the restore runs stays gone', async () => {
  for (const held of ['query', 'host', 'answer']) {
    const { keep, tabs, restartWorker, connectAgain, records, session } = start();
    const tab = tabs.open('https://v/1');
    const other = tabs.open('https://v/2');
    await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
    await keep.siteCache.put({ tabId: other, source: 's', url: 'https://v/2', data: 2 });
    restartWorker();
    const again = connectAgain();
    let release;
    if (held === 'query') tabs.gate = new Promise((done) => (release = done));
    if (held !== 'query') {
      // The host has read the record, and its answer is held back.
      const { run } = session;
      session.run = (method, params, host) => {
        if (method !== 'siteCache.get') return run.call(session, method, params, host);
        session.run = run;
        const answer = run.call(session, method, params, host);
        const close = () => tabs.close(tab);
        if (held === 'host') close();
        else setTimeout(close, 0);
        return answer;
      };
    }
    const reading = ask(again, tab);
    if (release) {
      await settle();
      assert.equal(tabs.queries, 1);
      tabs.close(tab);
      release();
    }
    assert.equal(await reading, 'closed', held);
    assert.equal(await ask(again, tab), 'closed', held);
    await settle();
    assert.deepEqual(Object.keys(records()), [String(other)], held);
    assert.equal(await ask(again, other), 2);
    await again.close();
  }
});

test('a tab that opens while the restore runs keeps its record', async () => {
  const { keep, tabs } = start();
  const old = tabs.open('https://v/1');
  let release;
  tabs.gate = new Promise((done) => (release = done));
  const reading = ask(keep, old);
  await settle();
  const tab = tabs.open('https://v/2');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/2', data: 2 });
  release();
  assert.equal(await reading, 'none');
  assert.equal(await ask(keep, tab), 2);
});

test('a tab that opened since the tabs were asked for is not called closed', async () => {
  const { keep, tabs, calls } = start();
  let release;
  tabs.gate = new Promise((done) => (release = done));
  const reading = ask(keep, 1);
  assert.equal(tabs.open('https://v/1'), 1);
  release();
  assert.equal(await reading, 'none');
  assert.equal(calls('siteCache.get').length, 2);
  await keep.siteCache.put({ tabId: 1, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(await ask(keep, 1), 1);
});

test('a message of a tab that has just closed leaves no record', async () => {
  const { keep, tabs, records } = start();
  const [tab, other] = [tabs.open('https://v/1'), tabs.open('https://v/2')];
  const from = sender(tabs, tab);
  await keep.siteCache.put({ tabId: other, source: 's', url: 'https://v/2', data: 2 });
  tabs.close(tab);
  assert.equal(await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 'V' }, from), false);
  await settle();
  assert.deepEqual(records(), { [other]: 2 });
});

test('tab ids of another browser run are never believed', async () => {
  const { keep, tabs, restartWorker, restartBrowser, connectAgain } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  restartWorker();
  restartBrowser();
  const again = connectAgain();
  assert.equal(await ask(again, tab), 'none');
  assert.equal(await ask(again, tab, { url: 'https://v/1' }), 'none');
});

test('memory is forgotten when the port closes', async () => {
  const { browser, keep, tabs, calls } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  await keep.siteCache.get(tab);
  const sent = calls('siteCache.get').length;
  await keep.siteCache.get(tab);
  assert.equal(calls('siteCache.get').length, sent);
  browser.kill();
  assert.equal(await ask(keep, tab), 1);
  assert.equal(calls('siteCache.get').length, sent + 1);
  assert.equal(tabs.queries, 2);
});

test('what another context puts, purges or clears is not answered from memory', async () => {
  const { keep, tabs, connectAgain } = start();
  const other = connectAgain();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  await keep.siteCache.get(tab);
  await other.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 2 });
  await settle();
  assert.equal(await ask(keep, tab), 2);
  await other.siteCache.purge(tab);
  await settle();
  assert.equal(await ask(keep, tab), 'none');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 3 });
  await keep.siteCache.get(tab);
  await keep.storage.session.clear();
  assert.equal(await ask(keep, tab), 'none');
});

test('what changed while a read was on its way is read again', async () => {
  const { keep, tabs, session } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 'old' });
  const { run } = session;
  session.run = (method, params, host) => {
    if (method !== 'siteCache.get') return run.call(session, method, params, host);
    session.run = run;
    const answer = run.call(session, method, params, host);
    session.run('siteCache.put', { tabId: tab, source: 's', url: 'https://v/1', data: 'new' }, host);
    return answer; // the event of the change is there first
  };
  assert.equal(await ask(keep, tab), 'old');
  assert.equal(await ask(keep, tab), 'new');
});

test('a record that became too old is not answered from memory', async () => {
  const { keep, tabs, session } = start();
  const tab = tabs.open('https://v/1');
  session.shift = -24 * 3600 * 1000 + 1000;
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(await ask(keep, tab), 1);
  await sleep(1100);
  assert.equal(await ask(keep, tab), 'none');
});

test('a host that is missing is a miss with a reason, and a put that rejects', async () => {
  const { browser, keep, tabs } = start();
  browser.script = () => ({ missing: 'Specified native messaging host not found.' });
  const tab = tabs.open('https://v/1');
  assert.equal(await keep.siteCache.get(tab), null);
  const { record, reason, error } = await keep.siteCache.lookUp(tab);
  assert.deepEqual([record, reason, error.kind], [null, 'unavailable', 'unavailable']);
  await assert.rejects(keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/', data: 1 }), {
    kind: 'unavailable',
  });
  assert.equal(await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 1 }, sender(tabs, tab)), false);
  assert.equal(tabs.listeners, 0);
});

// --- listeners -----------------------------------------------------------------------------------

test('listeners come with the first record and go with the last, the same functions', async () => {
  const { keep, tabs } = start();
  const [a, b] = [tabs.open('https://v/1'), tabs.open('https://v/2')];
  const first = keep.siteCache.put({ tabId: a, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(tabs.listeners, 3);
  await first;
  const added = tabs.events.map((event) => event.added);
  await keep.siteCache.put({ tabId: b, source: 's', url: 'https://v/2', data: 2 });
  assert.deepEqual(tabs.events.map((event) => event.added), added);
  const functions = tabs.events.map((event) => event.listeners[0]);
  tabs.close(a);
  await settle();
  assert.equal(tabs.listeners, 3);
  await keep.siteCache.purge([b]);
  assert.equal(tabs.listeners, 0);
  await keep.siteCache.put({ tabId: b, source: 's', url: 'https://v/2', data: 2 });
  assert.deepEqual(tabs.events.map((event) => event.listeners[0]), functions);
  await keep.close();
  assert.equal(tabs.listeners, 0);
});

test('a read that finds no record leaves no listener behind', async () => {
  const { keep, tabs, calls } = start();
  const tab = tabs.open('https://v/1');
  assert.equal(await ask(keep, tab), 'none');
  assert.equal(tabs.listeners, 0);
  const sent = calls().length;
  assert.equal(await ask(keep, tab), 'none');
  assert.equal(calls().length, sent, 'that there is none is remembered, too');
});

test('listeners go some time after the last use, whatever tabs do, and the next read asks again', async () => {
  const { keep, tabs, records } = start({}, { siteCache: { listen: 120 } });
  const [tab, other] = [tabs.open('https://v/1'), tabs.open('https://v/2')];
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  await keep.siteCache.put({ tabId: other, source: 's', url: 'https://v/2', data: 2 });
  for (let event = 0; event < 30 && tabs.listeners > 0; event += 1) {
    tabs.navigate(other, 'https://v/2');
    await sleep(20);
  }
  assert.equal(tabs.listeners, 0);
  assert.equal(keep.status().state, 'connected');
  tabs.close(tab);
  await settle();
  assert.deepEqual(Object.keys(records()), [String(tab), String(other)]);
  assert.equal(await ask(keep, tab), 'closed');
  assert.deepEqual(records(), { [other]: 2 });
});

test('listeners go with the port', async () => {
  const { keep, tabs } = start({}, { idle: 300 });
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(tabs.listeners, 3);
  while (keep.status().state === 'connected') await sleep(10);
  assert.equal(tabs.listeners, 0);
  assert.equal(await ask(keep, tab), 1);
});

test('the port that closes with the listeners is not opened again for other listeners', async () => {
  const { browser, keep, tabs } = start({}, { idle: 300 });
  keep.storage.local.onChanged.addListener(() => {});
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  while (keep.status().state === 'connected') await sleep(10);
  await sleep(60);
  assert.equal(browser.opened, 1);
});

test('tabs that close together are purged together', async () => {
  const { keep, tabs, calls, records } = start();
  const ids = Array.from({ length: 100 }, () => tabs.open('https://v/1'));
  await Promise.all(ids.map((tabId) => keep.siteCache.put({ tabId, source: 's', url: 'https://v/1', data: 1 })));
  for (const id of ids) tabs.close(id);
  await settle();
  assert.deepEqual(records(), {});
  assert.ok(calls('siteCache.purge').length <= 3);
  assert.equal(tabs.listeners, 0);
});

test('the first use of a worker clears the listeners that a killed one left', async () => {
  const { keep, tabs } = start();
  assert.deepEqual(tabs.events.map((event) => event.added), [0, 0, 0]);
  await keep.storage.local.get('a');
  assert.deepEqual(tabs.events.map((event) => event.added), [1, 1, 1]);
  assert.equal(tabs.listeners, 0);
});

// --- discarded tabs ------------------------------------------------------------------------------

test('a discarded tab keeps its record under its new id', async () => {
  const { keep, tabs, records } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  const added = tabs.discard(tab);
  assert.equal(await ask(keep, added, { url: 'https://v/1' }), 1);
  assert.equal(await ask(keep, added), 1);
  assert.equal(await ask(keep, tab), 'closed');
  const twice = tabs.discard(tabs.discard(added));
  assert.equal(await ask(keep, twice), 1);
  assert.deepEqual(records(), { [twice]: 1 });
});

test('what a tab told under its new id is not replaced by what it told before', async () => {
  const { keep, tabs, records } = start();
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 'old' });
  const added = tabs.discard(tab);
  await keep.siteCache.put({ tabId: added, source: 's', url: 'https://v/1', data: 'new' });
  await settle();
  assert.equal(await ask(keep, added), 'new');
  assert.deepEqual(records(), { [added]: 'new' });
});

test('tabs that were discarded while the worker slept keep their records', async () => {
  const { keep, tabs, restartWorker, connectAgain, records } = start();
  const ids = Array.from({ length: 4 }, (_, number) => tabs.open(`https://v/${number}`));
  for (const id of ids) await keep.siteCache.put({ tabId: id, source: 's', url: tabs.tabs.get(id).url, data: id });
  restartWorker();
  const added = ids.slice(0, 3).map((id) => tabs.discard(id));
  tabs.close(ids[3]);
  const again = connectAgain();
  for (const [index, id] of added.entries()) assert.equal(await ask(again, id), ids[index]);
  assert.deepEqual(records(), Object.fromEntries(added.map((id, index) => [id, ids[index]])));
});

test('without URLs the one that is asked for with its page is found', async () => {
  const { keep, tabs, restartWorker, connectAgain } = start({ urls: false });
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  restartWorker();
  const added = tabs.discard(tab);
  assert.equal(await ask(connectAgain(), added, { url: 'https://v/1' }), 1);
});

// --- what the extension may see ------------------------------------------------------------------

test('without the tabs permission everything works but what needs a URL, which says so', async () => {
  const { keep, tabs } = start({ urls: false });
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  assert.equal(await ask(keep, tab), 1);
  tabs.navigate(tab, 'https://v/2');
  assert.equal(await ask(keep, tab), 1, 'nobody can tell');
  assert.equal(await ask(keep, tab, { url: 'https://v/2' }), 'otherPage');
  await assert.rejects(keep.siteCache.get(tab, { url: true }), { kind: 'forbidden', next: /"tabs"/ });
  await assert.rejects(keep.siteCache.get(999, { url: true }), { kind: 'notFound' });
});

test('a context that sees no tabs is told so', async () => {
  const { keep } = start();
  delete chrome.tabs;
  await assert.rejects(keep.siteCache.get(1), { kind: 'unavailable', message: /tabs/ });
  await assert.rejects(keep.siteCache.put({ tabId: 1, source: 's', url: 'https://v/', data: 1 }), {
    kind: 'unavailable',
  });
  assert.deepEqual(await keep.storage.local.get('a'), {});
});

test('a side of a split extension leaves the records of the other side alone', async () => {
  const { keep, tabs, records, session } = start({ manifest: { incognito: 'split' } });
  const tab = tabs.open('https://v/1');
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  const [items] = session.runs.values();
  items.set('sc_900', { source: 's', url: 'https://v/', data: 'other side', time: Date.now() });
  assert.equal(await ask(keep, tab), 1);
  assert.equal(await ask(keep, 900), 'closed');
  assert.deepEqual(records(), { [tab]: 1, 900: 'other side' });
});

test('arguments of the wrong type throw at once', async () => {
  const { browser, keep } = start();
  const content = { tabId: 1, source: 's', url: 'https://v/', data: 1 };
  for (const wrong of [{ tabId: '1' }, { tabId: -1 }, { tabId: 1.5 }, { source: '' }, { url: 3 }, { data: undefined }]) {
    assert.throws(() => keep.siteCache.put({ ...content, ...wrong }), TypeError, JSON.stringify(wrong));
  }
  assert.throws(() => keep.siteCache.lookUp('1'), TypeError);
  assert.throws(() => keep.siteCache.lookUp(1, { url: 3 }), TypeError);
  assert.throws(() => keep.siteCache.purge([1, 'x']), TypeError);
  assert.throws(() => keep.siteCache.cached('k', {}), TypeError);
  assert.throws(() => connect({ siteCache: { listen: 30_000 } }), TypeError);
  assert.throws(() => connect({ siteCache: { messages: { A: {} } } }), TypeError);
  assert.equal(browser.opened, 0);
});

// --- copies by URL -------------------------------------------------------------------------------

const COPIES = { siteCache: { byUrl: true } };

/** The local area of the fake host knows no revisions: this one does, for `expect`. */
function revisions(items = new Map()) {
  const numbers = new Map();
  return ({ method, params }) => {
    if (params?.area !== 'local') return undefined;
    if (method === 'storage.get') {
      const found = params.keys.filter((key) => items.has(key));
      return {
        result: {
          items: Object.fromEntries(found.map((key) => [key, items.get(key)])),
          revisions: Object.fromEntries(params.keys.map((key) => [key, numbers.get(key) ?? 0])),
        },
      };
    }
    if (method === 'storage.set') {
      for (const [key, revision] of Object.entries(params.expect ?? {})) {
        if ((numbers.get(key) ?? 0) !== revision) {
          return { error: { code: -32002, message: 'conflict', data: { kind: 'conflict' } } };
        }
      }
      for (const [key, value] of Object.entries(params.items)) {
        items.set(key, value);
        numbers.set(key, (numbers.get(key) ?? 0) + 1);
      }
      return { result: {} };
    }
    if (method === 'storage.getKeys') return { result: { keys: [...items.keys()].sort() } };
    for (const key of params.keys) items.delete(key);
    return { result: {} };
  };
}

test('after a restart of the browser a record is found by its page, if that was asked for', async () => {
  const { keep, tabs, restartWorker, restartBrowser, connectAgain } = start({ answer: revisions() }, COPIES);
  const tab = tabs.open('https://v/1');
  const time = Date.now();
  await keep.siteCache.put({ tabId: tab, source: 's', url: 'https://v/1', data: 1 });
  restartWorker();
  restartBrowser();
  const other = tabs.open('https://v/1');
  const again = connectAgain();
  assert.equal(await ask(again, other, { url: 'https://v/2' }), 'none');
  const { record, copy } = await again.siteCache.lookUp(other, { url: 'https://v/1' });
  assert.deepEqual([record.data, copy, record.time >= time], [1, true, true]);
  assert.equal(await ask(again, other), 1, 'the page that the tab shows is known');
  await again.siteCache.forgetPages(['https://v/1']);
  assert.equal(await ask(again, other, { url: 'https://v/1' }), 'none');
});

test('pages of private windows, and addresses that are none, are not copied', async () => {
  const items = new Map();
  const { keep, tabs } = start({ answer: revisions(items) }, COPIES);
  const secret = tabs.open('https://v/1', { incognito: true });
  const file = tabs.open('file:///home');
  await keep.siteCache.put({ tabId: secret, source: 's', url: 'https://v/1', data: 1 });
  await keep.siteCache.fromMessage({ type: 'YOUTUBE_DATA', video: 1 }, { tab: { id: secret, incognito: true }, url: 'https://v/1' });
  await keep.siteCache.put({ tabId: file, source: 's', url: 'file:///home', data: 1 });
  await keep.siteCache.put({ tabId: 77, source: 's', url: 'https://v/closed', data: 1 });
  assert.deepEqual([...items.keys()], []);
});

test('no more than a hundred pages are copied, from several contexts at once; the oldest go', async () => {
  const items = new Map();
  const { keep, tabs, connectAgain } = start({ answer: revisions(items) }, COPIES);
  const other = connectAgain();
  const tab = tabs.open('https://v/0');
  const put = (number) =>
    (number % 2 ? keep : other).siteCache.put({ tabId: tab, source: 's', url: `https://v/${number}`, data: 'x'.repeat(10) });
  for (let number = 0; number < 104; number += 2) await Promise.all([put(number), put(number + 1)]);
  const copies = [...items.keys()].filter((key) => key.startsWith('sidekeep:site:'));
  assert.equal(copies.length, 100);
  assert.deepEqual(Object.keys(items.get('sidekeep:sites')).length, 100);
  assert.ok(items.has('sidekeep:site:https://v/103') && !items.has('sidekeep:site:https://v/0'));
  await keep.siteCache.forgetPages();
  assert.deepEqual([...items.keys()], ['sidekeep:sites']);
});

// --- the cache helper ----------------------------------------------------------------------------

test('a value is made once, kept, and made anew when it is too old or refused', async () => {
  const { keep } = start();
  let made = 0;
  const options = { refresh: async () => ({ made: (made += 1) }), maxAge: 60_000 };
  const value = async (more = {}) => {
    const { data, state } = await keep.siteCache.cached('models', { ...options, ...more });
    return [data.made, state];
  };
  assert.deepEqual(await value(), [1, 'renewed']);
  assert.deepEqual(await value(), [1, 'fresh']);
  assert.deepEqual(await value({ validate: ({ made: number }) => number > 1 }), [2, 'renewed']);
  await sleep(20);
  const older = { refresh: (old) => ({ made: old.made + 10 }), maxAge: 10 };
  assert.deepEqual(await value(older), [12, 'renewed']);
});

test('a stale value is handed out while it is renewed, and stays if that fails', async () => {
  const { keep } = start();
  let made = 0;
  const options = { refresh: () => (made += 1), maxAge: 30, staleWhileRevalidate: 60_000 };
  await keep.siteCache.cached('models', options);
  await sleep(40);
  const failing = { ...options, refresh: () => Promise.reject(new Error('offline')) };
  assert.equal((await keep.siteCache.cached('models', failing)).state, 'stale');
  await settle();
  assert.deepEqual({ ...(await keep.siteCache.cached('models', options)), time: 0 }, { data: 1, time: 0, state: 'stale' });
  await settle();
  const renewed = await keep.siteCache.cached('models', { ...options, maxAge: 60_000 });
  assert.deepEqual([renewed.data, renewed.state], [2, 'fresh']);
  await assert.rejects(keep.siteCache.cached('other', failing), /offline/);
});

test('renewals of one value are joined, those of others are not', async () => {
  const { keep } = start();
  let made = 0;
  const refresh = async () => {
    made += 1;
    await sleep(20);
    return made;
  };
  const both = Array.from({ length: 20 }, () => keep.siteCache.cached('a', { refresh }));
  const values = await Promise.all([...both, keep.siteCache.cached('b', { refresh })]);
  assert.equal(made, 2);
  assert.ok(values.slice(0, 20).every(({ data }) => data === values[0].data));
  assert.equal((await keep.siteCache.cached('a', { refresh })).state, 'fresh');
});

test('a value of a tab is its record, and goes with the page', async () => {
  const { keep, tabs } = start();
  const tab = tabs.open('https://v/1');
  let made = 0;
  const options = { url: 'https://v/1', source: 'extract', refresh: () => (made += 1) };
  assert.equal((await keep.siteCache.cached(tab, options)).data, 1);
  assert.equal((await keep.siteCache.cached(tab, options)).state, 'fresh');
  assert.equal((await keep.siteCache.get(tab)).source, 'extract');
  assert.equal((await keep.siteCache.cached(tab, { ...options, url: 'https://v/2' })).data, 2);
  assert.throws(() => keep.siteCache.cached(tab, { refresh: () => 1 }), TypeError);
});
