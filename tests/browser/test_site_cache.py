"""Site caches in a real Chromium: tabs that close, are discarded and go elsewhere.

The worker is stopped through the developer tools (as the browser stops an idle one), and whether an
event started it is read from the count that the worker keeps of its starts.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext, CDPSession, Page, async_playwright

from tests.harness.sidekeep_host import ORIGIN

from .driver import Installation, chromium
from .probe import Server, flags, fresh_profile, write_extension

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

LONG_ENOUGH_TO_START = 0.7
"""Seconds in which an event would have started the worker and it would have counted that."""


class Tabs:
    """A Chromium with the probe extension; `page` and `worker` call what a path names."""

    def __init__(self, context: BrowserContext, home: Page, control: CDPSession, url: str) -> None:
        self.context = context
        self.home = home
        self.url = url
        self._control = control

    async def page(self, path: str, *args: Any) -> Any:
        """Call what ``path`` names in the page of the extension."""
        script = """async ([path, args]) => {
          const { call } = await import('/calls.js');
          return call({ path, args });
        }"""
        return await self.home.evaluate(script, [path, list(args)])

    async def worker(self, path: str, *args: Any) -> Any:
        """Call what ``path`` names in the worker: the message wakes it."""
        answer = await self.page("ask", path, *args)
        assert "error" not in answer, f"{path}: {answer['error']}"
        return answer["value"]

    async def open(self, name: str) -> tuple[int, str]:
        """Open a tab, in whose page nothing of the extension runs; return its id and URL."""
        url = f"{self.url}{name}"
        tab = await self.page("chrome.tabs.create", {"url": url, "active": False})
        while True:
            tab = await self.page("chrome.tabs.get", tab["id"])
            if tab["status"] == "complete":
                return tab["id"], url
            await asyncio.sleep(0.02)

    async def put(self, tab: int, url: str, data: Any) -> None:
        content = {"tabId": tab, "source": "test", "url": url, "data": data}
        assert (await self.worker("keep.siteCache.put", content))["stored"]

    async def ask(self, tab: int, url: str | None = None) -> Any:
        """Return the data of a tab's record, or the reason why there is none."""
        which = {} if url is None else {"url": url}
        found = await self.worker("keep.siteCache.lookUp", tab, which)
        return found["record"]["data"] if found["record"] else found["reason"]

    async def records(self) -> list[str]:
        """Return the keys of the records that the host has."""
        keys: list[str] = await self.worker("keep.storage.session.getKeys")
        return [key for key in keys if key.startswith("sc_")]

    async def runs(self) -> bool:
        targets = await self._control.send("Target.getTargets")
        return any(target["type"] == "service_worker" for target in targets["targetInfos"])

    async def stop(self) -> int:
        """Stop the worker; return how often it has been started so far."""
        while await self.runs():
            await self._control.send("ServiceWorker.stopAllWorkers")
            await asyncio.sleep(0.02)
        starts = await self.page("starts")
        assert isinstance(starts, int)
        return starts

    async def rest(self) -> int:
        """Wait until the port is closed, and then stop the worker."""
        while (await self.worker("keep.status"))["state"] != "idle":
            await asyncio.sleep(0.02)
        return await self.stop()

    async def started(self, before: int) -> bool:
        """Whether something starts the worker now."""
        await asyncio.sleep(LONG_ENOUGH_TO_START)
        running = await self.runs()
        return running or await self.page("starts") != before


