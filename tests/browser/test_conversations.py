"""Conversations in a real Chromium: plain keys and calls on the same data, events, pictures."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Worker

from .driver import Browser, kill, until_true

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Context = Page | Worker

# Keeps what the events of conversations tell, as "history append e1,e2".
_LISTEN = """() => {
  globalThis.heard = [];
  globalThis.hears = {};
  for (const name of ['history', 'sessions']) {
    hears[name] = ({ what, ids }) => heard.push(`${name} ${what} ${ids}`);
    keep[name].onChanged.addListener(hears[name]);
  }
}"""

_LISTEN_NO_MORE = """() => {
  for (const name of ['history', 'sessions']) keep[name].onChanged.removeListener(hears[name]);
}"""

# A picture that a browser can draw and no compression makes small.
_NOISE = """async ({ width, height, name }) => {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  const image = context.createImageData(width, height);
  for (let at = 0; at < image.data.length; at += 65_536) {
    crypto.getRandomValues(image.data.subarray(at, at + 65_536));
  }
  for (let at = 3; at < image.data.length; at += 4) image.data[at] = 255;
  context.putImageData(image, 0, 0);
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  globalThis[name] = `data:image/png;base64,${bytes.toBase64?.() ?? btoa(
    Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}`;
  return globalThis[name].length;
}"""


def user(content: Any, **fields: Any) -> dict[str, Any]:
    """Return a user entry."""
    return {"content": content, "role": "user", **fields}


def assistant(content: Any) -> dict[str, Any]:
    """Return an assistant entry."""
    return {"content": content, "role": "assistant"}


async def _heard(context: Context, count: int, seconds: float = 15) -> list[str]:
    """Return what was heard, as soon as it is ``count`` events and nothing more comes."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        if len(await context.evaluate("heard")) >= count:
            break
        await asyncio.sleep(0.03)
    await asyncio.sleep(0.1)
    heard = await context.evaluate("heard")
    assert len(heard) == count, heard
    assert isinstance(heard, list)
    return heard


async def _plain(context: Context, key: str) -> Any:
    return (await context.evaluate("(key) => keep.storage.local.get(key)", key)).get(key)


async def _listed(context: Context) -> list[Any]:
    entries = await context.evaluate("keep.history.list().then(({ entries }) => entries)")
    return [one["entry"] for one in entries]


async def _host(context: Context) -> int:
    pid = await context.evaluate("keep.status().host.pid")
    assert isinstance(pid, int)
    return pid


@pytest_asyncio.fixture(loop_scope="session")
async def worker(browser: Browser, page: Page) -> AsyncIterator[Worker]:
    """Return the running worker of the extension, whose ``keep`` is connected."""
    yield await browser.wake_worker()


async def test_a_panel_on_plain_keys_and_a_worker_on_calls_share_the_data(
    page: Page, worker: Worker
) -> None:
    first = [user("What is a fjord?"), assistant("A drowned valley.")]
    await page.evaluate("(history) => keep.storage.local.set({ history })", first)
    assert await _listed(worker) == first
    await worker.evaluate("(entry) => keep.history.append(entry)", user("And a firth?"))
    whole = [*first, user("And a firth?")]
    assert await _plain(page, "history") == whole

    row = await worker.evaluate("keep.sessions.save()")
    assert row["name"] == "What is a fjord?"
    assert row["entries"] == 3
    (plain_row,) = await _plain(page, "savedSessions")
    assert {name: plain_row[name] for name in ("id", "name", "createdAt", "pinned")} == {
        name: row[name] for name in ("id", "name", "createdAt", "pinned")
    }
    assert await _plain(page, f"session_{row['id']}") == whole

    await page.evaluate(
        """async () => {
          const { savedSessions } = await keep.storage.local.get('savedSessions');
          savedSessions[0].name = 'Fjords';
          await keep.storage.local.set({ savedSessions, history: [] });
        }"""
    )
    listed = await worker.evaluate("keep.sessions.list({ query: 'FJORDS' })")
    assert [(one["id"], one["name"], one["hit"]["in"]) for one in listed["rows"]] == [
        (row["id"], "Fjords", "name")
    ]
    assert await _listed(worker) == []
    loaded = await worker.evaluate("(id) => keep.sessions.load(id)", row["id"])
    assert (loaded["length"], loaded["savedAs"]) == (3, None)
    assert await _plain(page, "history") == whole
    assert await _plain(page, "activeSessionId") == row["id"]

    restored = await worker.evaluate(
        "(id) => keep.sessions.delete(id).then((gone) => keep.sessions.restore(gone))", row["id"]
    )
    assert restored["id"] == row["id"]
    assert await _plain(page, f"session_{row['id']}") == whole


