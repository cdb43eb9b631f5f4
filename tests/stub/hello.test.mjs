/** What the hello tells: notices to the extension, and how requests are made to the host. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connect } from '../../extension_stub/sidekeep/index.js';
import { fakeBrowser } from './fake_host.mjs';

const notice = (id) => ({ id, kind: 'interruptedTurn', text: 'An answer was cut off.', turnId: id, entryId: 'e1', conversation: 'c1' });

test('notices come from the hello, are told once, and go when they are acknowledged', async () => {
  let told = [notice('t1'), notice('t2')];
  const browser = fakeBrowser({
    script: () => ({
      answer: ({ id, method, params }, host) => {
        if (method === 'host.acknowledge') {
          if (params.notice === 't2') return { error: { code: -32004, message: 'refused', data: { kind: 'busy' } } };
          told = told.filter((one) => one.id !== params.notice);
          return { result: {} };
        }
        if (method !== 'host.hello') return undefined;
        host.greeted = true;
        host.client = params.client;
        host.grant = 8;
        const result = { protocol: 1, host: { name: 'fake', version: '0', pid: 1 }, features: [], store: 'e', seq: { local: 0 }, conversation: '', parts: { window: 8 }, notices: told };
        host.emit({ jsonrpc: '2.0', id, result });
        return null;
      },
    }),
  });
  const keep = connect();
  const heard = [];
  keep.onNotice.addListener(({ id }) => heard.push(id));
  assert.equal(browser.opened, 0, 'listening opens no port');
  assert.deepEqual((await keep.notices()).map(({ id }) => id), ['t1', 't2']);
  assert.deepEqual(keep.status().notices, [notice('t1'), notice('t2')]);
  assert.throws(() => keep.status().notices.push(notice('x')), TypeError);
  await keep.acknowledge('t1');
  await assert.rejects(keep.acknowledge('t2'), { kind: 'busy' });
  assert.deepEqual(await keep.notices(), [notice('t2')]);
  told.push(notice('t3'));
  browser.kill();
  assert.deepEqual(await keep.notices(), [notice('t2'), notice('t3')]);
  assert.deepEqual(heard, ['t1', 't2', 't3']);
  await keep.close();
});

// --- what the hello says of requests ---------------------------------------------------------------

test('the hello tells how requests are made, and only what was given', async () => {
  const hello = async (options) => {
    const browser = fakeBrowser();
    const keep = connect(options);
    await keep.call('host.ping');
    await keep.close();
    return browser.requests()[0].params.settings;
  };
  assert.equal(await hello({}), undefined);
  assert.equal(await hello({ requests: {} }), undefined);
  const requests = { condenseFrom: 0, aging: { turns: 5 }, overflow: { chars: 100 }, texts: { imageLabel: '[image {n}]' } };
  assert.deepEqual(await hello({ requests }), requests);
  assert.deepEqual(await hello({ attachmentPrefix: 'P', requests: { aging: { turns: 1, chars: 2 } } }), {
    attachmentPrefix: 'P',
    aging: { turns: 1, chars: 2 },
  });
});

test('options of requests that do not fit throw when the stub connects', () => {
  const wrong = [
    null,
    [],
    'x',
    { condensefrom: 1 },
    { condenseFrom: -1 },
    { condenseFrom: '1' },
    { aging: 3 },
    { aging: { turns: 1.5 } },
    { aging: { characters: 1 } },
    { overflow: { turns: 1 } },
    { texts: { aging: 1 } },
    { texts: { other: 'x' } },
  ];
  for (const requests of wrong) assert.throws(() => connect({ requests }), TypeError, JSON.stringify(requests));
});
