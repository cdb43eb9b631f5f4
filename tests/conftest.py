"""Fixtures that tests of several layers share: a folder to run hosts in, and a running host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.harness.sidekeep_host import Sandbox, SidekeepHost


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a fresh folder with a configuration from which hosts can be started."""
    return Sandbox(tmp_path / "sandbox")


@pytest_asyncio.fixture
async def host(sandbox: Sandbox) -> AsyncIterator[SidekeepHost]:
    """Return a running host that has answered hello and granted parts."""
    async with sandbox.open() as started:
        yield started
