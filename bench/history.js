// Runs in a page of the extension: the works that history.py measures, one function each.
//
// Works return durations in milliseconds, one of each call. The clock of a page ticks every 0.1 ms.
// Quick calls are made `RUN` at a time; their median says more than their mean, since on a busy machine
// one call in ten takes some milliseconds more, which a slow contender would hide. Each store has a link
// of its own, and so a host process of its own, under the name of its profile.
(async () => {
  const RUN = 10;
  const FRAME = 256 * 1024;
  const { connect } = await import('/sidekeep/index.js');
  const local = chrome.storage.local;
  const echo = new RawPort('org.sidekeep.bench.echo');
  const sync = new RawPort('org.sidekeep.bench.sync');
  const links = new Map();
  const link = () => connect({ idle: Infinity, timeout: 120_000 });
  const beProfile = (profile) => local.set({ 'sidekeep:profile': profile });

  let counter = 0;
  const shortEntry = () => ({
    role: 'user',
    content: [{ type: 'text', text: `And what does number ${++counter} mean?` }],
  });
  const append = (keep) => keep.call('history.append', { entries: [shortEntry()] });
  const appendByGetAndSet = async () => {
    const { history } = await local.get('history');
    history.push(shortEntry());
    await local.set({ history });
  };
  const pictures = (entries) =>
    entries.flatMap(({ content }) => content.flatMap((part) => part.image_url?.url ?? []));

  // The durations of `RUN` works; what `before` does is not timed.
  const each = async (work, before = () => {}) => {
    const samples = [];
    for (let call = 0; call < RUN; call++) {
      await before(call);
      samples.push(...(await once(() => work(call)))[0]);
    }
    return samples;
  };

  globalThis.bench = {
    // Opens a link to the store of a profile; returns the id of the host's process.
    open: async (profile) => {
      await beProfile(profile);
      links.set(profile, link());
      return (await links.get(profile).call('host.status')).pid;
    },
    // Gives the same history to Sidekeep and to the browser's storage.
    fill: async (profile, entries) => {
      await local.set({ history: entries });
      await links.get(profile).call('history.append', { entries });
      const kept = await links.get(profile).call('history.list');
      const found = pictures(kept.entries.map(({ entry }) => entry));
      if (pictures(entries).some((url, n) => url !== found[n])) throw new Error('not what was stored');
    },
    // Waits for all thumbnails of the entries that `params` names; returns how many there are.
    thumbnails: async (profile, params) => {
      const list = () => links.get(profile).call('history.list', { ...params, pixels: 'thumbnail' });
      for (const { ref, state } of (await list()).images) {
        if (state === 'pending') await links.get(profile).call('images.thumbnail', { ref });
      }
      const { images } = await list();
      const missing = images.find(({ state }) => state !== 'ready');
      if (missing) throw new Error(`no thumbnail: ${missing.state}, ${missing.reason}`);
      return images.length;
    },
    // Takes what rounds before have appended away again, on both sides.
    shorten: async (profile, length) => {
      const { history } = await local.get('history');
      await local.set({ history: history.slice(0, length) });
      await links.get(profile).call('history.truncate', { from: length });
    },
    append: async (contender) => {
      if (contender === 'local') return (await once(appendByGetAndSet))[0];
      if (contender === 'C sync') return each(() => sync.ask('e' + 'x'.repeat(200)));
      return each(() => append(links.get(contender)));
    },
    saveNew: (profile) => each(() => links.get(profile).call('sessions.save')),
    saveAgain: async (profile) => {
      const keep = links.get(profile);
      const { id } = await keep.call('sessions.save');
      return each(() => keep.call('sessions.save', { id }), () => append(keep));
    },
    // Loads the sessions in turn, each time with something new in the one that is saved. One that has
    // grown to more than twice `length` entries is cut to that.
    load: (profile, ids, length) => {
      const keep = links.get(profile);
      const change = async () => {
        const now = await append(keep);
        if (now.length > 2 * length) await keep.call('history.truncate', { from: length });
      };
      return each((call) => keep.call('sessions.load', { id: ids[call % ids.length] }), change);
    },
    getLocal: async () => (await once(() => local.get('history')))[0],
    floor: async (bytes) => (await once(() => echo.receive(bytes)))[0],
    // What fits into one frame is not acknowledged; the host's 0 behind it is not waited for.
    floors: (bytes) => {
      if (bytes > FRAME) return each(() => echo.receive(bytes));
      let end;
      const receive = () => {
        const frame = echo.ask(`d${bytes}`);
        end = echo.next();
        return frame;
      };
      return each(receive, () => end);
    },
    call: async (profile, method, params) =>
      (await once(() => links.get(profile).call(method, params)))[0],
    calls: (profile, method, params) => each(() => links.get(profile).call(method, params)),
    // The bytes of what a call answers, as JSON text.
    bytes: async (profile, method, params) => {
      const result = await links.get(profile).call(method, params);
      return new TextEncoder().encode(JSON.stringify(result)).length;
    },
    // From nothing to the answer of one call: the start of a host is in it.
    first: async (profile, method, params) => {
      await beProfile(profile);
      const fresh = link();
      const [samples] = await once(() => fresh.call(method, params));
      await fresh.close();
      return samples;
    },
    // The same on a port that has just been opened: the host runs, and has read nothing yet.
    firstAfterHello: async (profile, method, params) => {
      await beProfile(profile);
      const fresh = link();
      await fresh.call('host.ping');
      const [samples] = await once(() => fresh.call(method, params));
      await fresh.close();
      return samples;
    },
    // Pages back through the live conversation; returns the duration of each page.
    pageBack: async (profile, limit, pages) => {
      const keep = links.get(profile);
      let { entries } = await keep.call('history.list', { offset: -limit, pixels: 'thumbnail' });
      const samples = [];
      for (let page = 0; page < pages; page++) {
        const before = entries[0].id;
        const [duration, older] = await once(() =>
          keep.call('history.list', { before, limit, pixels: 'thumbnail' }),
        );
        if (older.entries.length !== limit) throw new Error(`a page of ${older.entries.length}`);
        samples.push(...duration);
        ({ entries } = older);
      }
      return samples;
    },
  };
})()
