"""The areas beside the real ones in everything but values: shape, arguments, callbacks, listeners.

What differs all the same is in the table of ``docs/differences.md``, which
``test_differential.py`` reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import ConsoleMessage, Page

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_BEHAVIOUR = Path(__file__).with_name("behaviour.js").read_text(encoding="utf-8")


@pytest_asyncio.fixture(loop_scope="session")
async def compared(browser: Browser) -> AsyncIterator[Page]:
    """Return a page that may empty the real areas: the stub's own keys are put back."""
    page = await browser.page()
    await page.evaluate("keep.storage.session.getKeys()")
    kept = {
        area: await page.evaluate(f"chrome.storage.{area}.get()") for area in ("local", "session")
    }
    yield page
    for area, items in kept.items():
        await page.evaluate(f"(items) => chrome.storage.{area}.set(items)", items)
        await page.evaluate(f"keep.storage.{area}.clear()")


@pytest.mark.parametrize("area", ["local", "session"])
async def test_each_area_behaves_as_the_real_one(compared: Page, area: str) -> None:
    reports, consoles = [], []
    for storage in ("chrome", "keep"):
        said: list[str] = []

        def hear(message: ConsoleMessage, said: list[str] = said) -> None:
            # The first line: a stack follows.
            said.append(f"{message.type} {message.text.splitlines()[0]}")

        compared.on("console", hear)
        report = await compared.evaluate(_BEHAVIOUR, {"storage": storage, "area": area})
        await compared.wait_for_timeout(100)
        compared.remove_listener("console", hear)
        reports.append(report)
        consoles.append(said)
    real, ours = reports
    assert len(real) > 1000, "the program asked for little"
    different = [what for what in {**real, **ours} if real.get(what) != ours.get(what)]
    for what in different:
        print(f"{what}\n  real {real.get(what)}\n  ours {ours.get(what)}")  # noqa: T201
    assert different == []
    assert consoles[0] == consoles[1]
    assert sum("lastError" in line for line in consoles[0]) > 2, "the console was not read"


async def test_a_call_within_a_failing_callback_of_the_browser_sees_its_own_error(
    compared: Page,
) -> None:
    program = """(owner) => new Promise((done) => {
      const { local } = globalThis[owner].storage;
      const { runtime } = chrome;
      runtime.sendMessage('a'.repeat(32), 1, () => {
        const seen = [runtime.lastError.message];
        const look = (name) => () => seen.push([name, runtime.lastError?.message]);
        local.set({ v: new Uint8Array(1) }, look('refused'));
        local.remove('v', look('carried out'));
        local.set({ v: new Uint8Array(1) }, () => {
          look('refused')();
          done([seen, runtime.lastError?.message]);
        });
      });
    })"""
    real = await compared.evaluate(program, "chrome")
    ours = await compared.evaluate(program, "keep")
    assert ours == real
    assert len({str(one) for one in real[0]}) > 2
