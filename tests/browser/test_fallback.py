"""``connect({fallback: 'browser'})`` in a real Chromium: no host, then one; the data moves once.

Every test has a browser profile of its own, in which no host is registered at first. The extension
is the shipped one with a worker that listens, so that pages and a worker are there together.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, Playwright, async_playwright

from .driver import EXTENSION, HOST, Browser, Installation, until, until_true

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECONDS_TO_FIND_A_HOST = 35
"""What the stub promises for a host that is installed later, without a reload."""

FALLBACK = {"fallback": "browser"}

_WORKER = """
import { connect } from './sidekeep/index.js';
globalThis.keep = connect({ fallback: 'browser', idle: 500 });
globalThis.heard = [];
keep.storage.local.onChanged.addListener((changes) => { heard.push(changes); });
"""

# Old data of a chat extension: a history with pictures, sessions with whole histories, settings.
_FILL = """
async ({ pictures, items }) => {
  const picture = (n) =>
    'data:image/png;base64,' + String(n).padStart(4, '0') + 'QUJD'.repeat(50_000);
  const turn = (n) => [
    { role: 'user', content: [{ type: 'text', text: `图 ${n} 🖼` },
                              { type: 'image_url', image_url: { url: picture(n) } }] },
    { role: 'assistant', content: `answer ${n}\\u2028`, usage: { tokens: n, cost: 0.1 * n } },
  ];
  const history = Array.from({ length: pictures }, (_, n) => turn(n)).flat();
  await chrome.storage.local.set({ history, providers: { b: { key: '鍵' }, a: [1, null, true] } });
  await chrome.storage.local.set({
    savedSessions: [
      { id: 's1', name: 'first', createdAt: 1, pinned: true, history: history.slice(0, 6) },
      { id: 's2', name: 'second', createdAt: 2, pinned: false, history: history.slice(4) },
    ],
    session_s3: history.slice(0, 2),
    text: 'x'.repeat(300_000),
    '': 0,
  });
  const many = Object.fromEntries(Array.from({ length: items }, (_, n) => [`k${n}`, { n }]));
  await chrome.storage.local.set(many);
}
"""

_ORIGINALS = """
async () => {
  const all = await chrome.storage.local.get(null);
  return Object.fromEntries(Object.entries(all).filter(([key]) => !key.startsWith('sidekeep:')));
}
"""

_LISTENS_TO_THE_HOST = """
keep.status().fallback.serves === 'host'
&& !chrome.storage.local.onChanged.hasListeners()
&& !chrome.storage.session.onChanged.hasListeners()
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the shipped extension with a worker that listens."""
    folder = tmp_path_factory.mktemp("fallback") / "extension"
    shutil.copytree(EXTENSION, folder)
    (folder / "service_worker.js").write_text(_WORKER, encoding="utf-8")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def playwright() -> AsyncIterator[Playwright]:
    async with async_playwright() as running:
        yield running


@pytest.fixture
def place(installation: Installation, tmp_path: Path) -> Installation:
    """Return the installation as a browser profile sees it in which no host is registered."""
    made = Installation(installation.folder)
    made.profile = tmp_path / "profile"
    made.manifest().parent.mkdir(parents=True)
    return made


@pytest.fixture
def launcher(installation: Installation) -> str:
    return installation.launcher


@asynccontextmanager
async def _running(
    playwright: Playwright, place: Installation, extension: Path
) -> AsyncIterator[Browser]:
    browser = await Browser.start(playwright, place, extension)
    yield browser
    assert browser.faults == [], "errors nobody handled in a page"
    await browser.close()
    await until(lambda: place.hosts() == [], "the hosts to end with the browser")


async def _until_moved(page: Page, seconds: float = SECONDS_TO_FIND_A_HOST) -> None:
    """Make calls as an extension does, nothing else, until the data has moved."""
    for _ in range(int(seconds * 10)):
        await page.evaluate("keep.storage.local.get('providers')")
        if await page.evaluate("keep.status().fallback.state") == "moved":
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not moved after {seconds} s: {await page.evaluate('keep.status()')}")


async def _own_keys_only(page: Page) -> None:
    await until_true(
        page,
        "chrome.storage.local.get('sidekeep:move')"
        ".then((got) => got['sidekeep:move'].left !== true)",
    )
    assert await page.evaluate(_ORIGINALS) == {}


async def test_a_host_that_comes_later_gets_everything_once(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        other = await browser.page(options=FALLBACK)
        await page.evaluate(_FILL, {"pictures": 10, "items": 60})
        before = await page.evaluate(_ORIGINALS)

        # Without a host the browser's own areas serve, and every context hears of changes.
        await other.evaluate(
            "() => { globalThis.heard = [];"
            " keep.storage.onChanged.addListener((...args) => heard.push(args)); }"
        )
        assert await page.evaluate("keep.storage.local.get()") == before
        await page.evaluate("keep.storage.local.set({ draft: 'one' })")
        await page.evaluate("keep.storage.session.set({ tab: [1] })")
        before["draft"] = "one"
        for _ in range(20):
            await page.evaluate("keep.storage.local.get('draft')")
            await asyncio.sleep(0.1)
        status = await page.evaluate("keep.status()")
        assert status["fallback"]["serves"] == "browser"
        assert status["lastError"] == "Specified native messaging host not found."
        assert 0 < status["attempts"] < 10

        place.register(HOST, launcher)
        await _until_moved(page)
        assert await page.evaluate("keep.storage.local.get()") == before
        assert await other.evaluate("keep.storage.local.get()") == before
        assert await other.evaluate("keep.storage.session.get()") == {"tab": [1]}
        await _own_keys_only(page)
        await page.evaluate("keep.storage.local.set({ draft: 'two' })")
        await until_true(other, "heard.length === 3")
        assert await other.evaluate("heard") == [
            [{"draft": {"newValue": "one"}}, "local"],
            [{"tab": {"newValue": [1]}}, "session"],
            [{"draft": {"newValue": "two", "oldValue": "one"}}, "local"],
        ]

        # Old conversations have become conversations.
        total, rows = await page.evaluate(
            """async () => {
              const { total } = await keep.history.list({ limit: 1 });
              const { rows } = await keep.sessions.list();
              return [total, rows.map(({ id, entries }) => [id, entries])];
            }"""
        )
        assert total == 20
        assert sorted(rows) == [["s1", 6], ["s2", 16]]

        # A second start moves nothing again.
        seq = await page.evaluate("keep.call('host.status').then(({ journal }) => journal.last)")
        again = await browser.page(options=FALLBACK)
        await again.evaluate("keep.retry()")
        assert await again.evaluate("keep.storage.local.get('draft')") == {"draft": "two"}
        after = await page.evaluate("keep.call('host.status').then(({ journal }) => journal.last)")
        assert after == seq

    # Once moved, a missing host is an error and never a second truth.
    place.manifest().unlink()
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        refused = await page.evaluate(
            "keep.storage.local.get('draft').catch(({ kind, message }) => [kind, message])"
        )
        assert refused[0] == "unavailable"
        assert HOST in refused[1]
        assert await page.evaluate(_ORIGINALS) == {}


async def test_what_the_host_had_already_and_is_different_stays_in_undo(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        place.register("org.sidekeep.same", launcher)  # the same store under another name
        early = await browser.page(options={"host": "org.sidekeep.same"})
        await early.evaluate("""async () => {
          const { local } = keep.storage;
          await local.set({ history: [{ role: 'user', content: 'host' }] });
          await local.set({ theme: 'light', same: [1] });
          await keep.sessions.save({ name: 'of the host' });
          await local.set({ only: true });
        }""")
        page = await browser.page(options=FALLBACK)
        await page.evaluate(_FILL, {"pictures": 2, "items": 3})
        await page.evaluate("keep.storage.local.set({ theme: 'dark', same: [1] })")
        before = await page.evaluate(_ORIGINALS)
        place.register(HOST, launcher)
        await page.evaluate("keep.retry()")
        kept = await page.evaluate("keep.storage.local.get()")
        assert {key: kept[key] for key in before} == before
        assert kept["sidekeep:replaced:theme"] == "light"
        assert kept["only"] is True
        assert not [key for key in kept if key.startswith("sidekeep:replaced:s")]
        entry = {"role": "user", "content": "host"}
        await page.evaluate("keep.history.undo()")
        assert entry in (await page.evaluate("keep.storage.local.get('history')"))["history"]
        restored = await page.evaluate("""async () => {
          const [{ undo }] = (await keep.trash.list()).filter(({ sessions }) => sessions.length);
          const { id, name } = await keep.sessions.restore({ undo });
          return [name, (await keep.sessions.get(id)).entries.map(({ entry }) => entry)];
        }""")
        assert restored == ["of the host", [entry]]


async def test_a_listener_that_comes_right_after_a_call_hears_the_others_and_its_own(
    playwright: Playwright, place: Installation, extension: Path
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        other = await browser.page(options=FALLBACK)
        await page.evaluate("""async () => {
          globalThis.heard = [];
          await keep.storage.local.get('a');
          keep.storage.onChanged.addListener(({ a }) => heard.push(a.newValue));
        }""")
        for value in (1, 2):
            await other.evaluate("(a) => keep.storage.local.set({ a })", value)
        await until_true(page, "heard.length === 2")
        steps = await page.evaluate("""async () => {
          const steps = [];
          for (const a of [3, 4, 5]) {
            await keep.storage.local.set({ a });
            steps.push(heard.at(-1));
          }
          return steps;
        }""")
        assert steps == [3, 4, 5]
        assert await page.evaluate("heard") == [1, 2, 3, 4, 5]


async def test_keys_that_every_object_inherits_are_served_and_moved_like_others(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        read = """async () => Object.entries(await keep.storage.local.get()).map(
          ([key, value]) => [key, JSON.stringify(value)])"""
        names = ["__proto__", "constructor", "hasOwnProperty", "toString", "valueOf"]
        await page.evaluate(
            """async (names) => {
              for (const name of names) await keep.storage.local.update(name, { push: name });
              await keep.storage.local.update('count', { increment: 1 });
            }""",
            names,
        )
        before = await page.evaluate(read)
        assert before == [[name, f'["{name}"]'] for name in ["__proto__", "constructor"]] + [
            ["count", "1"],
            *([name, f'["{name}"]'] for name in names[2:]),
        ]
        place.register(HOST, launcher)
        await page.evaluate("keep.retry()")
        assert await page.evaluate(read) == before
        await _own_keys_only(page)


async def test_a_persons_action_tries_at_once(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        await page.evaluate("keep.storage.local.set({ value: 1 })")
        for _ in range(12):
            await page.evaluate("keep.retry().catch(() => {})")
        await page.evaluate("keep.storage.local.get()")
        place.register(HOST, launcher)
        status = await page.evaluate("keep.retry()")
        assert (status["state"], status["fallback"]["state"]) == ("connected", "moved")
        assert await page.evaluate("keep.storage.local.get()") == {"value": 1}


async def test_what_is_written_while_it_moves_is_not_lost_and_is_told_once(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        writer = await browser.page(options=FALLBACK)
        listener = await browser.page(options=FALLBACK)
        await page.evaluate(_FILL, {"pictures": 8, "items": 300})
        await listener.evaluate("""() => {
          globalThis.last = {};
          globalThis.wrong = [];
          keep.storage.local.onChanged.addListener((changes) => {
            for (const [key, { oldValue, newValue }] of Object.entries(changes)) {
              const known = last[key];
              const fits = !(key in last) || JSON.stringify(known) === JSON.stringify(oldValue);
              if (!fits) wrong.push([key, known, oldValue]);
              last[key] = newValue;
            }
          });
        }""")
        await writer.evaluate("""() => {
          globalThis.wrote = {};
          globalThis.during = 0;
          globalThis.stop = false;
          globalThis.done = (async () => {
            for (let n = 0; !stop; n += 1) {
              const keys = [`k${n % 7}`, `new${n % 5}`];
              if (n % 11 === 10) {
                await keep.storage.local.remove(keys);
                for (const key of keys) wrote[key] = undefined;
              } else {
                await keep.storage.local.set(Object.fromEntries(keys.map((key) => [key, n])));
                for (const key of keys) wrote[key] = n;
              }
              const { state, serves } = keep.status().fallback;
              const mark = await chrome.storage.local.get('sidekeep:move');
              if (serves === 'browser' && mark['sidekeep:move']?.state === 'moving') during += 1;
            }
          })();
        }""")
        place.register(HOST, launcher)
        await page.evaluate("keep.retry()")
        await until_true(writer, "keep.status().fallback.serves === 'host'")
        await writer.evaluate("() => { stop = true; return done; }")
        assert await writer.evaluate("during") > 5, "too fast to see anything"
        wrote: dict[str, Any] = await writer.evaluate("wrote")
        kept = await page.evaluate("keep.storage.local.get()")
        assert {key: kept.get(key) for key in wrote} == wrote
        assert {f"k{n}": kept.get(f"k{n}") for n in range(7, 300)} == {
            f"k{n}": {"n": n} for n in range(7, 300)
        }
        assert not [key for key in kept if key.startswith("sidekeep:")]
        await until_true(
            listener,
            f"Object.entries({json.dumps(wrote)}).every(([key, value]) =>"
            " JSON.stringify(last[key] ?? null) === JSON.stringify(value))",
        )
        assert await listener.evaluate("wrong") == []
        assert set(await listener.evaluate("Object.keys(last)")) == set(wrote)
        await _own_keys_only(page)


async def test_a_browser_killed_while_it_moves_goes_on_at_the_next_start(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        await page.evaluate(_FILL, {"pictures": 8, "items": 400})
        before = await page.evaluate(_ORIGINALS)
        await page.evaluate("keep.storage.local.getKeys()")
    place.register(HOST, launcher)
    middle = 0
    for wait in (0.15, 0.4, 0.8):
        browser = await Browser.start(playwright, place, extension)
        page = await browser.page(options=FALLBACK)
        work = asyncio.ensure_future(page.evaluate("keep.retry()"))
        await asyncio.sleep(wait)
        _kill_browser(place)
        await asyncio.gather(work, return_exceptions=True)
        with suppress(Exception):
            await browser.context.close()
        await until(lambda: place.hosts() == [], "the hosts to end with the browser")
        async with _running(playwright, place, extension) as started:
            look = await started.page(connect=False)
            mark = (await look.evaluate("chrome.storage.local.get('sidekeep:move')")).get(
                "sidekeep:move", {}
            )
            unfinished = mark.get("state") == "moving" or mark.get("left") is True
            middle += unfinished
            if mark.get("state") != "moved":
                assert await look.evaluate(_ORIGINALS) == before
    assert middle > 0, "no kill was in the middle"
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        await page.evaluate("keep.retry()")
        assert await page.evaluate("keep.storage.local.get()") == before
        await _own_keys_only(page)


async def test_a_listening_worker_is_woken_until_the_data_has_moved_and_not_after(
    playwright: Playwright, place: Installation, extension: Path, launcher: str
) -> None:
    async with _running(playwright, place, extension) as browser:
        page = await browser.page(options=FALLBACK)
        await browser.worker.evaluate("keep.storage.local.getKeys()")
        await browser.stop_worker()
        await page.evaluate("keep.storage.local.set({ value: 1 })")
        await until_worker_runs(browser)
        assert await _heard(browser, 1) == [{"value": {"newValue": 1}}]

        # The worker sleeps through the move, and hears what the host did after it.
        await browser.stop_worker()
        place.register(HOST, launcher)
        await page.evaluate("keep.retry()")
        await page.evaluate("keep.storage.local.set({ value: 2 })")
        await until_worker_runs(browser)
        assert await _heard(browser, 1) == [{"value": {"newValue": 2, "oldValue": 1}}]

        # From now on nothing in the real areas starts it.
        await until_true_in_worker(browser, _LISTENS_TO_THE_HOST)
        for _ in range(2):
            await browser.stop_worker()
            await page.evaluate("chrome.storage.local.set({ elsewhere: Math.random() })")
            await asyncio.sleep(1)
            assert not await browser.worker_runs(), "it was woken"
            await browser.wake_worker()
            await until_true_in_worker(browser, _LISTENS_TO_THE_HOST)


async def until_worker_runs(browser: Browser) -> None:
    """Wait until something has started the worker."""
    for _ in range(200):
        if await browser.worker_runs():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the worker was not woken")


async def until_true_in_worker(browser: Browser, expression: str) -> None:
    """Wait until ``expression`` is true in the worker."""
    for _ in range(200):
        if await browser.worker.evaluate(expression):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in the worker for {expression}")


async def _heard(browser: Browser, least: int) -> list[Any]:
    heard: list[Any] = []
    for _ in range(100):
        heard = await browser.worker.evaluate("heard")
        if len(heard) >= least:
            break
        await asyncio.sleep(0.05)
    return heard


def _kill_browser(place: Installation) -> None:
    """Send SIGKILL to the main process of the browser on this profile."""
    flag = f"--user-data-dir={place.profile}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if flag in words and not any(word.startswith(b"--type=") for word in words):
                os.kill(int(entry.name), signal.SIGKILL)
