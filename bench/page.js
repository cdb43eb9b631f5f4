// Runs in a page of the extension: the works that pipe.py measures, one function each.
//
// Every function returns durations in milliseconds, `get` and `set` by contender. Small calls are timed in runs of `RUN`, since
// the clock of a page ticks every 0.1 ms; a sample is the mean of one run. The C hosts are spoken to
// through a bare port, with nothing between: what Sidekeep's stub costs counts for Sidekeep.
(async () => {
  const RUN = 10;
  const PIECE = 256 * 1024;
  const { connect } = await import('/sidekeep/index.js');
  const keep = connect({ idle: Infinity, timeout: 60_000 });
  // No set may store what is there already: that would be no work.
  let counter = 0;
  const changed = () => ({ ...small, entries: ++counter });
  const small = { title: 'A session', entries: 12, pinned: false, text: 'word '.repeat(80) };

  const database = await new Promise((resolve, reject) => {
    const opening = indexedDB.open('bench', 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore('items');
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
  const settled = (request, transaction) =>
    new Promise((resolve, reject) => {
      if (transaction) transaction.oncomplete = () => resolve(undefined);
      else request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const indexed = {
    get: async (key) => settled(database.transaction('items').objectStore('items').get(key)),
    set: async (items) => {
      const transaction = database.transaction('items', 'readwrite', { durability: 'strict' });
      for (const [key, value] of Object.entries(items)) transaction.objectStore('items').put(value, key);
      return settled(transaction, transaction);
    },
  };

  const echo = new RawPort('org.sidekeep.bench.echo');
  const sync = new RawPort('org.sidekeep.bench.sync');
  const area = { Sidekeep: keep.storage.local, local: chrome.storage.local };
  const gets = {
    Sidekeep: async () => (await keep.storage.local.get('small')).small,
    local: async () => (await chrome.storage.local.get('small')).small,
    IndexedDB: () => indexed.get('small'),
    'C echo': () => echo.ask('e' + 'x'.repeat(90)),
  };
  const sets = {
    Sidekeep: () => keep.storage.local.set({ small: changed() }),
    local: () => chrome.storage.local.set({ small: changed() }),
    IndexedDB: () => indexed.set({ small: changed() }),
    'C sync': () => sync.ask('e' + 'x'.repeat(500)),
  };

  // Contenders take turns after each run, and who begins changes, so that what else the machine
  // does, and what one leaves behind for the next, hits them alike.
  const runs = async (works, contenders, count) => {
    const samples = Object.fromEntries(contenders.map((contender) => [contender, []]));
    for (let sample = 0; sample < count; sample++) {
      const first = sample % contenders.length;
      for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
        const start = performance.now();
        for (let call = 0; call < RUN; call++) await works[contender]();
        samples[contender].push((performance.now() - start) / RUN);
      }
    }
    return samples;
  };
  globalThis.bench = {
    prepare: async () => {
      for (const one of Object.values(area)) {
        await one.set({ small });
        await one.set(Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`k${n}`, n])));
      }
      await indexed.set({ small });
      return (await keep.call('host.status')).pid;
    },
    get: (contenders, count) => runs(gets, contenders, count),
    set: (contenders, count) => runs(sets, contenders, count),
    many: async (contender, kind) => {
      if (contender === 'C echo') {
        const batch = Array.from({ length: 2000 }, (_, n) => ({
          jsonrpc: '2.0', id: n, method: `storage.${kind}`, params: { area: 'local', keys: `k${n}` },
        }));
        return (await once(() => echo.ask(batch)))[0];
      }
      const one = area[contender];
      const work = kind === 'get' ? (n) => one.get(`k${n}`) : (n) => one.set({ [`k${n}`]: ++counter });
      const [samples] = await once(() => Promise.all(Array.from({ length: 2000 }, (_, n) => work(n))));
      return samples;
    },
    // A data URL of `size` characters that no earlier round has stored.
    up: async (contender, size) => {
      const unit = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(48 * 1024))));
      const head = 'data:image/png;base64,';
      const big = head + unit.repeat(Math.ceil(size / unit.length)).slice(0, size - head.length);
      big.charCodeAt(size - 1); // a rope is made flat before the clock runs
      if (contender === 'C echo') {
        const letters = [];
        for (let at = 0; at < size; at += PIECE) {
          letters.push((at + PIECE < size ? 'u' : 'U') + big.slice(at, at + PIECE - 1));
        }
        const [samples] = await once(() => {
          for (const piece of letters) echo.port.postMessage(piece);
          return echo.next();
        });
        return samples;
      }
      const work = contender === 'IndexedDB' ? () => indexed.set({ big }) : () => area[contender].set({ big });
      return (await once(work))[0];
    },
    down: async (contender, size) => {
      const works = {
        'C echo': () => echo.receive(size),
        IndexedDB: () => indexed.get('big'),
        Sidekeep: async () => (await keep.storage.local.get('big')).big,
        local: async () => (await chrome.storage.local.get('big')).big,
      };
      const [samples, found] = await once(works[contender]);
      if (Math.abs(found.length - size) > 100) throw new Error(`${contender} gave ${found.length}`);
      return samples;
    },
    start: async (contender) => {
      if (contender === 'Sidekeep') {
        const fresh = connect();
        const [samples] = await once(() => fresh.call('host.ping'));
        fresh.close();
        return samples;
      }
      const name = contender === 'C echo' ? 'org.sidekeep.bench.echo' : 'org.sidekeep.bench.bare';
      let raw;
      const [samples] = await once(() => {
        raw = new RawPort(name);
        return raw.ask('e');
      });
      raw.port.disconnect();
      return samples;
    },
  };
})()
