/** Conversion of values: what the real `local` area does, and the bounds of the size. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { decodeBuffers } from '../../extension_stub/sidekeep/buffers.js';
import { mergeDefaults } from '../../extension_stub/sidekeep/trees.js';
import { convertDefaults, convertItems, convertSessionItems, DEPTH_LIMIT, Measure } from '../../extension_stub/sidekeep/values.js';

const convert = (value) => convertItems({ value }, new Measure()).value;
const json = (value) => JSON.stringify(convertItems({ value }, new Measure()));

test('what JSON cannot carry is skipped as a property and null as an element', () => {
  const odd = [undefined, () => 1, class {}, Symbol('s'), 10n, NaN, Infinity, -Infinity];
  for (const value of odd) {
    assert.deepEqual(convertItems({ value, kept: 1 }, new Measure()), { kept: 1 });
    assert.deepEqual(convert({ value, kept: 1 }), { kept: 1 });
    assert.deepEqual(convert([value, 1]), [null, 1]);
  }
});

test('scalars come through, and -0 is 0', () => {
  for (const value of [null, true, false, 0, 0.1, 1e308, 5e-324, 2 ** 53, '', 'a\0\u2028\uffff']) {
    assert.equal(convert(value), value);
  }
  assert.ok(Object.is(convert(-0), 0));
});

test('half surrogate pairs become U+FFFD in values and keys', () => {
  assert.equal(convert('x\ud83dy'), 'x\ufffdy');
  assert.equal(convert('😀'), '😀');
  assert.deepEqual(convert({ '\ud83d': 1 }), { '\ufffd': 1 });
});

test('keys are sorted by code point at every level', () => {
  const value = { '\u{1f600}': 1, '\uffff': 2, b: { z: 1, a: 2 }, a: 3 };
  assert.equal(json(value), '{"value":{"a":3,"b":{"a":2,"z":1},"\uffff":2,"\u{1f600}":1}}');
});

test('objects of classes become their own enumerable fields, exotic ones become {}', () => {
  class Point {
    x = 1;
    #hidden = 2;
    get y() {
      return this.#hidden;
    }
  }
  assert.deepEqual(convert(new Point()), { x: 1 });
  assert.deepEqual(convert(Object.assign(new Date(0), { own: 1 })), { own: 1 });
  for (const value of [new Date(), /x/, new Map([[1, 2]]), new Set([1]), new Error('e'), new URL('http://a/'), new Number(5), new Event('x')]) {
    assert.deepEqual(convert(value), {});
  }
  assert.deepEqual(convert(new String('ab')), { 0: 'a', 1: 'b' });
  assert.deepEqual(convert({ a: 1, toJSON: () => 5 }), { a: 1 });
  assert.deepEqual(convert(Object.create({ inherited: 1 })), {});
});

test('a getter is read once, and one that throws gives null', () => {
  let reads = 0;
  const value = {
    get counted() {
      reads += 1;
      return reads;
    },
    get broken() {
      throw new Error('no');
    },
  };
  assert.deepEqual(convert(value), { broken: null, counted: 1 });
  assert.equal(reads, 1);
});

test('a back reference is null and a shared one is copied', () => {
  const value = { name: 'o' };
  value.self = value;
  value.list = [value, { up: value }];
  assert.deepEqual(convert(value), { list: [null, { up: null }], name: 'o', self: null });
  const shared = { x: 1 };
  const both = convert([shared, shared]);
  assert.deepEqual(both, [{ x: 1 }, { x: 1 }]);
  assert.notEqual(both[0], both[1]);
});

test('arrays keep their length, and lose named properties', () => {
  const sparse = Object.assign([1, , 3], { named: 1 }); // eslint-disable-line no-sparse-arrays
  sparse.length = 4;
  assert.deepEqual(convert(sparse), [1, null, 3, null]);
});

test('an array whose getters shorten it, lengthen it or throw is read as it is at that moment', () => {
  const changed = (change) => {
    const array = [0, 2, 3];
    Object.defineProperty(array, 0, { enumerable: true, get: () => (change(array), 7) });
    return array;
  };
  assert.deepEqual(convert(changed((array) => (array.length = 2))), [7, 2]);
  assert.deepEqual(convert(changed((array) => array.push(4))), [7, 2, 3, 4]);
  assert.deepEqual(convert(changed(() => assert.fail())), [null, 2, 3]);
  const measure = new Measure();
  const bytes = JSON.stringify(convertItems({ v: changed((array) => array.push(4, undefined)) }, measure)).length;
  assert.ok(measure.most >= bytes);
});

test('binary buffers fail the whole call', () => {
  for (const value of [new ArrayBuffer(1), new Uint8Array(1), new DataView(new ArrayBuffer(1))]) {
    assert.throws(() => convert({ deep: [value] }), {
      kind: 'invalidParams',
      message: 'Cannot serialize value to JSON',
    });
  }
});

test('too deep nesting is refused with an error, never with a full stack', () => {
  const nested = (depth) => {
    let value = 1;
    for (let level = 0; level < depth; level += 1) value = [value];
    return value;
  };
  assert.doesNotThrow(() => convert(nested(DEPTH_LIMIT - 1)));
  assert.throws(() => convert(nested(DEPTH_LIMIT)), { kind: 'tooLarge' });
  assert.throws(() => convert(nested(100_000)), { kind: 'tooLarge' });
});

test('__proto__ is a key like any other', () => {
  const value = JSON.parse('{"__proto__": {"polluted": 1}, "a": 1}');
  assert.equal(json(value), '{"value":{"__proto__":{"polluted":1},"a":1}}');
  assert.equal({}.polluted, undefined);
});

test('later changes of the original do not reach what was converted', () => {
  const original = { list: [1, { a: 1 }] };
  const converted = convert(original);
  original.list[1].a = 2;
  original.list.push(3);
  assert.deepEqual(converted, { list: [1, { a: 1 }] });
});

test('the size is bounded from both sides', () => {
  const values = [
    {},
    { a: [null, true, false, -1.2345678901234567e-300, 'x'] },
    { '"\\\n\u0001': '"\\\n\u0001'.repeat(50), é: '中文😀' },
    Array.from({ length: 300 }, (_, index) => ({ index, none: undefined, list: [undefined, []] })),
  ];
  for (const value of values) {
    const measure = new Measure();
    const bytes = Buffer.byteLength(JSON.stringify(convertItems({ value }, measure)));
    assert.ok(measure.most >= bytes, `${measure.most} < ${bytes}`);
    assert.ok(measure.units <= bytes, `${measure.units} > ${bytes}`);
  }
});

test('defaults are merged under stored objects at every level, arrays and scalars are not', () => {
  const defaults = { z: 1, o: { b: 2, deep: { y: 2, l: [9] } }, list: [5], n: { a: 1 }, none: null };
  const stored = { o: { a: 1, deep: { x: 1, l: [1] } }, list: [1, 2], n: 0, none: false };
  assert.equal(
    JSON.stringify(mergeDefaults(defaults, stored)),
    '{"list":[1,2],"n":0,"none":false,"o":{"a":1,"b":2,"deep":{"l":[1],"x":1,"y":2}},"z":1}',
  );
});

test('binary defaults come back as buffers', () => {
  const { view } = convertDefaults({ view: new Uint8Array([1, 2, 3]).subarray(1) });
  assert.ok(view instanceof ArrayBuffer);
  assert.deepEqual([...new Uint8Array(view)], [2, 3]);
});

test('a buffer whose memory went elsewhere is empty in the session area and among defaults', () => {
  const gone = (make) => {
    const buffer = new ArrayBuffer(8);
    const value = make(buffer);
    structuredClone(buffer, { transfer: [buffer] });
    return value;
  };
  for (const make of [(buffer) => buffer, (buffer) => new Uint8Array(buffer), (buffer) => new DataView(buffer, 2)]) {
    const stored = decodeBuffers(convertSessionItems({ v: gone(make) }, new Measure())).v;
    assert.ok(stored instanceof ArrayBuffer);
    assert.equal(stored.byteLength, 0);
    assert.equal(convertDefaults({ v: gone(make) }).v.byteLength, 0);
    assert.throws(() => convert(gone(make)), { kind: 'invalidParams' });
  }
});
