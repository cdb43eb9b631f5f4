"""Faults of kind 3 that concern reading: what is asked for is what is read and sent."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest_asyncio

from tests.harness.sidekeep_host import Sandbox, SidekeepHost

KEYS = 2000
VALUE = 50_000


@pytest_asyncio.fixture
async def filled(sandbox: Sandbox) -> AsyncIterator[SidekeepHost]:
    """Return a host whose store holds 2,000 items of 50 kB."""
    letters = random.Random(39)
    async with sandbox.open() as host:
        for start in range(0, KEYS, 100):
            await host.set(
                {f"k{n:04}": letters.randbytes(VALUE // 2).hex() for n in range(start, start + 100)}
            )
    async with sandbox.open() as host:
        yield host


async def test_39_names_and_one_value_cost_what_they_are_and_no_more(filled: SidekeepHost) -> None:
    before = filled.bytes_received
    assert len(await filled.keys()) == KEYS
    names = filled.bytes_received - before
    assert names < KEYS * 20
    before = filled.bytes_received
    assert len((await filled.get("k0007"))["k0007"]) == VALUE
    assert filled.bytes_received - before < VALUE + 1000


async def test_39_reading_everything_does_not_gather_it_in_memory(filled: SidekeepHost) -> None:
    async with filled.sampled_peak() as peak:
        assert len(await filled.get(None)) == KEYS
    # 100 MB pass through; a few pieces of 256 KB lie in memory at a time, and the references.
    assert peak.anonymous < 32 << 20
