"""The areas in content scripts, through the relay in the worker."""

from __future__ import annotations

import asyncio
import copy
import json
import shutil
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import CDPSession, Page, async_playwright

from tests.harness.sidekeep_host import ORIGIN

from .driver import EXTENSION, Browser, Installation, until, until_true
from .probe import Server, fresh_profile

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_HERE = Path(__file__).parent
_BEHAVIOUR = (_HERE / "behaviour.js").read_text(encoding="utf-8")
_METHODS = ["get", "getKeys", "set", "remove", "clear", "getBytesInUse", "setAccessLevel"]
_REFUSED = "Access to storage is not allowed from this context."

SECONDS_OF_AN_ORPHAN = 30
ATTEMPTS_OF_AN_ORPHAN = 5
"""What the stub promises: fewer attempts than this in so many seconds."""


class Content:
    """The content script of one page."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self._session = session
        self._contexts: list[int] = []
        session.on("Runtime.executionContextCreated", self._created)

    @classmethod
    async def open(cls, browser: Browser, url: str) -> Content:
        """Open a page of the web, and wait for its content script to have loaded the stub."""
        page = await browser.context.new_page()
        page.on("pageerror", lambda error: browser.faults.append(str(error)))
        content = cls(page, await browser.context.new_cdp_session(page))
        await page.goto(url)
        await content._session.send("Runtime.enable")
        await until(lambda: bool(content._contexts), "the content script")
        await content.evaluate("ready")
        return content

    def _created(self, event: dict[str, Any]) -> None:
        context = event["context"]
        if context["origin"].startswith("chrome-extension://"):
            self._contexts.append(context["id"])

    async def evaluate(self, expression: str) -> Any:
        """Evaluate in the world of the content script."""
        answer = await self._session.send(
            "Runtime.evaluate",
            {
                "expression": expression,
                "contextId": self._contexts[-1],
                "awaitPromise": True,
                "returnByValue": True,
            },
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def outcome(self, call: str) -> Any:
        """Return what a call gives, or [name, kind, message] of its error."""
        return await self.evaluate(
            f"({call}).then((value) => value, ({{ name, kind, message }}) => [name, kind, message])"
        )


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """Return the address of pages of the web."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"{server.url}page"
    server.shutdown()
    server.server_close()