@pytest.fixture(scope="module")
def pages() -> Iterator[Server]:
    """Return a server of plain pages."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@asynccontextmanager
async def _chromium(profile: Path, pages: Server, extension: Path) -> AsyncIterator[Tabs]:
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium(),
            headless=False,
            args=flags(extension),
        )
        if not context.service_workers:
            await context.wait_for_event("serviceworker")
        home = context.pages[0]
        await home.goto(f"{ORIGIN}control.html")
        control = await context.new_cdp_session(home)
        await control.send("ServiceWorker.enable")
        tabs = Tabs(context, home, control, pages.url)
        # Stopped before its first start is through, the worker would never be woken: the browser
        # learns in that start what it listens to.
        await tabs.worker("keep.status")
        yield tabs
        await tabs.worker("keep.status")  # a stopped worker would keep Playwright waiting
        await context.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def tabs(
    installation: Installation, pages: Server, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Tabs]:
    """Return a Chromium whose worker closes its port soon after the last call."""
    folder = tmp_path_factory.mktemp("probe")
    profile = fresh_profile(installation, folder / "profile")
    extension = write_extension(folder / "extension", idle=250)
    async with _chromium(profile, pages, extension) as opened:
        yield opened


@pytest.mark.parametrize("rounds", [10, pytest.param(30, marks=pytest.mark.long)])
async def test_a_tab_that_closes_does_not_start_the_worker_and_its_record_is_gone(
    tabs: Tabs, rounds: int
) -> None:
    for number in range(rounds):
        tab, url = await tabs.open(f"closes/{number}")
        stays, stays_url = await tabs.open(f"stays/{number}")
        await tabs.put(tab, url, number)
        await tabs.put(stays, stays_url, number)
        starts = await tabs.rest()
        await tabs.page("chrome.tabs.remove", tab)
        assert not await tabs.started(starts), f"round {number}: the closed tab woke the worker"
        assert await tabs.ask(tab, url) == "closed"
        assert await tabs.ask(stays, stays_url) == number
        assert await tabs.records() == [f"sc_{stays}"]
        await tabs.page("chrome.tabs.remove", stays)
        await tabs.worker("keep.siteCache.purge", stays)


async def test_a_tab_that_closes_while_the_worker_is_awake_loses_its_record_at_once(
    tabs: Tabs,
) -> None:
    tab, url = await tabs.open("awake")
    await tabs.put(tab, url, 1)
    await tabs.page("chrome.tabs.remove", tab)
    end = asyncio.get_running_loop().time() + 2  # what field experience asks for
    while await tabs.records():
        assert asyncio.get_running_loop().time() < end, "the record is there after 2 s"
        await asyncio.sleep(0.02)


async def test_listeners_of_a_worker_that_was_killed_are_cleared_by_the_next_use(
    tabs: Tabs,
) -> None:
    tab, url = await tabs.open("killed")
    others = [(await tabs.open(f"other/{number}"))[0] for number in range(2)]
    await tabs.put(tab, url, 1)
    starts = await tabs.stop()  # while its listeners are there
    await tabs.page("chrome.tabs.remove", others[0])
    assert await tabs.started(starts), "the browser remembers listeners: the check works"
    await tabs.worker("keep.storage.local.getKeys")
    starts = await tabs.rest()
    await tabs.page("chrome.tabs.remove", others[1])
    assert not await tabs.started(starts)
    assert await tabs.ask(tab, url) == 1
    await tabs.page("chrome.tabs.remove", tab)


async def test_a_discarded_tab_keeps_its_record_awake_and_asleep(tabs: Tabs) -> None:
    opened = [await tabs.open(f"discarded/{number}") for number in range(3)]
    for tab, url in opened:
        await tabs.put(tab, url, url)
    awake = (await tabs.page("chrome.tabs.discard", opened[0][0]))["id"]
    await tabs.rest()
    asleep = [(await tabs.page("chrome.tabs.discard", tab))["id"] for tab, _ in opened[1:]]
    new = [awake, *asleep]
    assert set(new).isdisjoint(tab for tab, _ in opened), "a discarded tab gets a new id"
    for tab, (old, url) in zip(new, opened, strict=True):
        assert await tabs.ask(tab) == url
        assert await tabs.ask(tab, url) == url
        assert await tabs.ask(old, url) == "closed"
    assert sorted(await tabs.records()) == sorted(f"sc_{tab}" for tab in new)
    await tabs.page("chrome.tabs.remove", new)


async def test_a_page_tells_of_itself_and_of_no_other_tab(tabs: Tabs) -> None:
    tab, url = await tabs.open("site/1")
    while await tabs.ask(tab) != "a page":
        await asyncio.sleep(0.02)
    record = await tabs.worker("keep.siteCache.get", tab)
    assert (record["source"], record["url"]) == ("test", url)
    await tabs.page("chrome.tabs.update", tab, {"url": f"{tabs.url}elsewhere"})
    while await tabs.ask(tab) != "otherPage":
        await asyncio.sleep(0.02)
    assert await tabs.ask(tab, url) == "a page", "who asks for that page by name gets it"
    await tabs.page("chrome.tabs.remove", tab)


async def test_pages_that_renew_a_value_at_the_same_moment_make_it_once(tabs: Tabs) -> None:
    script = """async () => {
      const { connect } = await import('/sidekeep/index.js');
      globalThis.cached = (more) => connect().siteCache.cached('models', {
        refresh: async () => {
          const { made = 0 } = await chrome.storage.local.get('made');
          await new Promise((done) => setTimeout(done, 200));
          await chrome.storage.local.set({ made: made + 1 });
          return `made ${made + 1}`;
        },
        ...more,
      }).then(({ data }) => data);
    }"""
    other = await tabs.context.new_page()
    await other.goto(f"{ORIGIN}control.html")
    for page in (tabs.home, other):
        await page.evaluate(script)
    for expected in ("made 1", "made 2"):
        old = {"made 1": "{}", "made 2": "{ validate: (data) => data !== 'made 1' }"}[expected]
        asking = [page.evaluate(f"cached({old})") for page in (tabs.home, other, other)]
        assert await asyncio.gather(*asking) == [expected] * 3
    await other.close()


async def test_without_permission_for_urls_everything_works_but_what_needs_one(
    installation: Installation, pages: Server, tmp_path: Path
) -> None:
    profile = fresh_profile(installation, tmp_path / "profile")
    extension = write_extension(tmp_path / "extension", idle=250, tabs=False)
    async with _chromium(profile, pages, extension) as tabs:
        (tab, url), (other, other_url) = await tabs.open("a"), await tabs.open("b")
        assert "url" not in await tabs.page("chrome.tabs.get", tab)
        await tabs.put(tab, url, 1)
        await tabs.put(other, other_url, 2)
        await tabs.rest()
        await tabs.page("chrome.tabs.remove", other)
        new = (await tabs.page("chrome.tabs.discard", tab))["id"]
        assert await tabs.ask(new, url) == 1, "found by the page that was asked for"
        assert await tabs.ask(other, other_url) == "closed"
        refused = await tabs.page("ask", "keep.siteCache.get", new, {"url": True})
        assert refused["error"].startswith("forbidden: The extension may not know which page")


@pytest.mark.parametrize("rounds", [10, pytest.param(30, marks=pytest.mark.long)])
async def test_the_event_that_wakes_the_worker_is_heard(
    installation: Installation, pages: Server, tmp_path: Path, rounds: int
) -> None:
    profile = fresh_profile(installation, tmp_path / "profile")
    extension = write_extension(tmp_path / "extension", idle=250, listening=True)
    events = {
        "message": ("chrome.runtime.sendMessage", "event"),
        "port": ("chrome.runtime.connect",),
        "storage": ("chrome.storage.session.set",),
        "tab": ("chrome.tabs.remove",),
    }
    async with _chromium(profile, pages, extension) as tabs:
        expected: list[str] = []
        for number in range(rounds):
            for name, (path, *args) in events.items():
                given: list[Any] = list(args)
                if name == "tab":
                    given = [(await tabs.open("closes"))[0]]
                if name == "storage":
                    given = [{"event": number + 1}]
                await tabs.stop()
                if name == "message":  # nobody answers it
                    await tabs.home.evaluate("() => { chrome.runtime.sendMessage('event'); }")
                elif name == "port":
                    await tabs.home.evaluate("() => { chrome.runtime.connect(); }")
                else:
                    await tabs.page(path, *given)
                expected.append(name)
                end = asyncio.get_running_loop().time() + 10
                while (await tabs.page("chrome.storage.local.get")).get("heard") != expected:
                    assert asyncio.get_running_loop().time() < end, f"{name} was lost"
                    await asyncio.sleep(0.02)
