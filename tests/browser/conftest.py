"""Fixtures for tests in a real Chromium: one installation and one browser for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright

from .driver import Browser, Installation, until
from .model_server import ModelServer
from .panel import Panel, opened


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Return what install.sh put into a fresh HOME."""
    made = Installation(tmp_path_factory.mktemp("installation"))
    made.install()
    yield made
    assert made.hosts() == [], "hosts were left behind"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_browser(installation: Installation) -> AsyncIterator[Browser]:
    """Return a running Chromium with the extension, shared by the tests."""
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, installation)
        yield browser
        await browser.close()
        await until(lambda: installation.hosts() == [], "the hosts to end with the browser")


@pytest_asyncio.fixture(loop_scope="session")
async def browser(shared_browser: Browser) -> AsyncIterator[Browser]:
    """Return the shared browser with an empty store; its pages are closed afterwards."""
    shared_browser.faults.clear()
    yield shared_browser
    for page in shared_browser.context.pages[1:]:
        await page.close()
    assert shared_browser.faults == [], "errors nobody handled in a page"
    hosts = shared_browser.installation.hosts
    await until(lambda: len(hosts()) <= 1, "the hosts of closed pages to end")


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> Page:
    """Return a page of the extension with ``keep`` connected and an empty store."""
    opened = await browser.page()
    await opened.evaluate("keep.storage.local.clear()")
    return opened


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """Return a server that plays a model."""
    with ModelServer().running() as server:
        yield server


@pytest.fixture
def model(model_server: ModelServer) -> Iterator[ModelServer]:
    """Return the model, which expects no request yet."""
    model_server.faults.clear()
    model_server.answers()
    yield model_server
    assert model_server.faults == []


@pytest_asyncio.fixture(loop_scope="session")
async def panel(browser: Browser, page: Page, model: ModelServer) -> AsyncIterator[Panel]:
    """Return an open panel that knows the model; the store was empty."""
    await page.evaluate("(endpoint) => keep.settings.set({ endpoint, model: 'm' })", model.url)
    yield Panel(await opened(browser), page)
    await page.evaluate("keep.sessions.clear()")
