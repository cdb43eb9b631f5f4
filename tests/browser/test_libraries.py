"""Storage libraries, unchanged, over the stub and a real host.

Each does real work in a page whose ``chrome`` is the stub's. What it stored is then read by another
host process from the file, and the browser's own areas must hold nothing but the stub's own keys.
All work is done twice: where ``chrome`` and ``browser`` are there, and where only ``chrome`` is. It
is also done over the browser's own areas and must come to the same.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Page, Worker, async_playwright

from tests.harness.sidekeep_host import ORIGIN, ROOT

from .driver import Browser, Installation, until_true
from .library_extension import Stored, pinned_versions, reading, write_library_extension
from .probe import fresh_profile

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WATCHING = [
    "extendChrome",
    "optionsSync",
    "plasmo",
    "polyfill",
    "webextCore",
    "webextStorage",
    "wxt",
]
WORKING = [name for name in WATCHING if name != "optionsSync"] + ["localForage", "storageCache"]
NOT_WATCHING = ["localForage", "reduxPersist", "storageCache"]

OpenPage = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def libraries(
    installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """Return a Chromium with the extension of all libraries, on a profile of its own."""
    folder = tmp_path_factory.mktemp("libraries")
    own = copy.copy(installation)
    own.profile = fresh_profile(installation, folder / "profile")
    extension = write_library_extension(folder / "extension")
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, own, extension)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(libraries: Browser) -> AsyncIterator[OpenPage]:
    """Return what opens a page with the libraries; the stores are empty before.

    Afterwards the browser's own areas must hold nothing but the stub's own keys.
    """
    worker = libraries.worker
    await worker.evaluate("Promise.all([keep.storage.local.clear(), keep.storage.session.clear()])")
    faults: list[str] = []

    async def open_page(world: str = "") -> Page:
        page = await libraries.context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(f"{ORIGIN}page.html{world}")
        await until_true(page, "'libraries' in globalThis")
        return page

    yield open_page
    for page in libraries.context.pages[1:]:
        await page.close()
    assert faults == [], "errors nobody handled in a page"
    for area in ("local", "session", "sync"):
        keys = await worker.evaluate(f"realStorage.{area}.getKeys()")
        assert [key for key in keys if not key.startswith("sidekeep:")] == []
        assert bool(keys) == (area != "sync"), "the real areas were not read"


@pytest_asyncio.fixture(loop_scope="session", params=["", "?chrome"], ids=["browser", "chrome"])
async def page(request: pytest.FixtureRequest, open_page: OpenPage) -> Page:
    """Return a page with the libraries, with and without a global ``browser``."""
    opened = await open_page(request.param)
    has_browser = await opened.evaluate("typeof browser !== 'undefined'")
    assert has_browser == (request.param == "")
    return opened


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stored(libraries: Browser) -> AsyncIterator[Stored]:
    """Return what reads the files of this browser profile and run in a process of its own."""
    async with reading(libraries) as stored:
        yield stored


async def test_wxt_storage_keeps_items_versions_and_metadata(page: Page, stored: Stored) -> None:
    did = await page.evaluate("libraries.wxt.work()")
    assert did == {
        "first": 0,
        "changes": [[0, 1], [1, 2]],
        "meta": {"day": "Monday"},
        "devices": ["device 1", "device 1"],
        "migrated": {"text": "old text", "tags": []},
        "several": [
            {"key": "session:tab", "value": {"open": [1, None]}},
            {"key": "local:theme", "value": "dark"},
            {"key": "local:missing", "value": None},
        ],
        "snapshot": {
            "device": "device 1",
            "draft": {"text": "old text", "tags": []},
            "draft$": {"v": 3},
            "theme": "dark",
        },
        "removed": None,
    }
    assert await stored.local() == {
        **did["snapshot"],
        "theme": "light",
        "visits": 3,
        "visits$": {"day": "Monday"},
    }
    assert await stored.session() == {"tab": {"open": [1, None]}}


async def test_plasmo_storage_keeps_namespaces_and_secrets(page: Page, stored: Stored) -> None:
    nested = {"list": [1, None, {"a": 2}]}
    did = await page.evaluate("libraries.plasmo.work()")
    assert did == {
        "changes": [[None, 300], [300, 320], [320, None]],
        # The library hands these out as it stored them.
        "all": {
            "nested": '{"list":[1,null,{"a":2}]}',
            "note": '"Grüße, 世界 😀"',
            "open": "true",
            "width": "340",
        },
        "some": {"open": True, "nested": nested},
        "opened": {"token": "the secret token"},
        "session": {"tab": "7"},
    }
    local = await stored.local()
    secret = local.pop("secret|:|key")
    assert re.fullmatch(r"[A-Za-z0-9+/]{80,}=*", secret), "not encrypted text"
    assert local == {"panel:note": '"Grüße, 世界 😀"', "panel:width": "340"}
    assert await stored.session() == {"tab": "7"}


async def test_webext_core_storage_keeps_items_of_both_areas(page: Page, stored: Stored) -> None:
    did = await page.evaluate("libraries.webextCore.work()")
    assert did == {
        "missing": None,
        "changes": [[None, 1], [1, 2], [2, None]],
        "other": {"deep": [True]},
        "tab": 8,
    }
    assert await stored.local() == {"count": 3, "nothing": None, "other": {"deep": [True]}}
    assert await stored.session() == {"tab": 8}


async def test_webext_storage_keeps_items_and_maps(page: Page, stored: Stored) -> None:
    did = await page.evaluate("libraries.webextStorage.work()")
    assert did == {
        "before": [False, "system"],
        "changes": ["dark", None, "light"],
        "noted": [["a", "about a"], ["b", "about b"], ["c:::d", "about c:::d"], ["b", None]],
        "fallback": "empty",
        "entries": [["a", "about a"], ["c:::d", "about c:::d"]],
        "tab": {"id": 7},
    }
    assert await stored.local() == {
        "notes:::a": "about a",
        "notes:::c:::d": "about c:::d",
        "theme": "dark",
    }
    assert await stored.session() == {"tab": {"id": 7}}


async def test_webext_storage_cache_keeps_expires_and_renews(page: Page, stored: Stored) -> None:
    did = await page.evaluate("libraries.storageCache.work()")
    assert did == {
        "expired": None,
        "both": [{"server": "one", "asked": 1}] * 2,
        "other": {"server": "two", "asked": 2},
        "again": {"server": "one", "asked": 1},
        "fresh": {"server": "one", "asked": 3},
        "cached": [{"server": "three", "asked": 0}, None],
        "handedOut": [4, 4],
        "renewed": 5,
    }
    local = await stored.local()
    assert {key: value["data"] for key, value in local.items()} == {
        "cache:kept": {"models": ["a", "b"]},
        'cache:models:["one"]': {"server": "one", "asked": 3},
        'cache:models:["three"]': {"server": "three", "asked": 0},
        "cache:stale": 5,
    }
    assert all(isinstance(value["maxAge"], int) for value in local.values())
    await page.evaluate("libraries.storageCache.clear()")
    assert await stored.local() == {"not cached": 1}


async def test_webext_options_sync_follows_a_form(
    page: Page, open_page: OpenPage, stored: Stored
) -> None:
    other = await open_page()
    for one in (page, other):
        await one.evaluate("libraries.optionsSync.showForm()")
        assert await one.input_value("[name=color]") == "blue"
        assert await one.is_checked("[name=sound]")
    await page.bring_to_front()
    await page.fill("[name=name]", "Zoë")
    await page.select_option("[name=color]", "green")
    await page.uncheck("[name=sound]")
    await until_true(page, "saved === 1")
    # The other page shows it without being told; it is not being edited.
    await until_true(other, "document.querySelector('[name=name]').value === 'Zoë'")
    assert await other.input_value("[name=color]") == "green"
    assert not await other.is_checked("[name=sound]")
    options = {"color": "green", "name": "Zoë", "size": "12", "sound": False}
    assert await other.evaluate("libraries.optionsSync.getAll()") == options
    local = await stored.local()
    assert list(local) == ["options"]
    assert isinstance(local["options"], str), "compressed text"
    await page.evaluate("form.stopSyncForm()")


async def test_webext_options_sync_migrates_in_the_worker(
    libraries: Browser, open_page: OpenPage, stored: Stored
) -> None:
    page = await open_page()
    await page.evaluate("libraries.optionsSync.setAll({ colour: 'red', size: 14, unused: 1 })")
    former = (await stored.local())["options"]
    migrated = {"color": "red", "name": "", "size": 14, "sound": True}
    assert await libraries.worker.evaluate("libraries.optionsSync.migrate()") == migrated
    assert (await stored.local())["options"] != former
    assert await page.evaluate("libraries.optionsSync.getAll()") == migrated
    await page.evaluate("libraries.optionsSync.set({ size: 12, color: 'blue' })")
    # Written by the library of a plain object: it reads these, too.
    await stored.set_local({"options": {"color": "pink"}})
    assert (await page.evaluate("libraries.optionsSync.getAll()"))["color"] == "pink"


async def test_extend_chrome_storage_keeps_buckets(page: Page, stored: Stored) -> None:
    did = await page.evaluate("libraries.extendChrome.work()")
    assert did == {
        "changes": [
            {"runs": {"newValue": 1}, "name": {"newValue": "first"}},
            {"runs": {"oldValue": 1, "newValue": 6}},
            {"runs": {"oldValue": 6, "newValue": 60}},
            {"name": {"oldValue": "first"}},
        ],
        "last": {"runs": 60},
        "withDefault": {"runs": 60, "missing": "default"},
        "keys": ["runs"],
        "got": 1,
        "refused": "Unexpected setter return value: number",
    }
    assert await stored.local() == {
        "extend-chrome/storage__counts--runs": 60,
        "extend-chrome/storage__counts_keys": ["runs"],
        "extend-chrome/storage__local--other": [1, 2],
        "extend-chrome/storage__local_keys": ["other"],
    }


async def test_webextension_polyfill_gives_promises(
    page: Page, stored: Stored, libraries: Browser
) -> None:
    wraps = await page.evaluate("typeof browser === 'undefined'")
    assert await page.evaluate("libraries.polyfill.wraps()") == wraps
    did = await page.evaluate("libraries.polyfill.work()")
    assert did == {
        "changes": [
            {
                "a": {"newValue": 1},
                "b": {"newValue": {"c": [None, "x"]}},
                "gone": {"newValue": True},
            },
            {"gone": {"oldValue": True}},
        ],
        "withDefaults": {"a": 1, "b": {"c": [None, "x"], "e": 1}, "z": "default"},
        "all": {"a": 1, "b": {"c": [None, "x"]}, "d": "unheard"},
        "bytes": 12,
        "session": {"tab": 7},
        "refusal": "Cannot serialize value to JSON",
        "thrown": "TypeError",
        "lastError": False,
        "id": ORIGIN.split("/")[2],
    }
    assert await stored.local() == did["all"]
    assert await stored.session() == {"tab": 7}


async def test_redux_persist_brings_a_state_back(
    page: Page, open_page: OpenPage, stored: Stored
) -> None:
    assert (await page.evaluate("libraries.reduxPersist.open()"))["notes"] == []
    for note in ("one", "two"):
        await page.evaluate(
            "(note) => libraries.reduxPersist.dispatch({ type: 'add', note })", note
        )
    await page.evaluate("libraries.reduxPersist.dispatch({ type: 'draft', draft: 'not kept' })")
    local = await stored.local()
    assert list(local) == ["persist:panel"]
    assert r"[\"one\",\"two\"]" in local["persist:panel"]
    await page.close()
    second = await open_page()
    state = await second.evaluate("libraries.reduxPersist.open()")
    assert (state["notes"], state["draft"]) == (["one", "two"], "")
    third = await open_page()
    state = await third.evaluate("libraries.reduxPersist.open(2)")
    assert state["notes"] == [{"text": "one"}, {"text": "two"}]
    await third.evaluate("libraries.reduxPersist.dispatch({ type: 'add', note: { text: '3' } })")
    assert r"\"version\":2" in (await stored.local())["persist:panel"]
    await third.evaluate("libraries.reduxPersist.purge()")
    assert await stored.local() == {}


async def test_localforage_keeps_lists_and_iterates(page: Page, stored: Stored) -> None:
    await stored.set_local({"former": "cleared"})
    did = await page.evaluate("libraries.localForage.work(12_000_000)")  # the real area holds less
    values = [1, None, {"deep": ["x"]}]
    assert did == {
        "driver": "webExtensionLocalStorage",
        "seen": [[0, "list", values], [1, "number", 1.5], [2, "text", "Grüße 😀"]],
        "inCallback": [None, values],
        "missing": None,
        "keys": ["list", "number", "text"],
        "second": "number",
        "length": 3,
        "whole": True,
        "refusal": "Cannot serialize value to JSON",
    }
    local = await stored.local()
    assert len(local.pop("big")) == 12_000_000
    assert local == {"list": values, "number": 1.5, "text": "Grüße 😀"}


@pytest.mark.parametrize("library", WORKING)
async def test_a_library_comes_to_the_same_over_the_real_areas(
    library: str, open_page: OpenPage, stored: Stored
) -> None:
    work = f"libraries.{library}.work(1000)"
    ours = await (await open_page()).evaluate(work)
    real = await (await open_page("?real")).evaluate(f"""async () => {{
      const areas = [chrome.storage.local, chrome.storage.session];
      const kept = await Promise.all(areas.map((area) => area.get()));
      await Promise.all(areas.map((area) => area.clear()));
      const did = await {work};
      const keys = await Promise.all(areas.map((area) => area.getKeys()));
      await Promise.all(areas.map((area) => area.clear()));
      await Promise.all(areas.map((area, number) => area.set(kept[number])));
      return {{ did, keys }};
    }}""")
    assert ours == real["did"]
    assert [list(await stored.local()), list(await stored.session())] == real["keys"]


async def _until_heard(context: Page | Worker, library: str, told: list[str]) -> None:
    end = asyncio.get_running_loop().time() + 15
    while (heard := await context.evaluate(f"libraries.{library}.heard")) != told:
        assert asyncio.get_running_loop().time() < end, f"told {told}, heard {heard}"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("library", WATCHING)
async def test_contexts_hear_each_other_through_the_library(
    library: str, libraries: Browser, open_page: OpenPage, stored: Stored
) -> None:
    contexts: list[Page | Worker] = [
        await open_page(),
        await open_page("?chrome"),
        libraries.worker,
    ]
    for context in contexts:
        await context.evaluate(f"libraries.{library}.hear()")
        # A read goes the same way as the wish to listen, so nothing after it is missed.
        await context.evaluate(f"libraries.{library}.read()")
    told: list[str] = []
    for number, context in enumerate(contexts):
        told.append(f"from context {number}")
        await context.evaluate(f"(value) => libraries.{library}.tell(value)", told[-1])
        for other in contexts:
            await _until_heard(other, library, told)
            assert await other.evaluate(f"libraries.{library}.read()") == told[-1]
    assert told[-1] in str(await stored.local()) or library == "optionsSync"


@pytest.mark.parametrize("library", NOT_WATCHING)
async def test_contexts_read_what_the_others_wrote(
    library: str, libraries: Browser, open_page: OpenPage, stored: Stored
) -> None:
    contexts: list[Page | Worker] = [
        await open_page(),
        await open_page("?chrome"),
        libraries.worker,
    ]
    for number, context in enumerate(contexts):
        told = f"from context {number}"
        await context.evaluate(f"(value) => libraries.{library}.tell(value)", told)
        for other in contexts:
            assert await other.evaluate(f"libraries.{library}.read()") == told
        assert told in str(await stored.local())


async def test_a_library_hears_what_another_process_changes(
    open_page: OpenPage, stored: Stored
) -> None:
    page = await open_page()
    await page.evaluate("libraries.wxt.hear()")
    await page.evaluate("libraries.wxt.tell('ours')")
    await stored.set_local({"shared": "theirs"})
    await until_true(page, "libraries.wxt.heard.length === 2")
    assert await page.evaluate("libraries.wxt.heard") == ["ours", "theirs"]


async def test_the_documented_versions_are_the_tested_ones() -> None:
    text = (ROOT / "docs" / "libraries-tested.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([\d.]+) \|", text, re.MULTILINE))
    beside = {"@babel/runtime", "esbuild", "redux", "redux-persist"}
    assert rows == {
        name: version for name, version in pinned_versions().items() if name not in beside
    }
