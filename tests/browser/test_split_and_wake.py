"""An extension that asks to be woken and runs in split mode: its worker and its incognito side."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright

from tests.harness.sidekeep_host import EXTENSION_ID, ORIGIN

from .driver import EXTENSION, Browser, Installation, until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_WORKER = """
import { connect } from './sidekeep/index.js';

globalThis.keep = connect({ wake: true });
globalThis.heard = [];
keep.storage.local.onChanged.addListener((changes) => heard.push(changes));
"""

# Does on both areas what the real local area, which both sides share, tells it to do.
_SPLIT_PAGE = """
import { connect } from './sidekeep/index.js';

const keep = connect();
const heard = [];
keep.storage.onChanged.addListener((changes, area) => heard.push([area, changes]));
chrome.storage.local.onChanged.addListener(async ({ command }) => {
  if (!command?.newValue) return;
  const { number, area, method, args } = command.newValue;
  const storages = [chrome.storage, keep.storage];
  const results = await Promise.all(storages.map((storage) => storage[area][method](...args)));
  const incognito = chrome.extension.inIncognitoContext;
  await chrome.storage.local.set({ answer: { number, incognito, results, heard } });
});
keep.storage.session.getKeys().then(() => chrome.storage.local.set({ answer: { number: 0 } }));
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def split_browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """Return a browser with a variant of the extension, allowed in incognito windows."""
    folder = tmp_path_factory.mktemp("split")
    extension = folder / "extension"
    shutil.copytree(EXTENSION, extension)
    manifest = json.loads((extension / "manifest.json").read_text(encoding="utf-8"))
    manifest["incognito"] = "split"
    (extension / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (extension / "service_worker.js").write_text(_WORKER, encoding="utf-8")
    (extension / "split.js").write_text(_SPLIT_PAGE, encoding="utf-8")
    (extension / "split.html").write_text(
        '<!doctype html><script type="module" src="split.js"></script>', encoding="utf-8"
    )
    installation = Installation(folder / "installation")
    installation.install()
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, installation, extension)
        yield browser
        await browser.context.close()  # its first page ended when incognito was allowed
        await until(lambda: installation.hosts() == [], "the hosts to end with the browser")


async def test_a_change_wakes_the_worker_which_hears_all_it_missed(split_browser: Browser) -> None:
    browser = split_browser
    asks, plain = await browser.page(options={"wake": True}), await browser.page()
    worker = await browser.wake_worker()
    await asks.evaluate("keep.storage.local.set({ value: 0 })")
    await worker.evaluate("keep.storage.local.getKeys()")
    await browser.stop_worker()
    await plain.evaluate("keep.storage.local.set({ value: 1 })")
    await asyncio.sleep(0.5)
    assert not await browser.worker_runs(), "nobody asked to wake it"
    await asks.evaluate("keep.storage.local.set({ value: 2 })")
    for _ in range(100):
        if await browser.worker_runs():
            break
        await asyncio.sleep(0.05)
    assert await browser.worker_runs(), "it was not woken"
    expected = [
        {"value": {"newValue": 1, "oldValue": 0}},
        {"value": {"newValue": 2, "oldValue": 1}},
    ]
    heard: list[Any] = []
    for _ in range(100):
        heard = await browser.worker.evaluate("heard")
        if len(heard) >= 2:
            break
        await asyncio.sleep(0.05)
    assert heard == expected
    for page in (asks, plain):
        await page.close()


async def _allow_incognito(browser: Browser) -> None:
    manage = await browser.context.new_page()
    await manage.goto("chrome://extensions")
    await manage.evaluate(
        f"""async () => {{
          const {{ developerPrivate }} = chrome;
          await developerPrivate.updateProfileConfiguration({{ inDeveloperMode: true }});
          await developerPrivate.updateExtensionConfiguration(
            {{ extensionId: '{EXTENSION_ID}', incognitoAccess: true }},
          );
        }}"""
    )
    await manage.close()


class _Incognito:
    """The page of the incognito side, told what to do through the real local area."""

    def __init__(self, normal: Page) -> None:
        self._normal = normal
        self._number = 0

    async def does(self, area: str, method: str, *args: Any) -> dict[str, Any]:
        self._number += 1
        command = {"number": self._number, "area": area, "method": method, "args": args}
        await self._normal.evaluate("(command) => chrome.storage.local.set({ command })", command)
        return await self.answer(self._number)

    async def answer(self, number: int) -> dict[str, Any]:
        for _ in range(200):
            got = await self._normal.evaluate("chrome.storage.local.get('answer')")
            answer = got.get("answer")
            if answer is not None and answer["number"] == number:
                assert isinstance(answer, dict)
                return answer
            await asyncio.sleep(0.05)
        raise AssertionError("the incognito side did not answer")


async def test_the_incognito_side_sees_what_the_real_areas_would_show(
    split_browser: Browser,
) -> None:
    browser = split_browser
    await _allow_incognito(browser)
    normal = await browser.page()
    await normal.evaluate("""async () => {
      globalThis.heard = [];
      await keep.storage.local.clear();
      keep.storage.onChanged.addListener((changes, area) => heard.push([area, changes]));
      await keep.storage.session.getKeys();
    }""")
    await normal.evaluate(
        f"chrome.windows.create({{ incognito: true, url: '{ORIGIN}split.html' }})"
    )
    incognito = _Incognito(normal)
    await incognito.answer(0)
    for area in ("local", "session"):
        for storage in ("chrome", "keep"):
            await normal.evaluate(f"{storage}.storage.{area}.set({{ normal: [1] }})")
        seen = await incognito.does(area, "get", "normal")
        assert seen["incognito"]
        assert seen["results"] == [{"normal": [1]}, {"normal": [1]}]
        await incognito.does(area, "set", {"private": 2})
        for storage in ("chrome", "keep"):
            got = await normal.evaluate(f"{storage}.storage.{area}.get('private')")
            assert got == {"private": 2}
    expected = [
        [area, {key: {"newValue": value}}]
        for area in ("local", "session")
        for key, value in (("normal", [1]), ("private", 2))
    ]
    await normal.evaluate("keep.storage.session.getKeys()")
    assert await normal.evaluate("heard") == expected
    assert (await incognito.does("local", "get", "normal"))["heard"] == expected
