"""Hosts come and go with their ports; a change posted just before the end is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page

from tests.harness.sidekeep_host import ORIGIN

from .driver import Browser, kill, until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("cycles", [9, pytest.param(50, marks=pytest.mark.long)])
async def test_no_more_hosts_run_than_ports_are_open(browser: Browser, cycles: int) -> None:
    hosts = browser.installation.hosts
    await browser.stop_worker()
    await until(lambda: hosts() == [], "no host at the start")
    for cycle in range(cycles):
        pages = [await browser.page(), await browser.page()]
        for page in pages:
            await page.evaluate("keep.storage.local.set({ cycle: 1 })")
        pids = [await page.evaluate("keep.status().host.pid") for page in pages]
        assert sorted(hosts()) == sorted(pids), "one process for each port, and no shell beside it"
        if cycle % 3 == 0:
            kill(pids[0])
            await pages[0].evaluate("keep.storage.local.get('cycle')")
            assert len(hosts()) == 2
        if cycle % 3 == 1:
            await pages[0].evaluate("keep.close()")
        for page in pages:
            await page.close()
        await until(lambda: hosts() == [], "the hosts of closed pages to end", 3)
    worker = await browser.wake_worker()
    readers = await worker.evaluate("keep.call('host.status').then(({ readers }) => readers)")
    # Its own reader, and the slot that the library keeps of the one before.
    assert readers <= 2, "readers of killed hosts were left in the lock file"


_SET = "keep.storage.local.set({ [`round ${number}`]: 'x'.repeat(20_000) }).catch(() => {});"


async def _close(page: Page, number: int) -> None:
    await page.evaluate(f"(number) => {{ {_SET} }}", number)
    await page.close()


async def _close_from_inside(page: Page, number: int) -> None:
    # Not in the same tick: Playwright could not tell that the script has ended.
    async with page.expect_event("close"):
        await page.evaluate(
            f"(number) => {{ setTimeout(() => {{ {_SET} window.close(); }}) }}", number
        )


async def _reload(page: Page, number: int) -> None:
    async with page.expect_navigation():
        await page.evaluate(f"(number) => {{ {_SET} location.reload(); }}", number)
    await page.close()


async def _leave(page: Page, number: int) -> None:
    async with page.expect_navigation():
        await page.evaluate(f"(number) => {{ {_SET} location.href = 'page.css'; }}", number)
    await page.close()


async def _disconnect(page: Page, number: int) -> None:
    await page.evaluate(
        f"(number) => {{ {_SET} queueMicrotask(() => spy.ports.at(-1).disconnect()); }}", number
    )
    await page.close()


async def _close_link(page: Page, number: int) -> None:
    await page.evaluate(f"(number) => {{ {_SET} return keep.close(); }}", number)
    await page.close()


_ENDS: dict[str, Callable[[Page, int], Awaitable[None]]] = {
    "the page is closed": _close,
    "the page closes itself": _close_from_inside,
    "the page is reloaded": _reload,
    "the page goes elsewhere": _leave,
    "the port is disconnected": _disconnect,
    "the link is closed": _close_link,
}


@pytest.mark.parametrize("rounds", [2, pytest.param(17, marks=pytest.mark.long)])
@pytest.mark.parametrize("end", _ENDS)
async def test_a_change_posted_just_before_the_end_is_kept(
    browser: Browser, end: str, rounds: int
) -> None:
    watching = await browser.page()
    await watching.evaluate("keep.storage.local.clear()")
    for number in range(rounds):
        page = await browser.page(spy=True)
        await page.evaluate("keep.storage.local.getKeys()")
        pid = await page.evaluate("keep.status().host.pid")
        await _ENDS[end](page, number)
        await browser.host_ended(pid)
        keys = await watching.evaluate("keep.storage.local.getKeys()")
        assert keys == sorted(f"round {past}" for past in range(number + 1))


async def test_the_first_change_of_a_page_is_kept_when_the_page_is_closed_with_its_link(
    browser: Browser,
) -> None:
    watching = await browser.page()
    await watching.evaluate("keep.storage.local.clear()")
    page = await browser.context.new_page()
    await page.goto(f"{ORIGIN}manifest.json")
    await page.evaluate("""async () => {
      const { connect } = await import('/sidekeep/index.js');
      const keep = connect();
      keep.storage.local.set({ first: 1 });
      await keep.close();
      window.close();
    }""")
    assert await watching.evaluate("keep.storage.local.get()") == {"first": 1}
