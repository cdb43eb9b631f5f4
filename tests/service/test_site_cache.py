"""Site caches: one record per tab, of the page it shows, gone with the tab."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused


@pytest_asyncio.fixture
async def host(sandbox: Sandbox) -> AsyncIterator[SidekeepHost]:
    """Return a host with a browser run of its own."""
    async with sandbox.host() as started:
        await started.hello(run=uuid.uuid4().hex)
        yield started


async def _put(host: SidekeepHost, tab: int, url: str, data: Any = "data") -> dict[str, Any]:
    params = {"tabId": tab, "source": "youtube", "url": url, "data": data}
    answer: dict[str, Any] = await host.call("siteCache.put", params)
    return answer


async def _get(host: SidekeepHost, tab: int, **options: Any) -> tuple[Any, str | None]:
    """Return the data and the reason."""
    answer = await host.call("siteCache.get", {"tabId": tab, **options})
    record = answer["record"]
    return None if record is None else record["data"], answer.get("reason")


async def _tabs(host: SidekeepHost) -> set[int]:
    answer = await host.call("storage.getKeys", {"area": "session"})
    return {int(key[3:]) for key in answer["keys"] if key.startswith("sc_")}


async def test_a_record_is_an_item_of_the_session_area(host: SidekeepHost) -> None:
    await _put(host, 7, "https://a/", {"title": "é", "list": [1, None]})
    answer = await host.call("storage.get", {"area": "session", "keys": "sc_7"})
    record = answer["items"]["sc_7"]
    assert {name: record[name] for name in ("source", "url", "data")} == {
        "source": "youtube",
        "url": "https://a/",
        "data": {"title": "é", "list": [1, None]},
    }
    assert abs(record["time"] - 1.7e12) < 1e12
    assert await _get(host, 7) == ({"title": "é", "list": [1, None]}, None)


async def test_data_of_another_page_is_refused_and_told(host: SidekeepHost) -> None:
    await _put(host, 7, "https://a/1")
    assert await _get(host, 7, url="https://a/2") == (None, "otherPage")
    assert await _get(host, 7, url="https://a/1") == ("data", None)
    assert await _get(host, 8) == (None, "none")
    await _put(host, 7, "https://a/2", "new")
    assert await _get(host, 7, url="https://a/2") == ("new", None)


async def test_records_of_dead_tabs_go_at_the_first_look(host: SidekeepHost) -> None:
    for tab in range(1, 6):
        await _put(host, tab, f"https://a/{tab}")
    assert await _get(host, 2, live=[2, 4, 9]) == ("data", None)
    assert await _tabs(host) == {2, 4}
    assert await _get(host, 3, live=[2, 4, 9]) == (None, "closed")


async def test_a_discarded_tab_finds_its_record_under_its_new_id(host: SidekeepHost) -> None:
    await _put(host, 5, "https://a/5", "mine")
    await _put(host, 6, "https://a/6")
    assert await _get(host, 50, url="https://a/5", live=[6, 50]) == ("mine", None)
    assert await _tabs(host) == {6, 50}
    assert await _get(host, 51, url="https://a/6", live=[6, 50, 51]) == (None, "none")


async def test_purged_tabs_have_nothing(host: SidekeepHost) -> None:
    await _put(host, 1, "https://a/")
    await _put(host, 2, "https://a/")
    await host.call("siteCache.purge", {"tabIds": [1, 99]})
    assert await _tabs(host) == {2}


async def test_the_oldest_records_go_when_there_are_too_many(host: SidekeepHost) -> None:
    for tab in range(300):
        assert await _put(host, tab, "https://a/") == {}
    assert await _put(host, 300, "https://a/") == {"evicted": [0]}
    assert await _tabs(host) == set(range(1, 301))


async def test_the_oldest_records_go_when_they_are_too_large(host: SidekeepHost) -> None:
    for tab in range(4):
        assert await _put(host, tab, "https://a/", "x" * 1_200_000) == {}
    assert await _put(host, 9, "https://a/", "x" * 1_500_000) == {"evicted": [0, 1]}
    with refused("tooLarge"):
        await _put(host, 10, "https://a/", "x" * 5_000_000)
    assert await _tabs(host) == {2, 3, 9}


async def test_items_that_only_look_like_records_are_left_alone(host: SidekeepHost) -> None:
    items = {"sc_": 1, "sc_x": 1, "sc_7b": {}, "sc_8": "no record", "sd": 1}
    await host.call("storage.set", {"area": "session", "items": items})
    assert await _get(host, 8) == (None, "none")
    assert await _get(host, 1, live=[8]) == (None, "closed")
    answer = await host.call("storage.get", {"area": "session", "keys": None})
    assert answer["items"] == items


async def test_after_many_tabs_and_kills_exactly_the_live_ones_have_records(
    sandbox: Sandbox,
) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    run = uuid.uuid4().hex
    pages: dict[int, str | None] = {}
    newest = 0
    for _ in range(4):
        async with sandbox.host() as host:
            await host.hello(run=run)
            for _ in range(250):
                act = dice.random()
                if act < 0.45 or not pages:
                    newest += 1
                    pages[newest] = f"https://a/{newest}"
                    await _put(host, newest, f"https://a/{newest}", newest)
                elif act < 0.6:  # another page, about which nothing was told
                    pages[dice.choice(list(pages))] = None
                elif act < 0.8:
                    del pages[dice.choice(list(pages))]
                else:  # the browser discards a tab: the same page under a new id
                    newest += 1
                    pages[newest] = pages.pop(dice.choice(list(pages)))
                    page = pages[newest]
                    if page is not None:
                        await _get(host, newest, url=page, live=list(pages))
            host.kill()
    async with sandbox.host() as host:
        await host.hello(run=run)
        for tab, page in pages.items():
            data, _ = await _get(host, tab, url=page or "https://other/", live=list(pages))
            expected = None if page is None else int(page.rsplit("/", 1)[1])
            assert data == expected, f"seed {seed}"
        assert await _tabs(host) <= set(pages), f"seed {seed}"