@asynccontextmanager
async def _started(
    installation: Installation, folder: Path, *, without: Sequence[str] = ()
) -> AsyncIterator[Browser]:
    """Start a Chromium with the extension, on a profile of its own that may be there already.

    ``without``: flags of Playwright that are not to be set.
    """
    own = copy.copy(installation)
    own.profile = folder / "profile"
    extension = folder / "extension"
    if not extension.exists():
        fresh_profile(installation, own.profile)
        shutil.copytree(_HERE / "extensions" / "content", extension)
        shutil.copytree(EXTENSION / "sidekeep", extension / "sidekeep")
        manifest = json.loads((extension / "manifest.json").read_text(encoding="utf-8"))
        shipped = json.loads((EXTENSION / "manifest.json").read_text(encoding="utf-8"))
        (extension / "manifest.json").write_text(json.dumps(manifest | {"key": shipped["key"]}))
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, own, extension, without=without)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def relaying(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """Return a Chromium with the extension whose worker relays."""
    async with _started(installation, tmp_path_factory.mktemp("content")) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def content(relaying: Browser, web: str) -> AsyncIterator[Content]:
    """Return the content script of a page; both areas are empty and as open as at first."""
    relaying.faults.clear()
    worker = await relaying.wake_worker()
    await worker.evaluate("Promise.all([keep.storage.local.clear(), keep.storage.session.clear()])")
    await _open(relaying, "local", True)
    await _open(relaying, "session", False)
    yield await Content.open(relaying, web)
    for page in relaying.context.pages[1:]:
        await page.close()
    assert relaying.faults == [], "errors nobody handled in a page"


async def _open(browser: Browser, area: str, opened: bool) -> None:
    level = "TRUSTED_AND_UNTRUSTED_CONTEXTS" if opened else "TRUSTED_CONTEXTS"
    worker = await browser.wake_worker()
    await worker.evaluate(
        f"(accessLevel) => keep.storage.{area}.setAccessLevel({{ accessLevel }})", level
    )


async def _bound(browser: Browser) -> int:
    bound = await (await browser.wake_worker()).evaluate("relayed.bound")
    assert isinstance(bound, int)
    return bound


async def test_the_local_area_behaves_as_the_real_one(content: Content) -> None:
    program = _BEHAVIOUR.rstrip().rstrip(";")
    kept = await content.evaluate("chrome.storage.local.get()")  # the program empties the real area
    reports = [
        await content.evaluate(f"({program})({{ storage: '{storage}', area: 'local' }})")
        for storage in ("chrome", "keep")
    ]
    await content.evaluate(f"chrome.storage.local.set({json.dumps(kept)})")
    real, ours = reports
    assert len(real) > 1000, "the program asked for little"
    different = [what for what in {**real, **ours} if real.get(what) != ours.get(what)]
    for what in different:
        print(f"{what}\n  real {real.get(what)}\n  ours {ours.get(what)}")  # noqa: T201
    assert different == []


async def test_the_session_area_is_refused_until_it_is_opened(
    relaying: Browser, content: Content
) -> None:
    arguments = {
        "set": "{}",
        "remove": "'a'",
        "setAccessLevel": "{ accessLevel: 'TRUSTED_CONTEXTS' }",
    }
    for method in _METHODS:
        call = f"storage.session.{method}({arguments.get(method, '')})"
        real = await content.outcome(f"chrome.{call}")
        ours = await content.outcome(f"keep.{call}")
        assert (real[2], ours[2]) == (_REFUSED, _REFUSED)
        assert ours[:2] == ["SidekeepError", "forbidden"]
    called = """new Promise((done) => {
      const seen = (...args) => done([args, chrome.runtime.lastError?.message]);
      storage.session.get(seen);
    })"""
    assert await content.evaluate(called.replace("storage", "keep.storage")) == [[], _REFUSED]
    await _open(relaying, "session", True)
    await content.evaluate(
        "keep.storage.session.set({ a: new Uint8Array([1, 2]), b: '\\0sidekeep:x' })"
    )
    assert await content.evaluate(
        "keep.storage.session.get().then(({ a, b }) => [...new Uint8Array(a), b])"
    ) == [1, 2, "\0sidekeep:x"]
    worker = await relaying.wake_worker()
    assert await worker.evaluate("keep.storage.session.getKeys()") == ["a", "b"]
    await _open(relaying, "session", False)
    assert (await content.outcome("keep.storage.session.get('a')"))[2] == _REFUSED


async def test_a_content_script_cannot_set_a_level(relaying: Browser, content: Content) -> None:
    call = "storage.local.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' })"
    real, ours = await content.outcome(f"chrome.{call}"), await content.outcome(f"keep.{call}")
    assert real[2] == ours[2] == "Context cannot set the storage access level"
    # It can write the real local area; the levels do not lie there.
    await content.evaluate(
        "chrome.storage.local.set({ session: 'TRUSTED_AND_UNTRUSTED_CONTEXTS' })"
    )
    assert (await content.outcome("keep.storage.session.get('a')"))[2] == _REFUSED
    await content.evaluate("chrome.storage.local.remove('session')")


async def test_a_local_area_that_is_closed_is_refused_and_tells_nothing(
    relaying: Browser, content: Content
) -> None:
    await content.evaluate("""globalThis.heard = [];
      const hear = (changes, area) => heard.push([area, Object.keys(changes).join()]);
      keep.storage.onChanged.addListener(hear);
      keep.storage.local.set({ open: 1 })""")
    await _open(relaying, "local", False)
    worker = await relaying.wake_worker()
    await worker.evaluate("keep.storage.local.set({ closed: 1 })")
    assert (await content.outcome("keep.storage.local.get('closed')"))[2] == _REFUSED
    await _open(relaying, "local", True)
    await worker.evaluate("keep.storage.local.set({ again: 1 })")
    assert await content.evaluate("keep.storage.local.getKeys()") == ["again", "closed", "open"]
    assert await content.evaluate("heard") == [["local", "open"], ["local", "again"]]


async def test_levels_outlive_the_worker_and_the_browser(
    installation: Installation, web: str, tmp_path: Path
) -> None:
    async with _started(installation, tmp_path) as browser:
        await _open(browser, "session", True)
        await _open(browser, "local", False)
        await browser.stop_worker()
        content = await Content.open(browser, web)
        assert await content.outcome("keep.storage.session.getKeys()") == []
        assert (await content.outcome("keep.storage.local.getKeys()"))[2] == _REFUSED
    async with _started(installation, tmp_path) as browser:
        content = await Content.open(browser, web)
        assert await content.outcome("keep.storage.session.getKeys()") == []
        assert (await content.outcome("keep.storage.local.getKeys()"))[2] == _REFUSED


async def test_events_come_only_while_somebody_listens_and_nothing_stays(
    relaying: Browser, content: Content
) -> None:
    worker = await relaying.wake_worker()
    assert await _bound(relaying) == 0, "nothing is bound before the first call"
    await content.evaluate("keep.storage.local.getKeys()")
    assert await _bound(relaying) == 1
    assert not await worker.evaluate("keep.storage.local.onChanged.hasListeners()")
    await content.evaluate("""globalThis.heard = [];
      globalThis.listener = (changes) => heard.push(changes);
      keep.storage.local.onChanged.addListener(listener);
      keep.storage.local.set({ a: { b: 1 } }).then(() => heard.push('settled'))""")
    await worker.evaluate("keep.storage.local.set({ a: { b: 2 } })")
    await content.evaluate("keep.storage.local.getKeys()")
    assert await content.evaluate("heard") == [
        {"a": {"newValue": {"b": 1}}},
        "settled",
        {"a": {"newValue": {"b": 2}, "oldValue": {"b": 1}}},
    ]
    assert await worker.evaluate("keep.storage.local.onChanged.hasListeners()")
    assert not await worker.evaluate("keep.storage.session.onChanged.hasListeners()")
    await content.evaluate("keep.storage.local.onChanged.removeListener(listener)")
    await worker.evaluate("keep.storage.local.set({ a: 3 })")
    await content.evaluate("keep.storage.local.getKeys()")
    assert len(await content.evaluate("heard")) == 3
    assert not await worker.evaluate("keep.storage.local.onChanged.hasListeners()")
    await content.evaluate("keep.storage.local.onChanged.addListener(listener)")
    await content.evaluate("keep.storage.local.getKeys()")
    assert await worker.evaluate("keep.storage.local.onChanged.hasListeners()")
    await content.page.close()
    for _ in range(100):
        if await _bound(relaying) == 0:
            break
        await asyncio.sleep(0.05)
    assert await _bound(relaying) == 0
    assert not await worker.evaluate("keep.storage.local.onChanged.hasListeners()")


async def test_a_port_that_is_idle_is_closed(relaying: Browser, content: Content) -> None:
    await content.evaluate(
        "globalThis.keep = connectContent({ idle: 100 }); keep.storage.local.getKeys()"
    )
    assert await _bound(relaying) == 1
    await asyncio.sleep(0.6)
    assert await _bound(relaying) == 0
    assert await content.evaluate("keep.storage.local.getKeys()") == []


async def test_a_call_wakes_the_worker_and_a_listener_hears_what_it_missed(
    relaying: Browser, content: Content
) -> None:
    await content.evaluate("""globalThis.heard = []; globalThis.gaps = [];
      keep.onGap.addListener(({ area }) => gaps.push(area));
      keep.storage.local.onChanged.addListener((changes) => heard.push(changes));
      keep.storage.local.set({ a: 1 })""")
    await content.evaluate("keep.storage.local.getKeys()")
    await relaying.stop_worker()
    async with relaying.installation.second_process(await _token(content)) as host:
        await host.set({"a": 2})
        await host.set({"a": 3})
    assert not await relaying.worker_runs(), "a listener does not wake the worker"
    assert await content.evaluate("keep.storage.local.get('a')") == {"a": 3}
    await asyncio.sleep(0.2)
    assert await content.evaluate("[heard, gaps]") == [
        [
            {"a": {"newValue": 1}},
            {"a": {"newValue": 2, "oldValue": 1}},
            {"a": {"newValue": 3, "oldValue": 2}},
        ],
        [],
    ]


async def _token(content: Content) -> str:
    found = await content.evaluate("chrome.storage.local.get('sidekeep:profile')")
    token = found["sidekeep:profile"]
    assert isinstance(token, str)
    return token


async def test_a_page_that_comes_back_from_the_back_forward_cache_hears_and_calls(
    installation: Installation, tmp_path: Path, web: str
) -> None:
    cached = ["--disable-back-forward-cache"]
    async with _started(installation, tmp_path, without=cached) as browser:
        content = await Content.open(browser, web)
        # It tells by an attribute: the debugger loses the world of a script in the cache.
        await content.evaluate("""{
          const heard = [];
          keep.onGap.addListener(({ area }) => heard.push(`gap of ${area}`));
          keep.storage.local.onChanged.addListener(({ n }) => n && heard.push(n.newValue));
          addEventListener('pageshow', ({ persisted }) => persisted && heard.push('back'), true);
          const call = async () => {
            await keep.storage.local.set({ own: true });
            heard.push(await keep.storage.local.get('n'));
            document.documentElement.dataset.heard = JSON.stringify(heard);
          };
          document.addEventListener('call', call);
        } keep.storage.local.set({ n: 1 }).then(() => keep.storage.local.getKeys())""")
        assert await _bound(browser) == 1
        await content.page.goto(f"{web}2")
        worker = await browser.wake_worker()
        await worker.evaluate("keep.storage.local.set({ n: 2 })")
        await content.page.go_back(wait_until="commit")
        for _ in range(200):
            if await _bound(browser) == 1:
                break
            await asyncio.sleep(0.05)
        await worker.evaluate("keep.storage.local.set({ n: 3 })")
        await content.page.evaluate("document.dispatchEvent(new Event('call'))")
        await until_true(content.page, "'heard' in document.documentElement.dataset")
        heard = json.loads(await content.page.evaluate("document.documentElement.dataset.heard"))
        assert heard == [1, "back", 2, 3, {"n": 3}]


async def test_calls_in_flight_when_the_worker_stops_settle(
    relaying: Browser, content: Content
) -> None:
    await content.evaluate("""{
      const { local } = keep.storage;
      const call = (_, index) =>
        index % 2 ? local.get('n') : local.set({ n: 'x'.repeat(100_000) + index });
      globalThis.work = Promise.allSettled(Array.from({ length: 40 }, call))
      .then((all) => all.map(({ reason }) => reason?.kind ?? 'value'));
    } void 0""")
    await relaying.stop_worker()
    kinds = await asyncio.wait_for(content.evaluate("work"), 15)
    assert len(kinds) == 40
    assert set(kinds[1::2]) <= {"value", "unavailable"}, "reads"
    assert set(kinds[0::2]) <= {"value", "unavailable", "unknown"}, "changes"
    assert await content.evaluate(
        "keep.storage.local.set({ n: 1 }).then(() => keep.storage.local.get())"
    ) == {"n": 1}


async def test_a_value_of_many_megabytes_goes_through(content: Content) -> None:
    assert await content.evaluate("""(async () => {
      const big = 'é'.repeat(10_000_000);
      await keep.storage.local.set({ big });
      return (await keep.storage.local.get('big')).big === big;
    })()""")


async def test_a_page_script_cannot_reach_it(content: Content) -> None:
    await content.evaluate("keep.storage.local.set({ secret: 1 })")
    url = await content.evaluate("chrome.runtime.getURL('sidekeep/content.js')")
    reached = await content.page.evaluate(
        """async (url) => {
          const connect = typeof globalThis.chrome?.runtime?.connect;
          const reached = { keep: typeof keep, connect };
          const { connectContent } = await import(url);
          const call = connectContent().storage.local.get();
          reached.call = await call.then(() => 'answered', ({ kind }) => kind);
          return reached;
        }""",
        url,
    )
    assert reached == {"keep": "undefined", "connect": "undefined", "call": "unavailable"}


async def test_a_library_can_be_handed_the_stub(content: Content) -> None:
    assert await content.evaluate("""(async () => {
      globalThis.chrome = keep.asChrome();
      const { onChanged } = chrome.storage;
      const changed = new Promise((done) => onChanged.addListener((_, area) => done(area)));
      await chrome.storage.local.set({ library: 1 });
      return [await chrome.storage.local.get(), await changed, chrome.runtime.id.length];
    })()""") == [{"library": 1}, "local", 32]


async def test_a_worker_without_relay_is_said_in_words_and_not_asked_again_and_again(
    content: Content,
) -> None:
    kinds = await content.evaluate("""(async () => {
      const other = connectContent({ name: 'nobody', timeout: 1000 });
      const before = attempts;
      const kinds = [];
      for (let left = 50; left > 0; left -= 1) {
        const note = ({ kind, message, next }) => kinds.push([kind, message, next].join());
        await other.storage.local.set({ a: 1 }).catch(note);
        await new Promise((done) => setTimeout(done, 20));
      }
      return [[...new Set(kinds)], kinds.length, attempts - before];
    })()""")
    assert kinds[0] == [
        "unavailable,The worker of the extension does not serve content scripts.,"
        "Call relay(keep) in the first turn of the worker."
    ]
    assert kinds[1] == 50
    assert kinds[2] < 10


async def test_a_page_of_the_extension_that_outlives_it_says_so_once_and_stops(
    installation: Installation, web: str, tmp_path: Path
) -> None:
    async with _started(installation, tmp_path) as browser:
        page = await browser.context.new_page()
        page.on("pageerror", lambda error: browser.faults.append(str(error)))
        await page.goto(web)
        await page.evaluate(
            """(src) => {
              const frame = Object.assign(document.createElement('iframe'), { src });
              document.body.append(frame);
            }""",
            f"{ORIGIN}frame.html",
        )
        await until(lambda: len(page.frames) == 2, "the frame")
        frame = page.frames[1]
        await frame.wait_for_load_state()
        await frame.evaluate("""async () => {
          globalThis.settled = [];
          globalThis.polled = [];
          keep.storage.local.onChanged.addListener(() => {});
          await keep.storage.local.set({ a: 1 });
        }""")
        worker = await browser.wake_worker()
        assert await worker.evaluate("keep.storage.local.get('a')") == {"a": 1}, "one store"
        other = await browser.page(connect=False)
        await other.evaluate("void setTimeout(() => chrome.runtime.reload(), 100)")
        await frame.evaluate("""() => {
          const { local } = keep.storage;
          for (let index = 0; index < 20; index += 1) {
            const call = index % 2 ? local.get('a') : local.set({ a: 'x'.repeat(20_000_000) });
            call.then(() => settled.push('value'), ({ kind }) => settled.push(kind));
          }
          const poll = () => local.get('a').catch(({ kind }) => polled.push(kind));
          setInterval(poll, 100);
        }""")
        await asyncio.sleep(3)
        before = await frame.evaluate("attempts")
        await asyncio.sleep(SECONDS_OF_AN_ORPHAN)
        settled, polled, attempts, unhandled, status = await frame.evaluate(
            "[settled, polled, attempts, unhandled, keep.status()]"
        )
        assert len(settled) == 20
        assert "orphaned" in settled
        assert set(settled) <= {"value", "orphaned"}
        assert set(polled) == {"orphaned"}
        assert attempts - before < ATTEMPTS_OF_AN_ORPHAN
        assert unhandled == []
        assert browser.faults == []
        assert (status["state"], status["kind"]) == ("closed", "orphaned")


async def test_an_orphaned_content_script_says_so_once_and_stops(
    installation: Installation, web: str, tmp_path: Path
) -> None:
    async with _started(installation, tmp_path) as browser:
        content = await Content.open(browser, web)
        await content.evaluate("""globalThis.settled = []; globalThis.polled = [];
          keep.storage.local.onChanged.addListener(() => {});
          keep.storage.local.set({ a: 1 })""")
        page = await browser.page(connect=False)
        await content.evaluate("""for (let index = 0; index < 10; index += 1) {
            const { local } = keep.storage;
            const call = index % 2 ? local.get('a') : local.set({ a: 'x'.repeat(20_000_000) });
            call.then(() => settled.push('value'), ({ kind }) => settled.push(kind));
          }
          const poll = () => keep.storage.local.get('a').catch(({ kind }) => polled.push(kind));
          setInterval(poll, 100); void 0""")
        await page.evaluate("void setTimeout(() => chrome.runtime.reload(), 50)")
        await asyncio.sleep(2)
        before = await content.evaluate("attempts")
        await asyncio.sleep(SECONDS_OF_AN_ORPHAN)
        settled, polled, attempts, unhandled, status = await content.evaluate(
            "[settled, polled, attempts, unhandled, keep.status()]"
        )
        assert len(settled) == 10
        assert "orphaned" in settled
        assert set(settled) <= {"value", "orphaned"}
        assert set(polled) == {"orphaned"}
        assert len(polled) > 50
        assert attempts - before < ATTEMPTS_OF_AN_ORPHAN
        assert unhandled == []
        assert browser.faults == []
        assert (status["state"], status["kind"]) == ("closed", "orphaned")
        assert "Reload" in status["next"]
