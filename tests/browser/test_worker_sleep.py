"""A worker with the stub sleeps as soon as one without it, and hears the event that wakes it.

No debugger is attached here (see probe.py): one would keep the worker awake.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from .driver import Installation
from .probe import fresh_profile, probe, write_extension

pytestmark = pytest.mark.browser

IDLE_SECONDS = 30
"""After so long without an event Chromium stops a worker (measured; its own constant)."""

MARGIN_SECONDS = 15
"""For the port, which closes 5 s after the last call, and for a machine that is busy."""


def _ended(installation: Installation, pid: int) -> None:
    """Wait until a host has ended."""
    end = time.monotonic() + 15
    while pid in installation.hosts():
        assert time.monotonic() < end, "the host of a browser that was killed was left behind"
        time.sleep(0.05)


def test_an_idle_worker_sleeps_with_and_without_a_port_before_and_the_next_call_brings_all_back(
    installation: Installation, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        extension = write_extension(tmp_path / "extension", idle=5000)
        profile = fresh_profile(installation, tmp_path / "first")
        with_port = stack.enter_context(probe(profile, extension))
        without = stack.enter_context(probe(tmp_path / "second", extension))
        tab = with_port.page("chrome.tabs.create", {"url": f"{with_port.server.url}a"})
        content = {"tabId": tab["id"], "source": "test", "url": "https://v/1", "data": "kept"}
        assert with_port.worker("keep.siteCache.put", content)["stored"]
        with_port.worker("keep.storage.local.set", {"kept": 1})
        assert without.worker("keep.status")["state"] == "idle"
        assert with_port.page("awake") and without.page("awake")
        pid = with_port.worker("keep.status")["host"]["pid"]
        assert pid in installation.hosts()
        slept = [one.until_asleep(IDLE_SECONDS + MARGIN_SECONDS) for one in (with_port, without)]
        print(f"asleep after {slept[0]:.1f} s (and {slept[1]:.1f} s more)")  # noqa: T201
        assert pid not in installation.hosts(), "the host process is gone"
        for one in (with_port, without):
            starts = one.page("starts")
            time.sleep(1)
            assert not one.page("awake"), "reading the count wakes nothing"
            assert one.worker("keep.status")["state"] == "idle", "waking opens no port"
            assert one.page("starts") == starts + 1
        assert with_port.worker("keep.storage.local.get") == {"kept": 1}
        which = {"url": "https://v/1"}
        assert with_port.worker("keep.siteCache.get", tab["id"], which)["data"] == "kept"
        pid = with_port.worker("keep.status")["host"]["pid"]
        assert pid in installation.hosts()
    _ended(installation, pid)


@pytest.mark.long
def test_work_of_a_turn_keeps_the_worker_awake_and_nothing_after_it(tmp_path: Path) -> None:
    extension = write_extension(tmp_path / "extension", idle=5000)
    with probe(tmp_path / "profile", extension) as browser:
        starts = browser.page("starts") or 1
        browser.worker("work", 50_000)
        time.sleep(47)
        assert browser.page("awake")
        browser.until_asleep(3 + IDLE_SECONDS + MARGIN_SECONDS)
        assert browser.page("starts") == starts


def test_tab_ids_of_a_killed_browser_reach_nothing_in_the_next_run_and_urls_only_if_asked_for(
    installation: Installation, tmp_path: Path
) -> None:
    extension = write_extension(tmp_path / "extension", idle=5000)
    profile = fresh_profile(installation, tmp_path / "profile")
    with probe(profile, extension) as browser:
        real = [
            browser.page("chrome.tabs.create", {"url": f"{browser.server.url}{number}"})["id"]
            for number in range(3)
        ]
        old = [*range(1, 51), *real]
        content = {"source": "test", "url": "https://v/1", "data": "old"}
        browser.worker("each", "keep.siteCache.put", [[content | {"tabId": tab}] for tab in old])
        kept = browser.worker("keep.storage.session.getKeys")
        assert len(kept) == len(old)
        which = {"url": "https://v/1"}
        assert browser.worker("keep.siteCache.get", real[0], which)["data"] == "old"
        copied = {"source": "test", "url": "https://v/copied", "data": "copied"}
        browser.worker("copying.siteCache.put", copied | {"tabId": real[1]})
    with probe(profile, extension) as browser:
        new = browser.page("chrome.tabs.create", {"url": f"{browser.server.url}new"})["id"]
        assert browser.worker("keep.storage.session.getKeys") == [], "before the first read"
        for which in ({}, {"url": "https://v/1"}):
            asked = [[tab, which] for tab in [*old, new]]
            found = browser.worker("each", "keep.siteCache.get", asked)
            assert found == [None] * len(asked)
        which = {"url": "https://v/copied"}
        assert browser.worker("keep.siteCache.get", new, which) is None
        copy = browser.worker("copying.siteCache.lookUp", new, which)
        assert (copy["record"]["data"], copy["copy"]) == ("copied", True)
        browser.worker("copying.siteCache.forgetPages", ["https://v/copied"])
        assert browser.worker("copying.siteCache.get", new, which) is None
        pid = browser.worker("keep.status")["host"]["pid"]
    _ended(installation, pid)