async def test_events_of_both_kinds_come_whichever_way_a_change_was_made(
    browser: Browser, page: Page, worker: Worker
) -> None:
    other = await browser.page()
    contexts: list[Context] = [page, other, worker]
    await other.evaluate("""() => {
      globalThis.arrays = [];
      keep.storage.local.onChanged.addListener(
        ({ history }) => history && arrays.push([history.oldValue, history.newValue]));
    }""")
    for context in contexts:
        await context.evaluate(_LISTEN)
        await context.evaluate("keep.history.list()")  # the watch is answered

    a, b, c = user("a"), assistant("b"), user("c")
    await page.evaluate("(history) => keep.storage.local.set({ history })", [a])
    appended = await worker.evaluate("(entry) => keep.history.append(entry)", b)
    await page.evaluate("(history) => keep.storage.local.set({ history })", [a, b, c])
    ids = await other.evaluate("keep.history.list().then((it) => it.entries.map(({ id }) => id))")
    await worker.evaluate("(id) => keep.history.update(id, { merge: { seen: true } })", ids[2])
    saved = await worker.evaluate("keep.sessions.save()")
    await worker.evaluate("keep.history.remove(0)")
    assert ids[1] == appended["ids"][0], "an entry keeps its id when a plain array names it again"

    expected = [
        f"history append {ids[0]}",
        f"history append {ids[1]}",
        f"history append {ids[2]}",
        f"history update {ids[2]}",
        f"sessions save {saved['id']}",
        f"history remove {ids[0]}",
    ]
    for context in contexts:
        assert await _heard(context, 6) == expected
    seen = {**c, "seen": True}
    states = [[a], [a, b], [a, b, c], [a, b, seen], [b, seen]]
    await until_true(other, "arrays.length === 5")
    assert await other.evaluate("arrays") == [
        [old, new] for old, new in itertools.pairwise([None, *states])
    ]
    await worker.evaluate(_LISTEN_NO_MORE)


async def test_a_host_that_is_killed_loses_no_entry_and_no_event_and_doubles_none(
    browser: Browser, page: Page
) -> None:
    writer = await browser.page()
    await page.evaluate(_LISTEN)
    await page.evaluate("keep.history.list()")
    write = """async ({ round, count }) => {
      const work = [];
      for (let number = 0; number < count; number += 1) {
        work.push(keep.history.append({ role: 'user', content: `${round} ${number}` }));
      }
      work.push(keep.history.mutate((entries) => [...entries, `${round} mutated`]));
      return (await Promise.all(work)).slice(0, -1).flatMap(({ ids }) => ids);
    }"""
    rounds, count = 5, 20
    ids: list[str] = []
    for number in range(rounds):
        # The listener's host dies while changes come, the writer's while it writes them.
        listening, writing = await _host(page), await writer.evaluate("keep.status().host?.pid")
        work = asyncio.create_task(writer.evaluate(write, {"round": number, "count": count}))
        if number % 2 == 0:
            await asyncio.sleep(0.002 * number)
        kill(listening)
        if writing and number % 2 == 1:
            kill(writing)
        ids += await work
        await browser.host_ended(listening)
        await until_true(
            page, f"keep.status().state === 'connected' && {listening} !== keep.status().host.pid"
        )
    contents = await page.evaluate(
        "keep.history.list().then((it) => it.entries.map(({ entry }) => entry.content ?? entry))"
    )
    names = [str(number) for number in range(count)] + ["mutated"]
    expected = [f"{number} {name}" for number in range(rounds) for name in names]
    assert sorted(contents) == sorted(expected), "each entry is there once"
    assert len(set(ids)) == rounds * count
    heard = await _heard(page, rounds * (count + 1))
    appended = [one.removeprefix("history append ") for one in heard]
    assert [one for one in appended if one in set(ids)] == ids, (
        "each append was told once, in order"
    )


async def test_a_worker_hears_of_conversations_what_it_missed_in_its_sleep(
    browser: Browser, page: Page, worker: Worker
) -> None:
    await worker.evaluate(_LISTEN)
    await worker.evaluate("keep.history.append('before')")
    assert len(await _heard(worker, 1)) == 1
    await until_true_in(worker, "chrome.storage.session.get('sidekeep:heard:history')")
    await browser.stop_worker()
    ids = await page.evaluate("keep.history.append(['missed', 'too']).then(({ ids }) => ids)")
    session = await page.evaluate("keep.sessions.save().then(({ id }) => id)")
    again = await browser.wake_worker()
    await again.evaluate(_LISTEN)  # no call: the listener alone opens the port
    assert await _heard(again, 2) == [f"history append {','.join(ids)}", f"sessions save {session}"]
    await again.evaluate(_LISTEN_NO_MORE)


async def until_true_in(worker: Worker, expression: str) -> None:
    """Wait until the worker keeps something that ``expression`` reads."""
    for _ in range(500):
        if await worker.evaluate(expression):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(expression)


async def test_two_contexts_that_change_the_list_by_a_function_lose_nothing(
    browser: Browser, page: Page
) -> None:
    other = await browser.page()
    work = """async ({ name, times }) => {
      for (let number = 0; number < times; number += 1) {
        await keep.history.mutate((entries) => [...entries, `${name} ${number}`]);
      }
    }"""
    await asyncio.gather(
        *(
            context.evaluate(work, {"name": name, "times": 10})
            for context, name in ((page, "a"), (other, "b"))
        )
    )
    stored = await _plain(page, "history")
    assert sorted(stored) == sorted(f"{name} {number}" for name in "ab" for number in range(10))


