"""An extension that was written for ``chrome.storage`` adopts the stub with a handful of lines.

``extensions/notes`` keeps notes: callbacks and promises, defaults that merge, events, drafts in the
session area, a worker that counts. It is run as it is, and with ``adoption.diff`` applied.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import async_playwright

from tests.harness.sidekeep_host import ORIGIN

from .driver import EXTENSION, Browser, Installation, until_true
from .probe import fresh_profile

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_NOTES = Path(__file__).parent / "extensions" / "notes"
_DIFF = _NOTES / "adoption.diff"
LINES = 300
CHANGED_LINES = 10
"""At least so many lines has the extension, and fewer than so many were changed."""


def _write_extension(folder: Path, *, adopted: bool) -> Path:
    shutil.copytree(_NOTES, folder, ignore=shutil.ignore_patterns("*.diff"))
    if adopted:
        subprocess.run(["git", "apply", "-p0", _DIFF], cwd=folder, check=True)
        shutil.copytree(EXTENSION / "sidekeep", folder / "sidekeep")
    shipped = json.loads((EXTENSION / "manifest.json").read_text(encoding="utf-8"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps(manifest | {"key": shipped["key"]}))
    return folder


async def _day(installation: Installation, folder: Path, *, adopted: bool) -> tuple[Any, Any]:
    """Return what the extension says of its day, and the keys in the browser's own local area."""
    own = copy.copy(installation)
    own.profile = fresh_profile(installation, folder / "profile")
    extension = _write_extension(folder / "extension", adopted=adopted)
    async with async_playwright() as playwright:
        browser = await Browser.start(playwright, own, extension)
        page = await browser.context.new_page()
        page.on("pageerror", lambda error: browser.faults.append(str(error)))
        await page.goto(f"{ORIGIN}page.html")
        await until_true(page, "'day' in globalThis")
        said = await page.evaluate("day()")
        plain = await browser.page(connect=False)
        keys = await plain.evaluate("chrome.storage.local.getKeys()")
        assert browser.faults == []
        await browser.close()
    return said, keys


async def test_the_extension_is_one_of_some_size_and_few_lines_were_changed() -> None:
    lines = [
        line
        for source in sorted(_NOTES.glob("*.js"))
        for line in source.read_text(encoding="utf-8").splitlines()
    ]
    assert len(lines) >= LINES
    changed = [
        line
        for line in _DIFF.read_text(encoding="utf-8").splitlines()
        if line[:1] in "+-" and not line.startswith(("+++", "---"))
    ]
    assert 0 < len(changed) < CHANGED_LINES


async def test_it_does_the_same_over_the_stub(installation: Installation, tmp_path: Path) -> None:
    before, real_keys = await _day(installation, tmp_path / "before", adopted=False)
    after, own_keys = await _day(installation, tmp_path / "after", adopted=True)
    assert len(before) > 20
    assert [what for what, _ in before] == [what for what, _ in after]
    for was, now in zip(before, after, strict=True):
        assert was == now
    assert "order" in real_keys
    assert own_keys == ["sidekeep:profile"], "the notes are in the store"
