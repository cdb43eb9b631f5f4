/** When parts that arrived are acknowledged. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Acknowledgements } from '../../extension_stub/sidekeep/acknowledgements.js';

/**
 * Sends messages of so many parts in turns to a receiver, as a host does.
 * @param {number[]} lengths
 * @param {number} window
 * @returns {{posts: number, most: number}} how often the receiver posted, and how many parts were
 *   unacknowledged at the most
 */
function exchange(lengths, window) {
  const receiver = new Acknowledgements();
  const sent = lengths.map(() => 0);
  const acked = lengths.map(() => 0);
  const open = () => sent.reduce((sum, parts, of) => sum + parts - acked[of], 0);
  let posts = 0;
  let most = 0;
  let turn = 0;
  while (sent.some((parts, of) => parts < lengths[of])) {
    assert.ok(open() < window, `stuck with ${sent} of ${lengths} in a window of ${window}`);
    while (sent[turn % lengths.length] === lengths[turn % lengths.length]) turn += 1;
    const of = turn % lengths.length;
    turn += 1;
    receiver.add({ of, i: sent[of] }, sent[of] + 1 === lengths[of], window);
    sent[of] += 1;
    most = Math.max(most, open());
    const all = receiver.take();
    if (all.length > 0) posts += 1;
    for (const { ack } of all) acked[ack.of] = Math.max(acked[ack.of], ack.i + 1);
  }
  assert.deepEqual(acked, lengths, 'all that arrived is acknowledged in the end');
  return { posts, most };
}

test('four parts share an acknowledgement in a window of 16', () => {
  assert.deepEqual(exchange([64], 16), { posts: 16, most: 4 });
});

test('no sender is ever stuck, whatever its window and however many messages take turns', () => {
  for (let window = 1; window <= 20; window++) {
    for (const lengths of [[1], [61], [1, 1, 1], [30, 2, 7], Array(64).fill(3)]) {
      const { most } = exchange(lengths, window);
      assert.ok(most * 4 <= Math.max(4, window + 3), `${most} held back of ${window}`);
    }
  }
});

test('what completes a message is acknowledged at once, with what other messages are owed', () => {
  const receiver = new Acknowledgements();
  receiver.add({ of: 1, i: 0 }, false, 16);
  assert.deepEqual(receiver.take(), []);
  receiver.add({ of: 2, i: 5 }, true, 16);
  assert.deepEqual(receiver.take(), [{ ack: { of: 1, i: 0 } }, { ack: { of: 2, i: 5 } }]);
  assert.deepEqual(receiver.take(), []);
});
