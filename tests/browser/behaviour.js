// Says how a storage area behaves beside the values it keeps: its shape, whom its methods may be called
// on, which arguments go together, callbacks, listeners. The same program asks the real areas and ours.
//
// options: {storage: 'chrome' | 'keep', area: 'local' | 'session'}. What it returns: an object of reports
// that must be equal. What a report cannot hold is said on the console, which the test reads.
async ({ storage: owner, area: name }) => {
  const storage = owner === 'chrome' ? chrome.storage : keep.storage;
  const area = storage[name];
  const other = storage[name === 'local' ? 'session' : 'local'];
  const reports = {};
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const rest = async () => {
    await area.getKeys(); // after the calls before it
    await pause(30);
  };
  const outcome = (run) => {
    let result;
    try {
      result = run();
    } catch (error) {
      return `throws ${error.name}: ${error.message}`;
    }
    if (!(result instanceof Promise)) return typeof result;
    result.catch(() => {});
    return 'promise';
  };
  const settled = async (run) => {
    try {
      return await run();
    } catch (error) {
      return `rejects: ${error.message}`;
    }
  };
  const members = (object) =>
    Reflect.ownKeys(object).map((key) => {
      const { enumerable, configurable, writable, value } = Object.getOwnPropertyDescriptor(object, key);
      const flags = `${enumerable} ${configurable} ${writable ?? 'accessor'} ${typeof value}`;
      if (typeof value !== 'function') return `${String(key)} ${flags}`;
      return `${String(key)} ${flags} ${value.name} ${value.length} ${'prototype' in value}`;
    });
  await area.clear();
  const { runtime } = chrome;
  const failing = () => ({ v: name === 'local' ? new Uint8Array(1) : 'x'.repeat(11_000_000) });

  // --- shape -------------------------------------------------------------------------------
  reports.members = members(area);
  reports.enumerated = [Object.keys(area), JSON.stringify(area), Object.isExtensible(area)];
  reports.kind = [
    Object.prototype.toString.call(area),
    area.constructor.name,
    area.constructor.length,
    area.constructor === other.constructor,
    Object.getPrototypeOf(area) === area.constructor.prototype,
    Object.getPrototypeOf(Object.getPrototypeOf(area)) === Object.prototype,
    area instanceof area.constructor,
    area.get === other.get,
  ];
  reports.constructing = [
    () => new area.constructor(),
    () => area.constructor(),
    () => new area.get(),
    () => structuredClone(area),
  ].map((run) => outcome(run).replace(/DataCloneError: [^]*/, 'DataCloneError'));
  reports.identity = [
    storage[name] === storage[name],
    area.onChanged === area.onChanged,
    storage.onChanged === storage.onChanged,
    area.onChanged === storage.onChanged,
    area.get === area.get,
  ];
  reports.levels = [JSON.stringify(storage.AccessLevel), members(storage.AccessLevel).length];
  area.mine = 1;
  reports.extended = [area.mine, delete area.mine, Object.keys(area).length];
  const get = area.get;
  reports.replaced = [(area.get = () => 'replaced')(), (area.get = get) === area.get, typeof area.get];
  const size = area.QUOTA_BYTES;
  area.QUOTA_BYTES = 1;
  reports.quota = [size, area.QUOTA_BYTES, await settled(() => area.set({ a: 'longer than one byte' }))];
  area.QUOTA_BYTES = size;
  reports.assigned = [(area.onChanged = 5), typeof area.onChanged];

  // --- whom the methods may be called on ---------------------------------------------------
  const METHODS = ['get', 'getKeys', 'set', 'remove', 'clear', 'getBytesInUse', 'setAccessLevel'];
  for (const method of METHODS) {
    const taken = area[method];
    reports[`receivers of ${method}`] = [
      () => taken('x'),
      () => taken.call(null, 'x'),
      () => taken.call({}, 'x'),
      () => taken.call(other, 'x'),
      () => taken.call(Object.create(area), 'x'),
      () => taken.call(new Proxy(area, {}), 'x'),
      () => taken.call(storage, 'x'),
    ].map(outcome);
  }
  reports.bound = await settled(() => area.get.bind(area)('missing'));
  const { get: getter } = Object.getOwnPropertyDescriptor(area, 'onChanged');
  reports['receivers of onChanged'] = [() => getter.call({}), () => getter.call(other), () => getter.call(area)].map(outcome);

  // --- arguments ---------------------------------------------------------------------------
  const f = () => {};
  const thrower = () => ({
    get a() {
      throw new Error('boom');
    },
  });
  const revoked = () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  const values = {
    undefined: () => undefined, null: () => null, number: () => 1, NaN: () => NaN, text: () => 'a', true: () => true,
    symbol: () => Symbol('s'), bigint: () => 1n, '{}': () => ({}), '[]': () => [], "['a']": () => ['a'], '[1]': () => [1],
    "[,'a']": () => [, 'a'], function: () => f, 'async function': () => async () => {}, date: () => new Date(0), regexp: () => /x/, map: () => new Map(),
    proxy: () => new Proxy({}, {}), 'proxy of a function': () => new Proxy(f, {}), revoked, thrower,
    'text object': () => new String('q'), instance: () => new (class { a = 1; })(), frozen: () => Object.freeze({ a: 1 }),
  };
  const seconds = {
    undefined: () => undefined, null: () => null, function: () => f, '{}': () => ({}), text: () => 'x', number: () => 1, '[]': () => [],
    date: () => new Date(0), 'proxy of a function': () => new Proxy(f, {}), true: () => true,
  };
  const level = (accessLevel) => () => ({ accessLevel });
  const levels = {
    unknown: level('X'), one: level(1), minus: level(-5), zero: level(-0), fraction: level(1.5), large: level(1e20), NaN: level(NaN), undefined: level(undefined), null: level(null),
    object: level({}), array: level([]), true: level(true), function: level(f), symbol: level(Symbol('s')), bigint: level(1n),
    'text object': level(new String('TRUSTED_CONTEXTS')), date: level(new Date(0)), inherited: () => Object.create({ accessLevel: 'TRUSTED_CONTEXTS' }),
    more: () => ({ accessLevel: 'TRUSTED_CONTEXTS', x: 1 }), 'more before': () => ({ x: 1, accessLevel: 'TRUSTED_CONTEXTS' }),
    'two faults': () => ({ accessLevel: 'X', x: 1 }), 'two faults, turned': () => ({ x: 1, accessLevel: 'X' }), 'absent one': () => ({ accessLevel: 'TRUSTED_CONTEXTS', x: undefined }),
    throwing: () => ({ get accessLevel() { throw new Error('b'); } }), lower: level('trusted_contexts'), typed: () => new Uint8Array(1),
    hidden: () => Object.defineProperty({}, 'accessLevel', { value: 'TRUSTED_CONTEXTS' }),
    symbols: () => ({ accessLevel: 'X', [Symbol('s')]: 1 }),
  };
  for (const method of METHODS) {
    const report = {};
    const tried = (what, ...args) => {
      report[what] = outcome(() => area[method](...args));
    };
    tried('()');
    for (const [what, make] of Object.entries(values)) {
      tried(what, make());
      for (const [more, second] of Object.entries(seconds)) tried(`${what}, ${more}`, make(), second());
    }
    for (const first of [undefined, null, 'a', {}, f]) {
      for (const second of [undefined, null, f]) {
        for (const third of [undefined, null, f, 1]) {
          tried([first, second, third].map((one) => typeof one).join(), first, second, third);
        }
      }
    }
    tried('four', 'a', f, f, f);
    if (method === 'setAccessLevel') for (const [what, make] of Object.entries(levels)) tried(what, make());
    for (const [what, result] of Object.entries(report)) reports[`${method}(${what})`] = result;
    await settled(() => area.getKeys());
  }
  await settled(() => area.clear());
  await pause(100);

  // --- callbacks ---------------------------------------------------------------------------
  await area.set({ a: 1, b: 2 });
  const called = (run) =>
    new Promise((done) => {
      run((...args) => done([args, 'lastError' in runtime, runtime.lastError?.message]));
    });
  reports.callbacks = [
    await called((done) => area.get('a', done)),
    await called((done) => area.get(done)),
    await called((done) => area.get(null, done)),
    await called((done) => area.get({ a: 0, c: 3 }, done)),
    await called((done) => area.get(undefined, done)),
    await called((done) => area.set({ c: 3 }, done)),
    await called((done) => area.remove('c', done)),
    await called((done) => area.remove([], done)),
    await called((done) => area.getKeys(done)),
    await called((done) => area.clear(done)),
    await called((done) => area.getKeys(done)),
    await called((done) => area.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' }, done)),
    (await called((done) => area.getBytesInUse(done)))[0].length,
    (await called((done) => area.getBytesInUse('a', done)))[0].length,
  ];
  let after = false;
  const late = new Promise((done) => area.get('a', () => done(after)));
  after = true;
  reports['a callback comes later'] = [await late, area.get('a', f)];
  reports['receiver of a callback'] = await new Promise((done) => {
    area.get('a', function () {
      done([this === globalThis, typeof this]);
    });
  });
  reports['receiver of a strict callback'] = await new Promise((done) => {
    area.get('a', function () {
      'use strict';
      done(this === globalThis);
    });
  });
  const now = 'lastError' in runtime;
  const inside = await new Promise((done) => {
    area.set(failing(), function () {
      const { enumerable, configurable } = Object.getOwnPropertyDescriptor(runtime, 'lastError');
      const { lastError } = runtime;
      done({
        count: arguments.length, keys: Reflect.ownKeys(lastError), same: runtime.lastError === lastError, message: lastError.message,
        enumerable, configurable, own: Object.keys(runtime).includes('lastError'), error: lastError instanceof Error,
      });
    });
  });
  await pause(20);
  reports.lastError = [now, inside, 'lastError' in runtime];
  reports['lastError of a promise'] = await area.set(failing()).catch(() => ['lastError' in runtime]);
  reports['lastError of a nested call'] = await new Promise((done) => {
    area.set(failing(), () => {
      const outer = runtime.lastError !== undefined;
      area.get('a', () => done([outer, 'lastError' in runtime]));
    });
  });
  await area.clear();
  reports['a failed call stores nothing'] = await new Promise((done) => {
    area.set({ good: 1, ...failing() }, () => done(runtime.lastError !== undefined && area.getKeys()));
  });
  const faults = [];
  const note = (event) => {
    event.preventDefault();
    faults.push(`${event.type} ${event.reason?.message ?? event.message}`);
  };
  addEventListener('error', note);
  addEventListener('unhandledrejection', note);
  console.log('mark: not looked at');
  area.set(failing(), () => {});
  await rest();
  console.log('mark: looked at');
  area.set(failing(), () => void runtime.lastError);
  await rest();
  console.log('mark: throws');
  area.set({ thrown: 1 }, () => { throw new Error('thrown in a callback'); });
  await rest();
  console.log('mark: throws no error');
  area.get('a', () => { throw 5; });
  await rest();
  console.log('mark: throws and looks');
  area.set(failing(), () => { throw new Error(runtime.lastError.message.length > 0); });
  await rest();
  console.log('mark: throws and does not look');
  area.set(failing(), () => { throw new Error('blind'); });
  await rest();
  console.log('mark: rejects');
  area.get('a', async () => { throw new Error('rejected in a callback'); });
  await rest();
  console.log('mark: one throws, the next runs');
  area.get('a', () => { throw new Error('first'); });
  reports['the next callback runs'] = await called((done) => area.getKeys(done));
  console.log('mark: end');
  reports['what a callback throws'] = [await area.get('thrown'), 'lastError' in runtime];
  const order = [];
  area.set({ a: 1 }, () => order.push('callback 1'));
  area.get('a').then(() => order.push('promise 2'));
  area.set({ a: 2 }, () => order.push('callback 3'));
  area.getKeys(() => order.push('callback 4'));
  area.get('a', ({ a }) => order.push(`callback 5 ${a}`));
  await pause(80);
  // Between the two forms the real areas keep no order.
  reports.order = [order.filter((one) => one.startsWith('callback')), order.length];

  // --- listeners ---------------------------------------------------------------------------
  const event = area.onChanged;
  reports.event = [
    members(event), members(Object.getPrototypeOf(event)), Object.prototype.toString.call(event), event.constructor.name, Object.isExtensible(event),
    Object.getPrototypeOf(event) === Object.getPrototypeOf(storage.onChanged),
    Object.getPrototypeOf(event) === Object.getPrototypeOf(other.onChanged),
  ];
  const g = () => {};
  reports['arguments of events'] = [
    () => event.addListener(), () => event.addListener(1), () => event.addListener({}), () => event.addListener(null), () => event.addListener('x'),
    () => event.addListener(g, {}), () => event.addListener(g, undefined), () => event.addListener(g, g), () => event.addListener(g, g, 1), () => event.addListener(1, 2),
    () => event.removeListener(), () => event.removeListener(1), () => event.removeListener(g), () => event.removeListener(g, 1),
    () => event.hasListener(), () => event.hasListener('x'), () => event.hasListener(null), () => event.hasListener(undefined), () => event.hasListener({}),
    () => event.hasListener(1), () => event.hasListener(true), () => event.hasListener(g), () => event.hasListener(g, 1), () => event.hasListeners(1, 2),
    () => new event.constructor(), () => event.constructor(), () => new event.addListener(g),
    () => (0, event.addListener)(g), () => event.addListener.call({}, g), () => event.hasListener.call(null, g), () => event.hasListeners.call(area), () => event.removeListener.call(Object.create(event), g),
    () => event.dispatch.call({}),
  ].map(outcome);
  const on = other.onChanged;
  event.addListener.call(on, g);
  reports['a method of another event'] = [on.hasListener(g), event.hasListener(g), on.hasListeners()];
  on.removeListener(g);
  reports['no listeners'] = [on.hasListeners(), event.hasListeners(), storage.onChanged.hasListeners()];

  let log = [];
  const change = async () => {
    await area.set({ k: Math.random() });
    await area.getKeys();
    await pause(50);
    await area.getKeys(); // after what a listener did
    const heard = log;
    log = [];
    return heard;
  };
  const says = (what, then = () => {}) => (...args) => {
    log.push(what);
    return then(...args);
  };
  const during = async (what, listeners, times = 1) => {
    for (const listener of listeners) event.addListener(listener);
    const heard = [];
    for (let left = times; left > 0; left -= 1) heard.push(await change());
    reports[what] = [heard, listeners.map((listener) => event.hasListener(listener))];
    for (const listener of [...listeners, ...extra.splice(0)]) event.removeListener(listener);
  };
  const extra = [];
  const [a, b, c] = ['a', 'b', 'c'].map((what) => says(what));
  await during('added twice', [a, b, a]);
  event.addListener(a);
  event.addListener(b);
  event.removeListener(a);
  await during('added again', [a]);
  event.removeListener(b);
  await during('removed by an earlier one', [says('remover', () => event.removeListener(b)), b, c], 2);
  const once = says('once', () => event.removeListener(once));
  await during('removes itself', [once, a], 2);
  extra.push(b);
  await during('added by an earlier one', [says('adder', () => event.addListener(b)), a], 2);
  console.log('mark: a listener throws');
  await during('one throws', [a, says('thrower', () => { throw new Error('thrown in a listener'); }), b]);
  console.log('mark: a listener throws no error');
  await during('one throws no error', [a, says('thrower', () => { throw 5; }), b]);
  console.log('mark: a listener rejects');
  await during('one rejects', [a, says('rejecter', async () => { throw new Error('rejected in a listener'); }), b]);
  console.log('mark: the end');
  await during('microtasks', [says('first', () => void Promise.resolve().then(says('its microtask'))), says('second')]);
  await during('what is changed', [(changes) => { changes.k.newValue = 'mine'; changes.x = 1; }, (changes) => log.push(Object.keys(changes), changes.k.newValue)]);
  const all = ({ k }, ...more) => log.push(['all', typeof k.newValue, ...more]);
  storage.onChanged.addListener(all);
  await during('area first, all after', [(changes, ...more) => { changes.k.newValue = 'mine'; log.push(['area', ...more]); }]);
  storage.onChanged.removeListener(all);
  await during('receiver of a listener', [function () { log.push(this === globalThis); }, function () { 'use strict'; log.push(this === globalThis, arguments.length); }]);
  await during('set in a listener', [({ k }) => { log.push(typeof k?.newValue); if (k && !k.again) area.set({ again: 1 }); }]);
  await area.remove('again');
  await pause(40);
  reports['dispatch without listeners'] = typeof event.dispatch(1, 2);
  event.addListener(a);
  reports['dispatch'] = [JSON.stringify(event.dispatch(1, 2)) ?? 'undefined', log.splice(0)];
  event.removeListener(a);
  const answers = () => 7;
  event.addListener(a);
  event.addListener(answers);
  reports['dispatch with results'] = [JSON.stringify(event.dispatch(1, 2)), log.splice(0)];
  event.removeListener(a);
  event.removeListener(answers);
  reports['what a script cannot stop'] = faults;
  removeEventListener('error', note);
  removeEventListener('unhandledrejection', note);

  // --- a script that meddles with lastError: last, since the real one is never the same afterwards ------
  console.log('mark: lastError that is deleted');
  reports['lastError that is deleted'] = await new Promise((done) => {
    area.set(failing(), () => done([delete runtime.lastError, 'lastError' in runtime]));
  });
  await pause(20);
  console.log('mark: lastError that is assigned');
  reports['lastError that is assigned'] = await new Promise((done) => {
    area.set(failing(), () => {
      runtime.lastError = 'mine';
      done(runtime.lastError);
    });
  });
  await pause(20);
  reports['afterwards'] = 'lastError' in runtime;
  runtime.lastError = 'mine';
  console.log('mark: a lastError of the script');
  reports['a lastError of the script'] = await new Promise((done) => {
    area.set(failing(), () => done(runtime.lastError));
  });
  await pause(20);
  reports['and it stays'] = [runtime.lastError, delete runtime.lastError, 'lastError' in runtime];
  await area.clear();
  return reports;
};
