"""Atomic updates: read and write in one step, across processes."""

from __future__ import annotations

import asyncio
import json
import math
import struct
import subprocess
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidekeep.model.updates import number_text
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused


async def _update(host: SidekeepHost, key: str, **change: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await host.call(
        "storage.update", {"area": "local", "key": key, **change}
    )
    return answer


async def test_each_change_of_a_missing_value_begins_with_nothing(host: SidekeepHost) -> None:
    assert await _update(host, "n", increment=2.5) == {"value": 2.5, "revision": 1}
    await _update(host, "l", push={"a": 1})
    await _update(host, "o", merge={"b": 1})
    await _update(host, "v", value=[None])
    assert await host.get() == {"n": 2.5, "l": [{"a": 1}], "o": {"b": 1}, "v": [None]}


async def test_changes_add_to_what_is_there(host: SidekeepHost) -> None:
    big = "x" * 300_000
    await host.set({"n": 40, "l": ["a", big], "o": {"c": big, "a": 1}})
    assert (await _update(host, "n", increment=2))["value"] == 42
    await _update(host, "l", push=big)
    await _update(host, "o", merge={"b": 2, "a": {"deep": 1}})
    found = await host.get()
    assert found == {
        "n": 42,
        "l": ["a", big, big],
        "o": {"a": {"deep": 1}, "b": 2, "c": big},
    }
    assert list(found["o"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("stored", "change"),
    [("text", {"increment": 1}), (True, {"increment": 1}), ({}, {"push": 1}), ([], {"merge": {}})],
)
async def test_a_value_of_another_type_is_not_overwritten(
    host: SidekeepHost, stored: Any, change: dict[str, Any]
) -> None:
    await host.set({"k": stored})
    with refused("conflict"):
        await _update(host, "k", **change)
    assert await host.get("k") == {"k": stored}


@pytest.mark.parametrize(
    "change", [{}, {"increment": 1, "push": 1}, {"increment": "1"}, {"merge": []}, {"expect": 0}]
)
async def test_a_change_must_be_one_of_the_four(host: SidekeepHost, change: dict[str, Any]) -> None:
    with refused("invalidParams"):
        await _update(host, "k", **change)
    assert await host.get() == {}


async def test_a_stale_revision_is_refused_with_the_present_one(host: SidekeepHost) -> None:
    first = (await _update(host, "k", value=1))["revision"]
    second = (await _update(host, "k", value=2, expect=first))["revision"]
    with refused("conflict") as caught:
        await _update(host, "k", value=3, expect=first)
    assert caught.value.data["revisions"] == {"k": second}
    with refused("conflict"):
        await host.call(
            "storage.set",
            {"area": "local", "items": {"k": 9, "new": 9}, "expect": {"k": second, "new": 5}},
        )
    assert await host.get() == {"k": 2}
    answer = await host.call(
        "storage.set",
        {"area": "local", "items": {"k": 9, "new": 9}, "expect": {"k": second, "new": 0}},
    )
    assert answer["revisions"] == {"k": second + 1, "new": second + 1}


async def test_increments_and_pushes_of_two_processes_are_all_there(sandbox: Sandbox) -> None:
    async with sandbox.open() as one, sandbox.open() as two:

        async def work(host: SidekeepHost, name: str) -> None:
            for number in range(300):
                await _update(host, "n", increment=1)
                await _update(host, "l", push=f"{name}{number}")

        await asyncio.gather(work(one, "a"), work(two, "b"))
        found = await one.get()
        assert found["n"] == 600
        assert sorted(found["l"]) == sorted(f"{n}{i}" for n in "ab" for i in range(300))


_doubles = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("d", struct.pack("Q", bits))[0])


@settings(max_examples=30, deadline=None)
@given(st.lists(_doubles.filter(math.isfinite), min_size=50, max_size=50))
@example([0.0, 1e21, 1e-6, 1e-7, 1.5e-5, -2.5e-7, 123456789012345680000.0, 0.1 + 0.2, 5e-324])
def test_numbers_are_written_as_javascript_writes_them(values: list[float]) -> None:
    ours = [number_text(value).decode() for value in values]
    script = "for (const t of JSON.parse(process.argv[1])) console.log(JSON.stringify(Number(t)))"
    exact = json.dumps([repr(value) for value in values])
    theirs = subprocess.run(
        ["node", "-e", script, exact], capture_output=True, text=True, check=True
    ).stdout.split()
    assert ours == theirs
