"""Several contexts, a second process, and the shipped page."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from tests.harness.sidekeep_host import ORIGIN

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_two_pages_and_the_worker_see_one_store(browser: Browser) -> None:
    first, second = await browser.page(), await browser.page()
    worker = await browser.wake_worker()
    await first.evaluate("keep.storage.local.clear()")
    await first.evaluate("keep.storage.local.set({ from: 'first' })")
    assert await second.evaluate("keep.storage.local.get('from')") == {"from": "first"}
    assert await worker.evaluate("keep.storage.local.get('from')") == {"from": "first"}
    await worker.evaluate("keep.storage.local.set({ from: 'worker' })")
    assert await first.evaluate("keep.storage.local.get('from')") == {"from": "worker"}
    pids = [await one.evaluate("keep.status().host.pid") for one in (first, second, worker)]
    assert len(set(pids)) == 3, "each context has a host of its own"


async def test_two_pages_write_at_once_and_lose_nothing(browser: Browser) -> None:
    pages = [await browser.page(), await browser.page()]
    await pages[0].evaluate("keep.storage.local.clear()")
    write = """async (who) => {
      for (let number = 0; number < 60; number += 1) {
        await keep.storage.local.set({ [`${who} ${number}`]: number, shared: who });
      }
      await keep.storage.local.set({ [`${who} big`]: who.repeat(2_000_000) });
    }"""
    await asyncio.gather(
        *(page.evaluate(write, name) for page, name in zip(pages, "ab", strict=True))
    )
    wanted = sorted([f"{who} {what}" for who in "ab" for what in [*range(60), "big"]] + ["shared"])
    for page in pages:
        assert await page.evaluate("keep.storage.local.getKeys()") == wanted
        assert (
            await page.evaluate("keep.storage.local.get('shared').then(({ shared }) => shared)")
            in "ab"
        )


async def test_contexts_that_start_together_agree_on_the_profile(browser: Browser) -> None:
    pages = [await browser.page(connect=False) for _ in range(4)]
    token = await browser.worker.evaluate("chrome.storage.local.get('sidekeep:profile')")
    try:
        await pages[0].evaluate("chrome.storage.local.remove('sidekeep:profile')")
        # A channel starts them within a millisecond of each other.
        waiting = """() => {
          globalThis.profile = new Promise((done) => {
            new BroadcastChannel('start').onmessage = async () => {
              const { connect } = await import('/sidekeep/index.js');
              const keep = connect();
              done((await keep.call('host.status')).profile);
              keep.close();
            };
          });
        }"""
        for page in pages:
            await page.evaluate(waiting)
        await browser.worker.evaluate("void new BroadcastChannel('start').postMessage('go')")
        profiles = [await page.evaluate("profile") for page in pages]
        assert len(set(profiles)) == 1, profiles
        assert profiles[0] != token["sidekeep:profile"]
    finally:
        await pages[0].evaluate("(token) => chrome.storage.local.set(token)", token)


async def test_a_second_process_sees_the_value_and_the_page_sees_its_change(
    browser: Browser, page: Page
) -> None:
    await page.evaluate(
        "keep.storage.local.set({ seen: { text: 'Grüße', big: 'x'.repeat(400_000) } })"
    )
    async with browser.installation.second_process(await browser.token()) as host:
        assert await host.get("seen") == {"seen": {"text": "Grüße", "big": "x" * 400_000}}
        await host.set({"answer": [1, None, "from the other process"]})
        got = await page.evaluate("keep.storage.local.get('answer')")
        assert got == {"answer": [1, None, "from the other process"]}


async def test_the_page_shows_the_host_and_does_a_round_trip(browser: Browser) -> None:
    page = await browser.context.new_page()
    await page.goto(f"{ORIGIN}page.html")
    await expect(page.locator("#state")).to_have_text("The host answers and its store is good.")
    await expect(page.locator("#facts")).to_contain_text("store.mdb")
    await page.get_by_role("button", name="Try a round trip").click()
    await expect(page.locator("#trip")).to_contain_text("It works")
    await expect(page.get_by_role("button", name="Try a round trip")).to_be_enabled()
    assert "sidekeep:round-trip" not in await browser.worker.evaluate(
        "keep.storage.local.getKeys()"
    )


async def test_the_page_says_why_the_host_does_not_answer(browser: Browser) -> None:
    manifest = browser.installation.manifest()
    hidden = manifest.with_suffix(".hidden")
    page = await browser.context.new_page()
    manifest.rename(hidden)
    try:
        await page.goto(f"{ORIGIN}page.html")
        await expect(page.locator("#state")).to_contain_text("finds no Sidekeep host")
        await expect(page.locator("#next")).to_contain_text("install.sh")
        await page.get_by_role("button", name="Try a round trip").click()
        await expect(page.locator("#trip")).to_contain_text("finds no Sidekeep host")
    finally:
        hidden.rename(manifest)
    await page.get_by_role("button", name="Ask again").click()
    await expect(page.locator("#state")).to_have_text("The host answers and its store is good.")
    await page.get_by_role("button", name="Try a round trip").click()
    await expect(page.locator("#trip")).to_contain_text("It works")


async def test_importing_the_stub_opens_no_port(browser: Browser) -> None:
    page = await browser.page(spy=True, connect=False)
    await page.evaluate(
        "import('/sidekeep/index.js').then(({ connect }) => { globalThis.keep = connect(); })"
    )
    await page.wait_for_timeout(200)
    assert await page.evaluate("spy.ports.length") == 0
    assert await page.evaluate("keep.status().state") == "idle"


async def test_a_page_checks_the_store_and_hears_how_far_it_is(browser: Browser) -> None:
    page = await browser.page()
    await page.evaluate("keep.storage.local.clear()")
    report, told, meanwhile = await page.evaluate("""async () => {
      const shot = `data:image/png;base64,${'AAAA'.repeat(500_000)}`;
      await keep.storage.local.set({ note: 1, shot });
      const told = [];
      const check = keep.verify({ onProgress: (progress) => told.push(progress) });
      const meanwhile = await keep.storage.local.get('note');
      return [await check, told, meanwhile];
    }""")
    assert (report["ok"], report["problems"], report["more"]) == (True, [], 0)
    assert report["checked"]["items"] == 2
    assert report["checked"]["blobBytes"] >= 1_500_000  # and what the journal still holds
    assert told[0]["done"] == 0
    assert told[-1]["done"] == told[-1]["of"]
    assert meanwhile == {"note": 1}