async def test_an_array_with_a_token_is_stored_with_the_picture(page: Page) -> None:
    assert await page.evaluate(_NOISE, {"width": 640, "height": 500, "name": "shot"}) > 600_000
    before = await page.evaluate("""async () => {
      const part = { type: 'image_url', image_url: { url: shot } };
      const answer = { role: 'assistant', content: 'Nice.' };
      await keep.history.append([{ role: 'user', content: [part] }, answer]);
      const { entries, images } = await keep.history.list({ pixels: 'none' });
      const history = [...entries.map(({ entry }) => entry), { role: 'user', content: 'Thanks.' }];
      const { url } = history[0].content[0].image_url;
      await keep.storage.local.set({ history });
      return { ids: entries.map(({ id }) => id), url, images };
    }""")
    assert before["url"].startswith("sidekeep:")
    assert [(one["ref"], one["state"]) for one in before["images"]] == [(before["url"], "left")]
    after = await page.evaluate(
        """async (ref) => {
      const { history } = await keep.storage.local.get('history');
      const { entries } = await keep.history.list();
      return {
        whole: [history[0], entries[0].entry].every((one) => one.content[0].image_url.url === shot),
        same: (await keep.images.get(ref)) === shot,
        ids: entries.map(({ id }) => id),
      };
    }""",
        before["url"],
    )
    assert after["whole"], "the picture, not its token, is what is stored"
    assert after["same"]
    assert after["ids"][:2] == before["ids"]

    kinds = await page.evaluate(
        """async (ref) => {
          await keep.history.clear();
          await keep.trash.empty(); // now nothing holds the picture
          const kinds = [];
          for (const write of [
            () => keep.storage.local.set({ history: [ref] }),
            () => keep.history.append(ref),
            () => keep.history.mutate(() => [ref]),
          ]) kinds.push(await write().then(() => 'stored', ({ kind }) => kind));
          return [...kinds, (await keep.history.list()).total];
        }""",
        before["url"],
    )
    assert kinds == ["notFound"] * 3 + [0]


async def test_a_thumbnail_is_drawn_and_never_stored(page: Page) -> None:
    await page.evaluate(_NOISE, {"width": 1200, "height": 300, "name": "wide"})
    drawn = await page.evaluate("""async () => {
      const part = { type: 'image_url', image_url: { url: wide } };
      await keep.history.append({ role: 'user', content: [part] });
      const first = await keep.history.list({ pixels: 'thumbnail' });
      const thumbnail = await keep.images.thumbnail(first.images[0].ref);
      const list = await keep.history.list({ pixels: 'thumbnail' });
      const [{ entry, images }] = keep.images.shown(list);
      const image = new Image();
      image.src = entry.content[0].image_url.url;
      await image.decode();
      const refused = [];
      for (const write of [
        () => keep.history.append(entry),
        () => keep.history.update(list.entries[0].id, { entry: structuredClone(entry) }),
        () => keep.storage.local.set({ history: [entry] }),
      ]) try { write(); } catch (error) { refused.push(error.name); }
      const [{ id, entry: original }] = list.entries;
      await keep.history.update(id, { entry: { ...original, seen: true } });
      const stored = (await keep.storage.local.get('history')).history[0];
      return {
        size: [image.naturalWidth, image.naturalHeight],
        marked: image.src === `${thumbnail.url}#sidekeep:shown`,
        kind: thumbnail.url.slice(0, 22),
        state: images[0].state,
        refused,
        whole: stored.seen && stored.content[0].image_url.url === wide,
      };
    }""")
    assert drawn == {
        "size": [480, 120],
        "marked": True,
        "kind": "data:image/jpeg;base64",
        "state": "ready",
        "refused": ["TypeError"] * 3,
        "whole": True,
    }


async def test_settings_are_read_by_one_call_that_never_asks_for_conversations(
    browser: Browser, page: Page
) -> None:
    await page.evaluate("keep.history.append('x').then(() => keep.sessions.save())")
    spied = await browser.page(spy=True, connect=False)
    seen = await spied.evaluate("""async () => {
      const { connect } = await import('/sidekeep/index.js');
      const { SETTINGS } = await import('/example/settings.js');
      const keep = connect({ settings: SETTINGS });
      await keep.settings.set('fontSize', 18);
      spy.frames.length = 0;
      const all = await keep.settings.getAll();
      const calls = spy.frames.flat().map(({ method, params }) => [method, params.keys]);
      await keep.close();
      return { all, calls };
    }""")
    assert (seen["all"]["fontSize"], seen["all"]["history"]) == (18, [])
    ((method, keys),) = seen["calls"]
    assert method == "storage.get"
    assert len(keys) == 16
    assert not {"history", "savedSessions"} & set(keys)
