"""Turns in a worker of a real Chromium: how long they hold it, and what is found after its end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page

from .driver import Browser, until_true

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

IDLE_SECONDS = 5
"""After so long without a call the stub lets the port of a worker go."""

_BEGIN = """() => keep.turns.begin({ text: 'Are you there?', target: { style: 'chat' } })
  .then((turn) => {
    globalThis.turn = turn;
    return { ...turn, request: turn.request };
  })"""


async def _entries(page: Page) -> list[Any]:
    listed = await page.evaluate("keep.history.list()")
    return [one["entry"] for one in listed["entries"]]


async def test_a_turn_holds_the_port_of_the_worker_so_that_nobody_takes_it_for_dead(
    browser: Browser, page: Page
) -> None:
    worker = await browser.wake_worker()
    begun = await worker.evaluate(_BEGIN)
    assert begun["request"] == {"messages": [{"content": "Are you there?", "role": "user"}]}
    pid = await worker.evaluate("keep.status().host.pid")
    await asyncio.sleep(IDLE_SECONDS + 1.5)
    assert await worker.evaluate("keep.status().state") == "connected"
    assert pid in browser.installation.hosts()
    other = await browser.page()
    assert await other.evaluate("keep.notices()") == []
    assert await _entries(other) == [{"content": "Are you there?", "role": "user"}]
    await worker.evaluate("turn.complete('Yes.')")
    assert (await _entries(page))[1] == {"content": "Yes.", "role": "assistant"}
    await browser.host_ended(pid, IDLE_SECONDS + 10)


async def test_a_turn_of_a_worker_that_was_stopped_is_told_until_somebody_takes_note(
    browser: Browser, page: Page
) -> None:
    worker = await browser.wake_worker()
    begun = await worker.evaluate(_BEGIN)
    await worker.evaluate("turn.progress('Yes, I')")
    pid = await worker.evaluate("keep.status().host.pid")
    await asyncio.sleep(0.2)
    await browser.stop_worker()
    await browser.host_ended(pid)
    first = await browser.page()
    [notice] = await first.evaluate("keep.notices()")
    assert {name: notice[name] for name in ("kind", "turnId", "entryId", "conversation")} == {
        "kind": "interruptedTurn",
        **{name: begun[name] for name in ("turnId", "entryId", "conversation")},
    }
    assert await _entries(page) == [
        {"content": "Are you there?", "failed": "interrupted", "role": "user"},
        {"content": "Yes, I", "interrupted": True, "role": "assistant"},
    ]
    second = await browser.page()
    await second.evaluate(
        "keep.onNotice.addListener(({ id }) => { globalThis.heard = id; }), keep.call('host.ping')"
    )
    await until_true(second, f"globalThis.heard === '{notice['id']}'")
    await second.evaluate("(id) => keep.acknowledge(id)", notice["id"])
    third = await browser.page()
    assert await third.evaluate("keep.notices()") == []


async def test_hellos_right_after_a_page_that_died_find_its_turn(
    browser: Browser, page: Page
) -> None:
    for number in range(8):
        dying = await browser.page()
        begun = await dying.evaluate(_BEGIN)
        await dying.close()
        following = await browser.page()
        notices = await following.evaluate("keep.notices()")
        assert [one["turnId"] for one in notices] == [begun["turnId"]], f"page {number}"
        await following.evaluate("(id) => keep.acknowledge(id)", notices[0]["id"])
        await following.close()
        await page.evaluate("keep.history.clear()")
