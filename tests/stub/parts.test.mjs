/** Cutting and joining of messages in parts, and the sizes of pieces. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  cut,
  Incoming,
  longerThan,
  Outgoing,
  PartsFault,
  PIECE_LIMIT,
  Pieces,
  STRING_LIMIT,
} from '../../extension_stub/sidekeep/parts.js';
import { jsonBytes } from './fake_host.mjs';

const pieces = (string) => {
  const taken = [];
  for (const source = new Pieces(string); !source.done; ) taken.push(source.next());
  return taken;
};

const KINDS = {
  ascii: 'x',
  quotes: '"\\',
  controls: '\u0001',
  accents: 'é',
  chinese: '中文',
  pairs: '😀',
  'odd pairs': 'a😀',
  separators: '\u2028\u0000',
};

for (const [name, unit] of Object.entries(KINDS)) {
  test(`pieces of ${name} join to the same, fit, and split no pair`, () => {
    const string = unit.repeat(Math.ceil(1_000_000 / unit.length));
    const taken = pieces(string);
    assert.ok(taken.join('') === string);
    for (const piece of taken) {
      assert.ok(jsonBytes(piece) - 2 <= PIECE_LIMIT);
      assert.ok(piece.isWellFormed());
    }
    const least = Math.ceil((jsonBytes(string) - 2) / PIECE_LIMIT);
    assert.ok(taken.length <= least * 1.5 + 4, `${taken.length} pieces where ${least} would do`);
  });
}

test('pieces of a string whose kind of text changes fit too', () => {
  const string = 'x'.repeat(300_000) + '\u0001'.repeat(300_000) + '😀'.repeat(200_000) + 'x'.repeat(300_000);
  const taken = pieces(string);
  assert.ok(taken.join('') === string);
  for (const piece of taken) assert.ok(jsonBytes(piece) - 2 <= PIECE_LIMIT);
});

test('a string is long by its JSON text in bytes', () => {
  assert.equal(longerThan('x'.repeat(STRING_LIMIT), STRING_LIMIT), false);
  assert.equal(longerThan('x'.repeat(STRING_LIMIT + 1), STRING_LIMIT), true);
  assert.equal(longerThan('é'.repeat(STRING_LIMIT / 2), STRING_LIMIT), false);
  assert.equal(longerThan('é'.repeat(STRING_LIMIT / 2 + 1), STRING_LIMIT), true);
  assert.equal(longerThan('\u0001'.repeat(10_922), STRING_LIMIT), false);
  assert.equal(longerThan('\u0001'.repeat(10_923), STRING_LIMIT), true);
});

const message = () => ({
  jsonrpc: '2.0',
  id: 1,
  params: {
    'a.b': [1, { deep: 'x'.repeat(700_000) }, '"'.repeat(100_000)],
    small: 'é',
    exact: 'y'.repeat(STRING_LIMIT),
    __proto: 'z'.repeat(STRING_LIMIT + 1),
    rows: Array.from({ length: 30_000 }, (_, index) => ({ index, text: `row "${index}"` })),
  },
});

const allParts = (whole) => {
  const taken = [];
  for (const outgoing = new Outgoing(1, cut(whole)); !outgoing.done; ) taken.push(outgoing.next());
  return taken;
};

test('cutting leaves the message as it was', () => {
  const whole = message();
  const { text, holes } = cut(whole);
  assert.deepEqual(whole, message());
  assert.ok(text.length < 2_000_000);
  assert.deepEqual(
    holes.map((hole) => hole.path),
    [
      ['params', 'a.b', 1, 'deep'],
      ['params', 'a.b', 2],
      ['params', '__proto'],
    ],
  );
});

test('parts follow the protocol and join to the same message', () => {
  const parts = allParts(message());
  assert.deepEqual(
    parts.map((part) => part.part.i),
    parts.map((_, index) => index),
  );
  const holes = parts.map((part) => part.part.hole ?? -1);
  assert.deepEqual(holes, [...holes].sort((a, b) => a - b));
  assert.ok(parts.every((part) => jsonBytes(part) < PIECE_LIMIT + 1000));
  const incoming = new Incoming();
  const results = parts.map((part) => incoming.add(JSON.parse(JSON.stringify(part))));
  assert.deepEqual(results.pop(), message());
  assert.ok(results.every((result) => result === undefined));
});

test('parts of several messages may be mixed', () => {
  const first = allParts({ id: 1, s: 'a'.repeat(600_000) });
  const second = allParts({ id: 2, s: 'b'.repeat(900_000) }).map((part) => ({
    ...part,
    part: { ...part.part, of: 2 },
  }));
  const incoming = new Incoming();
  const whole = [];
  while (first.length > 0 || second.length > 0) {
    for (const queue of [first, second]) {
      const part = queue.shift();
      const joined = part && incoming.add(part);
      if (joined) whole.push(joined);
    }
  }
  assert.deepEqual(whole.map((one) => [one.id, one.s.length]), [[1, 600_000], [2, 900_000]]);
});

test('a key named __proto__ holds a cut string without reaching the prototype', () => {
  const whole = JSON.parse(`{"result": {"__proto__": {"x": "${'p'.repeat(70_000)}"}}}`);
  const incoming = new Incoming();
  const joined = allParts(whole).map((part) => incoming.add(part)).pop();
  assert.equal(JSON.stringify(joined), JSON.stringify(whole));
  assert.equal({}.x, undefined);
});

test('parts that break the rules are refused', () => {
  const first = (more) => ({ part: { of: 1, i: 0, last: true, ...more.part }, text: more.text ?? '{"a":""}' });
  const broken = [
    [{ part: null }],
    [{ part: { i: 0, last: true }, text: '{}' }],
    [first({ part: { i: 1 } })],
    [first({ part: { hole: 0 } })],
    [{ part: { of: 1, i: 0, last: true }, s: 'x' }],
    [first({ part: { holes: [['a']] } }), { part: { of: 1, i: 1, hole: 1, last: true }, s: 'x' }],
    [first({ part: { holes: [['b']] } }), { part: { of: 1, i: 1, hole: 0, last: true }, s: 'x' }],
    [first({ part: { holes: [['a', 'length']] } }), { part: { of: 1, i: 1, hole: 0, last: true }, s: 'x' }],
    [first({ text: '{"a":"full"}', part: { holes: [['a']] } }), { part: { of: 1, i: 1, hole: 0, last: true }, s: 'x' }],
  ];
  for (const parts of broken) {
    const incoming = new Incoming();
    assert.throws(() => parts.forEach((part) => incoming.add(part)), PartsFault, JSON.stringify(parts));
  }
});
