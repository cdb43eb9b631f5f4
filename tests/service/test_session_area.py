"""The session area: one file per browser run, in memory, gone with the run."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused


@pytest.fixture
def run() -> str:
    """Return the token of a browser run that no other test uses."""
    return uuid.uuid4().hex


async def _set(host: SidekeepHost, items: dict[str, Any]) -> None:
    await host.call("storage.set", {"area": "session", "items": items})


async def _get(host: SidekeepHost) -> dict[str, Any]:
    answer: dict[str, Any] = await host.call("storage.get", {"area": "session", "keys": None})
    return dict(answer["items"])


def _root() -> Path:
    runtime = Path(f"/run/user/{os.getuid()}")
    return runtime / "sidekeep" if runtime.is_dir() else Path(f"/dev/shm/sidekeep-{os.getuid()}")


def _folders(profile: str) -> set[str]:
    """Return the folders of session areas whose ``about.json`` names the profile."""
    found = set()
    for about in _root().glob("*/*/about.json"):
        if f'"{profile}"' in about.read_text():
            found.add(str(about.parent))
    return found


async def test_values_survive_the_host_and_are_apart_from_local(sandbox: Sandbox, run: str) -> None:
    async with sandbox.host() as host:
        await host.hello(run=run)
        await _set(host, {"k": {"deep": [1]}})
        await host.set({"k": "local"})
        host.kill()
    async with sandbox.host() as host:
        await host.hello(run=run)
        assert await _get(host) == {"k": {"deep": [1]}}
        assert await host.get() == {"k": "local"}
        await host.call("storage.clear", {"area": "session"})
        assert await host.get() == {"k": "local"}


async def test_a_new_run_sees_nothing_and_old_files_go(sandbox: Sandbox, run: str) -> None:
    profile = uuid.uuid4().hex
    async with sandbox.host() as host:
        await host.hello(profile, run=run)
        await _set(host, {"k": 1})
    old = _folders(profile)
    assert len(old) == 1
    async with sandbox.host() as host:
        await host.hello(profile, run=run + "x")
        assert await _get(host) == {}
        await _set(host, {"k": 2})
    assert len(_folders(profile)) == 1
    assert _folders(profile) != old


async def test_a_run_that_is_in_use_is_not_removed(sandbox: Sandbox, run: str) -> None:
    profile = uuid.uuid4().hex
    async with sandbox.host() as one, sandbox.host() as two:
        await one.hello(profile, run=run)
        await _set(one, {"k": 1})
        await two.hello(profile, run=run + "x")
        await _set(two, {"k": 2})
        assert await _get(one) == {"k": 1}


async def test_nothing_is_opened_before_the_first_call_of_the_area(
    sandbox: Sandbox, run: str
) -> None:
    profile = uuid.uuid4().hex
    async with sandbox.host() as host:
        await host.hello(profile, run=run)
        await host.set({"k": 1})
        assert _folders(profile) == set()


async def test_the_files_belong_to_the_user_alone(sandbox: Sandbox, run: str) -> None:
    profile = uuid.uuid4().hex
    async with sandbox.host() as host:
        await host.hello(profile, run=run)
        await _set(host, {"k": 1})
        (folder,) = map(Path, _folders(profile))
        assert _root().stat().st_mode & 0o777 == 0o700
        for path in (folder, *folder.iterdir()):
            assert path.stat().st_mode & 0o077 == 0, path


async def test_the_area_needs_a_run(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        await host.hello()
        with refused("invalidRequest"):
            await _get(host)
        await host.set({"k": 1})


async def test_beyond_the_quota_nothing_of_the_call_is_stored(sandbox: Sandbox, run: str) -> None:
    async with sandbox.host() as host:
        await host.hello(run=run)
        await _set(host, {"old": "x" * 6_000_000})
        with refused("quota") as caught:
            await _set(host, {"small": 1, "big": "y" * 5_000_000})
        assert "Session storage quota bytes exceeded" in caught.value.message
        assert set(await _get(host)) == {"old"}
        # The check is on the state after the call.
        await _set(host, {"old": 1, "big": "y" * 5_000_000})
        assert set(await _get(host)) == {"big", "old"}


async def test_calls_of_both_areas_may_share_a_frame(sandbox: Sandbox, run: str) -> None:
    async with sandbox.host() as host:
        await host.hello(run=run)
        await host.batch(
            [
                Call("storage.set", {"area": area, "items": {"k": area}})
                for area in ("local", "session", "local", "session")
            ]
        )
        assert await _get(host) == {"k": "session"}
        assert await host.get() == {"k": "local"}
