// Compares keep.storage.local with chrome.storage.local in the page it is run in. Returns the
// differences as [what, real, ours]; an empty list if there are none.
async () => {
  const real = chrome.storage.local;
  const ours = keep.storage.local;
  const differences = [];
  const show = (value) =>
    JSON.stringify(value, (_key, part) =>
      part instanceof ArrayBuffer ? `buffer ${new Uint8Array(part)}` : part,
    ) ?? 'undefined';
  const outcome = async (run) => {
    let promise;
    try {
      promise = run();
    } catch (error) {
      return `throws ${error.name}: ${error.message}`;
    }
    try {
      return show(await promise);
    } catch (error) {
      return `rejects: ${error.message}`;
    }
  };
  const compare = async (what, run) => {
    const [expected, got] = [await outcome(() => run(real)), await outcome(() => run(ours))];
    if (expected !== got) differences.push([what, expected, got]);
  };

  const symbol = Symbol('s');
  const element = (tag) => document.createElement(tag);
  const cycle = () => {
    const o = { a: 1 };
    o.self = o;
    o.list = [o, { up: o }];
    return o;
  };
  class Fields {
    x = 1;
    #y = 2;
    get z() {
      return this.#y;
    }
  }
  class Target extends EventTarget {
    own = 1;
  }
  const own = (object) => Object.assign(object, { own: 1 });
  const gone = (view) => {
    structuredClone(view.buffer ?? view, { transfer: [view.buffer ?? view] });
    return view;
  };
  const changing = (change) => {
    const array = [0, 2, 3];
    return Object.defineProperty(array, 0, { enumerable: true, get: () => (change(array), 7) });
  };
  const values = {
    undefined: () => undefined,
    function: () => () => 1,
    class: () => Fields,
    symbol: () => symbol,
    bigint: () => 10n,
    NaN: () => NaN,
    infinity: () => -Infinity,
    null: () => null,
    booleans: () => [true, false],
    numbers: () => [0, 0.1, 1e308, 5e-324, 2 ** 53, 2 ** 31, 1e21, -1.5],
    text: () => 'a\0\u2028\ufffe\uffff"\\\n<>&',
    'half pair': () => 'x\ud83dy',
    'keys of half pairs': () => ({ '\ud83d': 1 }),
    date: () => new Date(),
    'date with a property': () => own(new Date()),
    'regular expression': () => /x/g,
    map: () => own(new Map([[1, 2]])),
    set: () => new Set([1]),
    weak: () => new WeakMap(),
    promise: () => own(Promise.resolve()),
    error: () => own(new Error('e')),
    exception: () => own(new DOMException('x')),
    url: () => new URL('http://a/'),
    blob: () => new Blob(['x']),
    image: () => new ImageData(1, 1),
    'number object': () => new Number(5),
    'boolean object': () => new Boolean(false),
    'bigint object': () => Object(1n),
    'symbol object': () => Object(symbol),
    'string object': () => new String('foo'),
    arguments: () =>
      (function () {
        return arguments;
      })(1, 2),
    instance: () => new Fields(),
    location: () => location,
    navigator: () => navigator,
    document: () => document,
    window: () => window,
    element: () => own(element('p')),
    event: () => new Event('x'),
    'event target': () => new Target(),
    nodes: () => document.querySelectorAll('*'),
    style: () => element('p').style,
    dataset: () => {
      const made = element('p');
      made.dataset.tone = 'x';
      return made.dataset;
    },
    'false tag': () => ({ [Symbol.toStringTag]: 'Event', a: 1 }),
    iterator: () => [][Symbol.iterator](),
    format: () => new Intl.NumberFormat(),
    proxy: () => new Proxy({ a: 1 }, {}),
    'no prototype': () => Object.assign(Object.create(null), { a: 1 }),
    inherited: () => Object.create({ a: 1 }),
    toJSON: () => ({ a: 1, toJSON: () => 5 }),
    'throwing getter': () => ({
      a: 1,
      get b() {
        throw new Error('no');
      },
    }),
    cycle,
    shared: () => {
      const s = { x: 1 };
      return [s, s];
    },
    'odd elements': () => [undefined, () => 1, symbol, 1n, NaN, , 'x', null],
    'array properties': () => own([1]),
    'array that gets shorter': () => changing((array) => (array.length = 2)),
    'array that gets longer': () => changing((array) => array.length < 6 && array.push(4)),
    'array that throws': () => changing(() => symbol.none.none),
    'sorted keys': () => ({ b: 1, a: 2, 10: 3, 9: 4, '\uffff': 5, '\u{1F600}': 6, '': 7 }),
    'proto key': () => JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
    'symbol key': () => ({ [symbol]: 1, a: 2 }),
    hidden: () => Object.defineProperty({ a: 1 }, 'h', { value: 2 }),
    frozen: () => Object.freeze({ a: [1] }),
    buffer: () => new ArrayBuffer(2),
    'typed array': () => new Uint8Array(2),
    view: () => ({ a: [new DataView(new ArrayBuffer(2))] }),
    'buffer that is gone': () => gone(new ArrayBuffer(2)),
  };
  for (const [what, make] of Object.entries(values)) {
    await compare(`value: ${what}`, async (area) => {
      await area.remove('v');
      await area.set({ v: make() });
      return area.get('v');
    });
    await compare(`bytes: ${what}`, (area) => area.getBytesInUse('v'));
  }
  await compare('value: negative zero', async (area) => {
    await area.set({ v: [-0, { a: -0 }] });
    return area.get('v');
  });
  await compare('skipped value keeps the old one', async (area) => {
    await area.set({ v: 'old' });
    await area.set({ v: undefined, w: () => 1 });
    return area.get(['v', 'w']);
  });

  const stored = { n: 0, f: false, e: '', none: null, o: { a: 1, deep: { x: 1, l: [1] } }, l: [1, 2] };
  for (const area of [real, ours]) await area.set(stored);
  const queries = {
    string: 'n',
    missing: 'missing',
    array: ['n', 'n', 'missing', 'e'],
    'empty array': [],
    'empty object': {},
    'undefined default': { n: undefined },
    'function default': { n: () => 1 },
    'merged defaults': { o: { b: 2, deep: { y: 2, l: [9] } }, l: [5] },
    'null defaults': { o: null, m: null },
    'odd defaults': { m: new Date(), z: NaN, y: { a: NaN, b: [NaN] } },
    'scalar defaults': { o: 5, n: { a: 1 } },
    'buffer defaults': { n: new Uint8Array(2), missing: new Uint8Array([1, 2]), o: { q: new ArrayBuffer(1) } },
    'gone buffer defaults': {
      missing: gone(new ArrayBuffer(2)), a: gone(new Uint8Array(2)), b: gone(new DataView(new ArrayBuffer(2))),
    },
    order: { z: 1, a: 2, n: 3 },
    'string object': new String('foo'),
    map: new Map(),
    date: new Date(),
    'typed array': new Uint8Array(2),
    cycle: cycle(),
    instance: new Fields(),
  };
  for (const [what, keys] of Object.entries(queries)) {
    await compare(`get: ${what}`, (area) => area.get(keys));
  }

  const calls = [
    ...[1, true, symbol, 1n, ['a', 1], [null], [['a']], [, 'a']].map((keys) => ['get', [keys]]),
    ...[['a', {}], ['a', undefined], ['a', null], ['a', null, 1]].map((args) => ['get', args]),
    ...[[], [null], [[]], ['x'], [1], [new Date()], [new Map()], [{}, 'x'], [{}, null], [{}]].map(
      (args) => ['set', args],
    ),
    ...[[], [null], [{}], [1], [['a', 1]], [[]], ['missing']].map((args) => ['remove', args]),
    ...[[{}], ['x'], [null], [undefined]].map((args) => ['clear', args]),
    ...[['x'], [null]].map((args) => ['getKeys', args]),
    ...[[{}], [1], [[1]], [[]], ['missing']].map((args) => ['getBytesInUse', args]),
  ];
  for (const [method, args] of calls) {
    const text = `${method}(${args.map((arg) => (typeof arg === 'symbol' ? 'symbol' : typeof arg === 'bigint' ? '1n' : show(arg)))})`;
    await compare(text, (area) => area[method](...args));
  }
  for (const method of ['get', 'getKeys', 'set', 'remove', 'clear', 'getBytesInUse']) {
    const detached = async (area) => {
      const taken = area[method];
      try {
        taken('x');
      } catch (error) {
        return error.name;
      }
      return 'nothing thrown';
    };
    await compare(`detached ${method}`, detached);
  }

  for (const [what, make] of [
    ['buffer', () => new ArrayBuffer(2)],
    ['typed array', () => new Uint8Array(2)],
    ['view', () => new DataView(new ArrayBuffer(2))],
  ]) {
    await compare(`session: gone ${what}`, async (area) => {
      const session = area === real ? chrome.storage.session : keep.storage.session;
      await session.set({ gone: gone(make()) });
      const got = await session.get('gone');
      await session.remove('gone');
      return got;
    });
  }

  await compare('calls take effect in call order', async (area) => {
    area.set({ v: 1, w: 2 });
    const first = area.get('v');
    area.set({ v: 2 });
    const second = area.get('v');
    const bytes = area.getBytesInUse('v');
    area.remove('v');
    const third = area.get('v');
    return [await first, await second, await bytes, await third];
  });
  return differences;
};
