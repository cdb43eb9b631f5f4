"""The session area: it lives as long as the browser's own, and in memory."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from copy import copy
from pathlib import Path

import pytest
from playwright.async_api import Error, Page, async_playwright

from sidekeep.runplace import memory_root
from tests.harness.sidekeep_host import EXTENSION_ID

from .driver import Browser, Installation, kill, until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


def _session_files(installation: Installation) -> set[Path]:
    """Return the data files of session areas that hosts of this installation may have open."""
    files = set(Path(memory_root()).rglob("store.mdb"))
    held = set()
    for pid in installation.hosts():
        with suppress(OSError):
            held |= {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return {file for file in files if str(file) in held}


async def _page(browser: Browser) -> Page:
    """Return a page; the extension may be about to start again."""
    for _ in range(100):
        with suppress(Error):
            return await browser.page()
        await asyncio.sleep(0.1)
    raise AssertionError("the extension did not come back")


async def test_values_survive_the_host_and_the_worker(browser: Browser) -> None:
    page = await browser.page()
    worker = await browser.wake_worker()
    await worker.evaluate("keep.storage.session.set({ kept: [1, 2] })")
    kill(await worker.evaluate("keep.status().host.pid"))
    await browser.stop_worker()
    await until(lambda: browser.installation.hosts() == [], "no host to hold the area")
    assert await page.evaluate("keep.storage.session.get()") == {"kept": [1, 2]}
    kill(await page.evaluate("keep.status().host.pid"))
    worker = await browser.wake_worker()
    assert await worker.evaluate("keep.storage.session.get('kept')") == {"kept": [1, 2]}
    assert await page.evaluate("keep.storage.local.get('kept')") == {}
    await page.evaluate("keep.storage.session.clear()")


async def test_a_call_beyond_the_quota_stores_nothing_and_space_comes_back(page: Page) -> None:
    outcome = await page.evaluate("""async () => {
      const { session } = keep.storage;
      const refused = (items) => session.set(items).then(() => null, ({ kind }) => kind);
      await session.set({ old: 'x'.repeat(9_000_000) });
      const first = await refused({ small: 1, big: 'y'.repeat(2_000_000) });
      const keys = await session.getKeys();
      const second = await refused({ old: 'x', big: 'y'.repeat(9_000_000) });
      const third = await refused({ more: 'z'.repeat(2_000_000) });
      await session.remove('big');
      const fourth = await refused({ more: 'z'.repeat(10_000_000) });
      await session.clear();
      return [first, keys, second, third, fourth];
    }""")
    assert outcome == ["quota", ["old"], None, "quota", None]


async def test_buffers_and_texts_like_them_reach_other_contexts(browser: Browser) -> None:
    first, second = await browser.page(), await browser.page()
    await second.evaluate("""() => {
      globalThis.heard = [];
      const show = (value) => (value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value);
      keep.storage.session.onChanged.addListener((changes) => {
        heard.push(Object.entries(changes).map(([key, { newValue }]) => [key, show(newValue)]));
      });
    }""")
    await second.evaluate("keep.storage.session.getKeys()")
    stored = await first.evaluate("""async () => {
      const { session } = keep.storage;
      const bytes = crypto.getRandomValues(new Uint8Array(50_000));
      await session.set({ buffer: new Uint16Array([1, 513]), text: '\\0sidekeep:buffer:AQI=' });
      await session.set({ big: [{ bytes }] });
      const got = (await session.get('big')).big[0].bytes;
      const same = new Uint8Array(got).every((byte, at) => byte === bytes[at]);
      return got instanceof ArrayBuffer && got.byteLength === bytes.length && same;
    }""")
    assert stored
    text = "\0sidekeep:buffer:AQI="
    assert (await second.evaluate("heard"))[0] == [["buffer", [1, 0, 1, 2]], ["text", text]]
    assert (await second.evaluate("keep.storage.session.get('text')")) == {"text": text}
    await first.evaluate("keep.storage.session.clear()")


async def test_contexts_that_start_together_agree_on_the_session(browser: Browser) -> None:
    pages = [await browser.page(connect=False) for _ in range(4)]
    token = await browser.worker.evaluate("chrome.storage.session.get('sidekeep:run')")
    try:
        for attempt in range(5):
            await pages[0].evaluate("chrome.storage.session.remove('sidekeep:run')")
            for index, page in enumerate(pages):
                await page.evaluate(
                    """(name) => {
                      globalThis.done = new Promise((done) => {
                        new BroadcastChannel('start').onmessage = async () => {
                          const { connect } = await import('/sidekeep/index.js');
                          globalThis.link = connect();
                          done(await link.storage.session.set({ [name]: 1 }));
                        };
                      });
                    }""",
                    f"{attempt} {index}",
                )
            await browser.worker.evaluate("void new BroadcastChannel('start').postMessage('go')")
            for page in pages:
                await page.evaluate("done")
            for page in pages:
                keys = await page.evaluate("link.storage.session.getKeys()")
                assert keys == [f"{attempt} {index}" for index in range(4)]
            for page in pages:
                await page.evaluate("link.storage.session.clear().then(() => link.close())")
                await page.reload()
    finally:
        await pages[0].evaluate("(token) => chrome.storage.session.set(token)", token)


async def test_it_is_opened_by_its_first_call_lies_in_memory_and_ends_with_the_browser(
    tmp_path: Path,
) -> None:
    installation = Installation(tmp_path / "installation")
    installation.install()
    secret = "a value of the session area " * 10
    async with async_playwright() as playwright:
        ends = [_end_cleanly, _kill_browser, _reload, _disable]
        browser = await Browser.start(playwright, installation)
        for end in ends:
            page = await _page(browser)
            await page.evaluate("keep.storage.local.set({ kept: 1 })")
            await page.evaluate("keep.storage.local.onChanged.addListener(() => {})")
            await page.evaluate("keep.storage.local.getKeys()")
            assert _session_files(installation) == set(), "opened before it was asked for"
            assert await page.evaluate("keep.storage.session.get()") == {}, "left by another run"
            assert await page.evaluate("chrome.storage.session.get('real')") == {}
            await page.evaluate("(secret) => keep.storage.session.set({ secret })", secret)
            await page.evaluate("chrome.storage.session.set({ real: 1 })")
            (file,) = _session_files(installation)
            assert secret.encode() in file.read_bytes()
            browser = await end(browser, page)
        page = await _page(browser)
        assert await page.evaluate("keep.storage.session.get()") == {}
        assert await page.evaluate("keep.storage.local.get()") == {"kept": 1}
        runs = list(file.parents[1].glob(f"{file.parent.name.split('-')[0]}-*"))
        assert len(runs) == 1, "older runs are removed"
        await browser.context.close()
        await until(lambda: installation.hosts() == [], "the hosts to end")
    assert not str(file).startswith(str(tmp_path))
    found = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert found == [], "a value of the session area was written to the disk"
    shutil.rmtree(runs[0])


async def _end_cleanly(browser: Browser, page: Page) -> Browser:
    await browser.close()
    return await _started_again(browser)


async def _kill_browser(browser: Browser, page: Page) -> Browser:
    profile = f"--user-data-dir={browser.installation.profile}".encode()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if profile in words and not any(word.startswith(b"--type=") for word in words):
                os.kill(int(entry.name), signal.SIGKILL)
    with suppress(Error):
        await browser.close()
    return await _started_again(browser)


async def _started_again(browser: Browser) -> Browser:
    installation = browser.installation
    await until(lambda: installation.hosts() == [], "the hosts to end with the browser")
    return await Browser.start(browser.playwright, installation)


async def _reload(browser: Browser, page: Page) -> Browser:
    manage = await browser.context.new_page()
    await manage.goto("chrome://extensions")
    await manage.evaluate(
        "chrome.developerPrivate.updateProfileConfiguration({ inDeveloperMode: true })"
    )
    with suppress(Error):
        await page.evaluate("chrome.runtime.reload()")
    await until(lambda: browser.installation.hosts() == [], "the hosts to end")
    return browser


async def _disable(browser: Browser, page: Page) -> Browser:
    manage = await browser.context.new_page()
    await manage.goto("chrome://extensions")
    for enabled in ("false", "true"):
        await manage.evaluate(f"chrome.management.setEnabled('{EXTENSION_ID}', {enabled})")
    await manage.close()
    return browser


async def test_two_profiles_of_the_browser_share_nothing(
    installation: Installation, browser: Browser, page: Page
) -> None:
    other = copy(installation)
    other.profile = installation.folder / "another browser profile"
    shutil.copytree(
        installation.profile / "NativeMessagingHosts", other.profile / "NativeMessagingHosts"
    )
    await page.evaluate("keep.storage.local.set({ mine: 1 })")
    await page.evaluate("keep.storage.session.set({ mine: 1 })")
    await page.evaluate("""() => {
      globalThis.heard = [];
      keep.storage.onChanged.addListener((changes) => heard.push(changes));
    }""")
    async with async_playwright() as playwright:
        second = await Browser.start(playwright, other)
        theirs = await second.page()
        for area in ("local", "session"):
            assert await theirs.evaluate(f"keep.storage.{area}.get()") == {}
            await theirs.evaluate(f"keep.storage.{area}.set({{ theirs: 1 }})")
            assert await page.evaluate(f"keep.storage.{area}.get()") == {"mine": 1}
        await second.close()
    assert await page.evaluate("heard") == []
    await page.evaluate("keep.storage.session.clear()")
