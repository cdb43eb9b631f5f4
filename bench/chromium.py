"""A Chromium to measure in: Sidekeep installed, hosts to compare with, works run in a page.

Rules of this module: everything lives in one temporary folder and one browser; a work is a function
of ``bench`` in the page that returns durations in milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click
from playwright.async_api import Page, async_playwright

from bench.building import compile_host
from tests.browser.driver import Browser, Installation
from tests.harness.measure import memory

HERE = Path(__file__).parent
MEBIBYTE = 1 << 20


def install(folder: Path) -> Installation:
    """Install Sidekeep into a fresh HOME and register the C hosts beside it."""
    installation = Installation(folder / "installation")
    click.echo("Installing Sidekeep into a fresh HOME …", err=True)
    installation.install()
    for name in ("echo", "sync"):
        installation.register(f"org.sidekeep.bench.{name}", compile_host(name, folder))
    return installation


@asynccontextmanager
async def open_page(
    installation: Installation, *scripts: str
) -> AsyncIterator[tuple[Browser, Page]]:
    """Start the browser, open a page of the extension and run the scripts of this folder in it."""
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, installation)
        page = await browser.page(connect=False)
        for script in ("ports.js", *scripts):
            await page.evaluate((HERE / script).read_text(encoding="utf-8"))
        yield browser, page
        await browser.close()


async def ask(page: Page, work: str, *arguments: object) -> object:
    """Run ``bench.<work>(…)`` in the page and return what it answers.

    Waits a little first: what the work before it left to do in the background is not its own.
    """
    await asyncio.sleep(0.1)
    answer: object = await page.evaluate(
        "([work, words]) => bench[work](...words)", [work, list(arguments)]
    )
    return answer


async def run(page: Page, work: str, *arguments: object) -> list[float]:
    """Run a work that answers with its samples, in milliseconds."""
    samples = await ask(page, work, *arguments)
    assert isinstance(samples, list), samples
    return samples


async def number(page: Page, work: str, *arguments: object) -> int:
    """Run a work that answers with a whole number: bytes, or the id of a process."""
    answer = await ask(page, work, *arguments)
    assert isinstance(answer, int), answer
    return answer


def rotated(contenders: Sequence[str], by: int) -> list[str]:
    """Return the contenders in another order, so that nobody always follows the same one."""
    first = by % len(contenders)
    return [*contenders[first:], *contenders[:first]]


def anonymous(pid: int) -> float:
    """Return the RssAnon of a host in MiB."""
    return memory(pid).anonymous / MEBIBYTE
