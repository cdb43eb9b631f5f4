"""A chat for each test, whose store is checked afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.conversations.chat import Chat, check_store
from tests.harness.sidekeep_host import Sandbox


@pytest_asyncio.fixture
async def chat(sandbox: Sandbox) -> AsyncIterator[Chat]:
    """Return a chat on a fresh store; every reference in it is counted when the test is over."""
    async with sandbox.open() as host:
        yield Chat(host)
    check_store(sandbox)
