"""Mutations may carry a number; repeating one gives its first result and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, assert_kind, refused

SET_OLDER = {"area": "local", "items": {"a": 1}}


async def test_repeated_operation_is_answered_and_changes_nothing(host: SidekeepHost) -> None:
    await host.set({"a": 1}, op=1)
    await host.set({"a": 2}, op=2)
    await host.set({"a": 1}, op=1)
    await host.set({"a": 1}, op=2)
    assert await host.get() == {"a": 2}


async def test_repeated_operation_changes_nothing_in_the_same_batch(host: SidekeepHost) -> None:
    def put(value: int, op: int) -> Call:
        return Call("storage.set", {"area": "local", "items": {"a": value}}, op=op)

    assert await host.batch([put(1, 1), put(2, 2), put(1, 1), put(2, 2)]) == [{}] * 4
    assert await host.get() == {"a": 2}


async def test_operation_is_remembered_after_the_host_was_killed(sandbox: Sandbox) -> None:
    async with sandbox.open(client="tab") as host:
        await host.set({"a": 1}, op=1)
        await host.remove("a", op=2)
        host.kill()
    async with sandbox.open(client="tab") as host:
        await host.set({"a": 1}, op=1)
        assert await host.get() == {}
        await host.set({"a": 3}, op=3)
        assert await host.get() == {"a": 3}


async def test_numbers_of_different_clients_and_profiles_do_not_meet(sandbox: Sandbox) -> None:
    async with sandbox.open(client="one") as one, sandbox.open(client="two") as two:
        await one.set({"a": 1}, op=1)
        await two.set({"a": 2}, op=1)
        assert await one.get() == {"a": 2}
    async with sandbox.open("other", client="one") as other:
        await other.set({"b": 1}, op=1)
        assert await other.get() == {"b": 1}


async def test_failed_operation_may_be_tried_again_under_its_number(host: SidekeepHost) -> None:
    with refused("invalidParams"):
        await host.call("storage.set", {"area": "local", "items": 5}, op=1)
    await host.set({"a": 1}, op=1)
    assert await host.get() == {"a": 1}


async def test_failed_operation_is_not_tried_again_behind_a_later_one(sandbox: Sandbox) -> None:
    failing = Call("storage.set", {"area": "local", "items": {"a": 1}, "expect": {"a": 1}}, op=1)
    later = Call("storage.set", {"area": "local", "items": {"a": 2, "b": 2}}, op=2)
    async with sandbox.open(client="tab") as host:
        failed, done = await host.batch([failing, later])
        assert_kind(failed, "conflict")
        host.kill()
    async with sandbox.open(client="tab") as host:
        # What it failed of is gone: if carried out now, the older value would take the place.
        failed, repeated = await host.batch([Call("storage.set", SET_OLDER, op=1), later])
        assert_kind(failed, "unknown")
        assert repeated == done
        assert await host.get() == {"a": 2, "b": 2}


async def test_last_256_results_are_kept_and_older_ones_are_unknown(host: SidekeepHost) -> None:
    def put(op: int, value: int) -> Call:
        return Call("storage.set", {"area": "local", "items": {"n": value}}, op=op)

    for first in (1, 301):
        calls = [put(op, op) for op in range(first, first + 300)]
        assert await host.batch(calls) == [{}] * 300
    repeated = [put(op, -op) for op in range(345, 601)]
    assert await host.batch(repeated) == [{}] * 256
    with refused("unknown"):
        await host.set({"n": -1}, op=1)
    assert await host.get() == {"n": 600}


async def test_gap_in_the_numbers_does_no_harm(host: SidekeepHost) -> None:
    await host.set({"a": 1}, op=10)
    await host.set({"a": 2}, op=110)
    await host.set({"a": 3}, op=10)
    assert await host.get() == {"a": 2}


@pytest.mark.parametrize("op", [-1, 2**53 + 1, "1", 1.5, True, [1], {}])
async def test_number_that_is_none_is_refused(host: SidekeepHost, op: Any) -> None:
    params = {"area": "local", "items": {"a": 1}}
    failed, fine = await host.batch(
        [Call("storage.set", params, op=op), Call("storage.getKeys", {"area": "local"})]
    )
    assert_kind(failed, "invalidRequest")
    assert fine == {"keys": []}


async def test_largest_number_is_taken(host: SidekeepHost) -> None:
    await host.set({"a": 1}, op=2**53)
    await host.set({"a": 2}, op=2**53)
    assert await host.get() == {"a": 1}


async def test_reads_may_carry_a_number_and_are_always_done(host: SidekeepHost) -> None:
    params = {"area": "local", "keys": None}
    assert await host.call("storage.get", params, op=1) == {"items": {}}
    await host.set({"a": 1}, op=2)
    assert await host.call("storage.get", params, op=1) == {"items": {"a": 1}}


async def test_number_without_a_client_is_refused(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        await host.call("host.hello", {"protocol": 1, "profile": "profile"})
        with refused("invalidRequest"):
            await host.set({"a": 1}, op=1)
        assert await host.get() == {}
