// Runs one seeded sequence of calls against a real area and against ours, in the page it is run in,
// and compares results, rejections, thrown texts, events and the order of keys. Some batches of calls are made
// with callbacks. Returns what differed.
//
// options: {seed, area: 'local' | 'session', calls, seconds, wanted}; it ends after so many calls, or so
// many seconds. `wanted` are differences that are none, as 'session.getBytesInUse result'. What it
// returns: {calls, events, wanted: how many, differences: [{call, part, steps, args, real, ours}]}.
async ({ seed, area, calls: mostCalls, seconds, wanted }) => {
  const real = chrome.storage[area];
  const ours = keep.storage[area];

  // --- chance ------------------------------------------------------------------------------
  const dice = (state) => {
    const next = () => {
      state = (state + 0x6d2b79f5) | 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    const below = (n) => Math.floor(next() * n);
    return { next, below, of: (list) => list[below(list.length)], chance: (p) => next() < p };
  };

  // --- values ------------------------------------------------------------------------------
  const KEYS = [
    'a', 'b', 'c', 'A', '10', '9', '4294967295', '-1', '', ' ', 'a.b', 'é', '中', '😀', '\uffff', '\ue000', '\x01',
    '"', '\\', '<', '\u2028', '\x7f', '\ud83d', '__proto__', 'constructor', 'toString', 'length', 'k'.repeat(300),
  ];
  const UNITS = [
    'a', 'Z', '0', ' ', '"', '\\', '/', '<', '>', '&', "'", '=', '\0', '\x01', '\b', '\t', '\n', '\v', '\f', '\r', '\x1f',
    '\x7f', '\x80', '\x9f', '\xa0', '\xad', 'é', 'ß', '\u0300', '\u200b', '\u2028', '\u2029', '中', '\ud800', '\udfff',
    '\ufdd0', '\ufeff', '\ufffd', '\ufffe', '\uffff', '😀', '\u{1fffe}', '\u{10ffff}',
  ];
  const NUMBERS = [
    0, -0, 1, -1, 42, 0.1, -1.5, 1 / 3, 1e-5, 1e-6, 1e-7, 1.5e-7, 123456.789, 1e5, 1e15, 1e16, 1e20, 1e21, 1.5e21, 1e22, 1e100,
    1e308, -1e308, 5e-324, 2.2250738585072014e-308, Number.MAX_VALUE, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1,
    2 ** 32, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, -(2 ** 53), 2 ** 63, 2 ** 64, 1234567890123, 123456789012345680000,
    0.1 + 0.2, 4.35, 100, 1000000, 0.000001234, 123e-20, NaN, Infinity, -Infinity,
  ];
  const text = (d) => {
    const length = d.chance(0.02) ? d.below(3000) : d.below(12);
    return Array.from({ length }, () => d.of(UNITS)).join('');
  };
  const number = (d) => {
    if (d.chance(0.6)) return d.of(NUMBERS);
    if (d.chance(0.5)) return d.below(2000) - 1000;
    const bits = new DataView(new ArrayBuffer(8));
    bits.setUint32(0, d.next() * 2 ** 32);
    bits.setUint32(4, d.next() * 2 ** 32);
    return d.chance(0.5) ? bits.getFloat64(0) : Math.round((d.next() - 0.5) * 10 ** d.below(22));
  };
  const bytes = (d) => Uint8Array.from({ length: d.below(20) }, () => d.below(256));
  class Fields {
    constructor(d) {
      this.b = number(d);
      this.a = 1;
    }
    #hidden = 2;
    get hidden() {
      return this.#hidden;
    }
  }
  // Not in keys: NUL (see docs/differences.md).
  const key = (d) => (d.chance(0.8) ? d.of(KEYS) : text(d).replaceAll('\0', ''));
  const object = (d, depth) => {
    const made = d.chance(0.1) ? Object.create(d.chance(0.5) ? null : { inherited: 1 }) : {};
    for (let left = d.below(5); left > 0; left -= 1) {
      Object.defineProperty(made, key(d), {
        value: value(d, depth + 1), enumerable: !d.chance(0.03), writable: true, configurable: true,
      });
    }
    return made;
  };
  const array = (d, depth) => {
    const made = Array.from({ length: d.below(5) }, () => value(d, depth + 1));
    if (d.chance(0.1)) made.length += d.below(3);
    if (d.chance(0.05)) made.extra = 1;
    return made;
  };
  const odd = [
    () => undefined,
    () => () => 1,
    () => Fields,
    () => Symbol('s'),
    () => 10n,
    () => new Date(0),
    () => Object.assign(new Date(0), { own: 1 }),
    () => /x/g,
    () => Object.assign(new Map([[1, 2]]), { own: 1 }),
    () => new Set([1]),
    () => new WeakMap(),
    () => Object.assign(new Error('e'), { own: 1 }),
    () => new DOMException('x'),
    () => Promise.resolve(1),
    () => new URL('http://a/'),
    () => new Blob(['x']),
    () => new Number(5),
    () => new Boolean(true),
    () => Object(1n),
    () => Object(Symbol('s')),
    () => new String('foo'),
    () => (function () { return arguments; })(1, 'two'),
    (d) => new Fields(d),
    () => location,
    () => document.createElement('p'),
    () => new Intl.NumberFormat(),
    () => [1][Symbol.iterator](),
    () => ({ a: 1, toJSON: () => 5 }),
    () => ({ a: 1, get b() { throw new Error('no'); } }),
    () => ({ get count() { return 3; } }),
    (d, depth) => new Proxy(object(d, depth), {}),
    () => Object.freeze({ z: 1, a: [1] }),
    (d, depth) => { const o = object(d, depth); o.self = o; return o; },
    (d, depth) => { const o = { list: [] }; o.list.push({ up: o, down: value(d, depth + 1) }, o.list); return o; },
    (d, depth) => { const shared = object(d, depth); return { x: shared, y: [shared, shared] }; },
  ];
  const binary = [
    (d) => bytes(d).buffer,
    (d) => bytes(d),
    (d) => new DataView(bytes(d).buffer),
    (d) => new Uint16Array([d.below(65536), 1]),
    (d) => new Float64Array([number(d)]),
    () => new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
  ];
  const POOL = [0, 1, '', '0', false, null, [], {}, [1, 2], { a: 1, b: { c: [2] } }, 'text', '\0sidekeep:text:', '\0sidekeep:buffer:AQI='];
  const shuffled = (made) => {
    if (typeof made !== 'object' || made === null) return made;
    if (Array.isArray(made)) return made.map(shuffled);
    return Object.fromEntries(Object.entries(made).reverse().map(([key, part]) => [key, shuffled(part)]));
  };
  const value = (d, depth = 0) => {
    if (depth < 2 && d.chance(0.35)) return shuffled(d.of(POOL));
    const kind = d.next();
    if (kind < 0.2) return number(d);
    if (kind < 0.4) return text(d);
    if (kind < 0.48) return d.of([true, false, null]);
    if (kind < 0.6 && depth < 5) return array(d, depth);
    if (kind < 0.78 && depth < 5) return object(d, depth);
    if (kind < 0.96) return d.of(odd)(d, depth);
    return d.of(binary)(d);
  };

  // --- arguments ---------------------------------------------------------------------------
  const items = (d) => {
    const made = {};
    for (let left = 1 + d.below(4); left > 0; left -= 1) {
      Object.defineProperty(made, d.of(KEYS), { value: value(d), enumerable: true, writable: true, configurable: true });
    }
    return made;
  };
  const keyList = (d) => Array.from({ length: d.below(6) }, () => key(d));
  const wrong = (d) => d.of([
    1, true, NaN, Symbol('s'), 1n, [1], ['a', 1], [null], [undefined], [['a']], [, 'a'],
  ]);
  const keysArgument = (d, withObjects) => {
    const kind = d.next();
    if (kind < 0.35) return d.of(KEYS);
    if (kind < 0.6) return keyList(d);
    if (kind < 0.65) return null;
    if (kind < 0.7) return undefined;
    if (kind < 0.74) return wrong(d);
    if (!withObjects) return kind < 0.76 ? {} : d.of(KEYS);
    if (kind < 0.95) return items(d);
    const exotic = d.of(odd)(d, 1);
    return typeof exotic === 'function' ? {} : exotic; // a function would be a callback
  };
  const METHODS = {
    set: [45, (d) => {
      const kind = d.next();
      if (kind < 0.93) return [items(d)];
      if (kind < 0.96) return [d.of(odd)(d, 1)];
      return d.of([[], [null], [[]], ['x'], [1], [{}], [{}, 'x'], [{}, {}], [{}, null], [{}, undefined], [{}, null, 1], [new Map([[1, 2]])]]);
    }],
    get: [22, (d) => (d.chance(0.03) ? d.of([[], ['a', {}], ['a', undefined], ['a', null, 1]]) : [keysArgument(d, true)])],
    remove: [14, (d) => (d.chance(0.05) ? d.of([[], [null], [{}], ['a', 'b'], ['a', null]]) : [d.chance(0.5) ? d.of(KEYS) : d.chance(0.9) ? keyList(d) : wrong(d)])],
    getKeys: [5, (d) => (d.chance(0.1) ? d.of([['x'], [{}], [null], [undefined, 1]]) : [])],
    getBytesInUse: [12, (d) => (d.chance(0.05) ? d.of([[], ['a', 'b'], [{}]]) : [keysArgument(d, false)])],
    clear: [2, (d) => (d.chance(0.2) ? d.of([['x'], [{}], [null], [undefined, 1]]) : [])],
  };
  const method = (d) => {
    let point = d.next() * Object.values(METHODS).reduce((sum, [weight]) => sum + weight, 0);
    for (const [name, [weight]] of Object.entries(METHODS)) {
      point -= weight;
      if (point < 0) return name;
    }
    return 'get';
  };

  // --- what is compared --------------------------------------------------------------------
  const show = (shown, seen = []) => {
    if (typeof shown === 'string') return JSON.stringify(shown);
    if (Object.is(shown, -0)) return '-0';
    if (typeof shown === 'bigint') return `${shown}n`;
    if (typeof shown !== 'object' || shown === null) return String(shown);
    if (seen.includes(shown)) return 'cycle';
    if (ArrayBuffer.isView(shown)) return `${shown.constructor.name} of ${show(shown.buffer)}`;
    if (shown instanceof ArrayBuffer) return `buffer(${new Uint8Array(shown)})`;
    const inside = [...seen, shown];
    if (Array.isArray(shown)) return `[${Array.from(shown, (one) => show(one, inside)).join(',')}]`;
    let keys;
    try {
      keys = Object.entries(shown);
    } catch {
      return 'object with a getter that throws';
    }
    const name = Object.getPrototypeOf(shown)?.constructor?.name;
    const fields = keys.map(([key, part]) => `${JSON.stringify(key)}:${show(part, inside)}`).join(',');
    return `${name === 'Object' ? '' : name}{${fields}}`;
  };
  // A call with a callback, as a promise; what is wrong throws at once.
  const calledBack = (target, name, args) => {
    let settle;
    const promise = new Promise((...both) => (settle = both));
    const returned = target[name](...args, (...given) => {
      const { lastError } = chrome.runtime;
      if (lastError) settle[1](lastError);
      else settle[0](name === 'get' || name.startsWith('getK') ? given[0] : given.length);
    });
    if (returned !== undefined) settle[0](`returned ${returned}`);
    return promise;
  };
  const side = (storage, target) => {
    const log = [];
    const onArea = (...args) => log.push(`area ${args.map((arg) => show(arg)).join(' ')}`);
    const onAll = (...args) => {
      if (args[1] === area) log.push(`all ${args.map((arg) => show(arg)).join(' ')}`);
    };
    storage.onChanged.addListener(onAll);
    target.onChanged.addListener(onArea);
    return {
      log,
      stop: () => {
        storage.onChanged.removeListener(onAll);
        target.onChanged.removeListener(onArea);
      },
      run: async (steps, withCallbacks) => {
        const order = [];
        const outcomes = await Promise.all(steps.map(async ({ name, argumentSeed }, index) => {
          const args = METHODS[name][1](dice(argumentSeed));
          let promise;
          try {
            promise = withCallbacks ? calledBack(target, name, args) : target[name](...args);
          } catch (error) {
            return `throws ${error.name}: ${error.message}`;
          }
          const outcome = await promise.then(show, () => 'rejects');
          order.push(index);
          return outcome;
        }));
        return { outcomes, order: order.join() };
      },
    };
  };

  // --- the run -----------------------------------------------------------------------------
  await ours.get('a'); // the stub has made its own keys
  const own = await real.get(['sidekeep:profile', 'sidekeep:run']); // the stub's own, put back at the end
  await Promise.all([real.clear(), ours.clear()]);
  const sides = [side(chrome.storage, real), side(keep.storage, ours)];
  await ours.get('a'); // the watch is answered
  const d = dice(seed);
  const differences = [];
  let calls = 0;
  let events = 0;
  let wantedOnes = 0;
  const settled = async () => {
    for (let left = 200; left > 0 && sides[0].log.length !== sides[1].log.length; left -= 1) {
      await new Promise((done) => setTimeout(done, 10));
    }
  };
  const end = performance.now() + seconds * 1000;
  while (calls < mostCalls && performance.now() < end && differences.length < 20) {
    const steps = Array.from({ length: d.chance(0.7) ? 1 + d.below(3) : 1 + d.below(12) }, () => ({
      name: method(d), argumentSeed: Math.floor(d.next() * 2 ** 32),
    }));
    calls += steps.length;
    const withCallbacks = d.chance(0.3);
    const [expected, got] = [await sides[0].run(steps, withCallbacks), await sides[1].run(steps, withCallbacks)];
    await settled();
    const described = () => steps.map(({ name, argumentSeed }) => `${name}(${METHODS[name][1](dice(argumentSeed)).map((arg) => show(arg)).join(', ')})`);
    const before = differences.length;
    steps.forEach(({ name }, index) => {
      if (expected.outcomes[index] === got.outcomes[index]) return;
      if (wanted.includes(`${area}.${name} result`)) {
        wantedOnes += 1;
        return;
      }
      differences.push({
        call: `${area}.${name}`, part: 'result', args: described()[index].slice(-2000), steps: described().slice(0, index).join('; ').slice(-2000),
        real: expected.outcomes[index].slice(0, 2000), ours: got.outcomes[index].slice(0, 2000),
      });
    });
    if (expected.order !== got.order) {
      differences.push({ call: `${area}.*`, part: 'order', args: described().join('; ').slice(-2000), real: expected.order, ours: got.order });
    }
    const [realLog, ourLog] = sides.map((one) => one.log.splice(0));
    events += realLog.length;
    if (realLog.join('\n') !== ourLog.join('\n')) {
      differences.push({
        call: `${area}.onChanged`, part: 'event', args: described().join('; ').slice(-2000),
        real: realLog.join('\n').slice(0, 2000), ours: ourLog.join('\n').slice(0, 2000),
      });
    }
    if (differences.length > before) {
      // What is stored now, one by one: it says most where sizes differ.
      const stored = Object.entries(await ours.get());
      for (const [key, kept] of stored) {
        const sizes = await Promise.all([real, ours].map((target) => target.getBytesInUse(key)));
        if (area === 'local' && sizes[0] !== sizes[1]) {
          differences.at(-1).sizes = `${JSON.stringify(key)}: ${show(kept)}`.slice(0, 2000);
        }
      }
      // So that one difference is told once: both begin anew.
      await Promise.all([real.clear(), ours.clear()]);
      await settled();
      for (const one of sides) one.log.length = 0;
    }
  }
  for (const one of sides) one.stop();
  await Promise.all([real.clear(), ours.clear()]);
  if (Object.keys(own).length > 0) await real.set(own);
  return { calls, events, wanted: wantedOnes, differences };
};
