"""Big messages in parts, both ways; without parts every message is one frame of at most 1 MiB."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from typing import Any

import pytest

from tests.harness import Call, HostGoneError, split_message
from tests.harness.frames import MAX_TO_EXTENSION
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, assert_kind, refused

PICTURE = "data:image/png;base64," + base64.b64encode(random.Random(1).randbytes(1 << 20)).decode()

BIG = {
    "ascii": "x" * 3_000_000,
    "picture": PICTURE,
    "accents": "é" * 1_000_000,
    "han": "中" * 700_000,
    "emoji": "😀" * 500_000,
    "escapes": '"\\\n\t\x00\x01' * 200_000,
    "mixed": ("é\\" + "😀\n" + 'a"') * 150_000,
    "many small": [f"number {n}" for n in range(60_000)],
    "many big": {f"k{n}": "y" * (60_000 + n * 1000) for n in range(20)},
    "nested": {"a": [{"b": ["z" * 500_000, {"é": PICTURE}]}], "": {"": "w" * 70_000}},
    "text beside pictures": [
        {"text": "word " * 12_000, "image": PICTURE[:200_000]} for _ in range(5)
    ],
}


@pytest.mark.parametrize("name", BIG)
async def test_big_value_comes_back_equal(host: SidekeepHost, name: str) -> None:
    await host.set({"small": 1, name: BIG[name]})
    assert await host.get(name) == {name: BIG[name]}
    assert (await host.get())["small"] == 1


async def test_everything_at_once_comes_back_equal_after_restart(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set(BIG)
    async with sandbox.open() as host:
        assert await host.get() == BIG


async def test_value_of_200_mb_is_stored_and_read(sandbox: Sandbox) -> None:
    value = "x" * 200_000_000
    async with sandbox.open() as host:
        params = {"area": "local", "items": {"big": value}}
        assert await host.call("storage.set", params, timeout=120) == {}
        found = await host.call("storage.get", {"area": "local", "keys": "big"}, timeout=120)
        assert found["items"]["big"] == value


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("limit", [4096, 65_536, 262_144])
async def test_pieces_of_any_size_and_spelling_are_joined(
    host: SidekeepHost, limit: int, ascii_only: bool
) -> None:
    value = {"text": 'é😀\n"\\中' * 30_000, "list": ["a" * 80_000, "b" * 80_000]}
    message = {
        "jsonrpc": "2.0",
        "id": "own",
        "method": "storage.set",
        "params": {"area": "local", "items": {"k": value}},
    }
    of = host.next_message()
    await host.send_parts(of, split_message(message, of, ascii_only=ascii_only, limit=limit))
    assert (await host.unclaimed())["result"] == {}
    assert await host.get("k") == {"k": value}


async def test_keys_too_long_for_one_frame_are_keys_like_others(host: SidekeepHost) -> None:
    long, other = "é" * 200_000, "é" * 200_000 + "x"
    await host.set({"": "empty", long: 1, other: "v" * 300_000})
    assert await host.get(long) == {long: 1}
    assert await host.get([other, "", "missing" * 50_000]) == {other: "v" * 300_000, "": "empty"}
    assert await host.bytes_in_use([long]) == 400_001
    assert await host.keys() == ["", long, other]
    await host.remove([other])
    await host.remove(long)
    assert await host.get() == {"": "empty"}


@pytest.mark.parametrize("window", [1, 3])
async def test_replies_in_parts_never_wait_for_another_call(sandbox: Sandbox, window: int) -> None:
    """A host that misses an acknowledgement would go on only when something else arrives."""
    async with sandbox.open(parts=window) as host:
        value = "x" * 1_500_000
        await host.set({"a": value})
        for _ in range(60):
            found = await host.call("storage.get", {"area": "local", "keys": "a"}, timeout=5)
            assert found["items"]["a"] == value


async def test_every_part_is_acknowledged(host: SidekeepHost) -> None:
    await host.set({"a": "x" * 2_000_000})
    await host.until(lambda: bool(host.acks) and host.in_flight == 0)
    assert host.acks == sorted(host.acks)


@pytest.mark.parametrize("window", [1, 2, 5])
async def test_host_keeps_to_the_window_and_goes_on_when_acknowledged(
    sandbox: Sandbox, window: int
) -> None:
    async with sandbox.open(parts=window) as host:
        await host.set({"a": "x" * 5_000_000})
        host.hold_acknowledgements()
        call = asyncio.create_task(host.get("a"))
        await host.until(lambda: host.unacknowledged_by_us >= window)
        await asyncio.sleep(0.2)
        assert host.unacknowledged_by_us == window  # more would be a violation of its own
        assert not call.done()
        await host.release_acknowledgements()
        assert await call == {"a": "x" * 5_000_000}


async def test_small_replies_pass_between_the_parts_of_big_ones(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=2) as host:
        await host.set({"big": "x" * 5_000_000, "small": 1})
        host.hold_acknowledgements()
        big = asyncio.create_task(host.get("big"))
        await host.until(lambda: host.unacknowledged_by_us == 2)
        await host.ping()
        assert await host.get("small") == {"small": 1}
        await host.set({"small": 2})
        await host.release_acknowledgements()
        assert await big == {"big": "x" * 5_000_000}


async def test_read_shows_one_moment_though_it_is_written_meanwhile(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=1) as host:
        before = {"a": "x" * 3_000_000, "b": "y" * 3_000_000}
        await host.set(before)
        host.hold_acknowledgements()
        read = asyncio.create_task(host.get())
        await host.until(lambda: host.unacknowledged_by_us == 1)
        await host.remove("b")
        await host.set({"a": 1})
        await host.release_acknowledgements()
        assert await read == before
        assert await host.get() == {"a": 1}


async def test_several_big_reads_share_the_window(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=3) as host:
        items = {f"k{n}": f"{n}" * 1_500_000 for n in range(4)}
        await host.set(items)
        found = await asyncio.gather(*(host.get(key) for key in items))
        assert found == [{key: value} for key, value in items.items()]


async def test_big_calls_both_ways_at_once_do_not_block_each_other(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=4) as host:
        await host.set({"there": "x" * 8_000_000})
        _, found = await asyncio.gather(host.set({"new": "y" * 8_000_000}), host.get("there"))
        assert found == {"there": "x" * 8_000_000}
        assert await host.get("new") == {"new": "y" * 8_000_000}


async def test_batch_with_big_and_small_calls_is_answered_whole(host: SidekeepHost) -> None:
    area = {"area": "local"}
    results = await host.batch(
        [
            Call("storage.set", {**area, "items": {"a": 1}}),
            Call("storage.set", {**area, "items": {"big": PICTURE}}),
            Call("storage.set", {**area, "items": {"b": 2}}),
            Call("storage.get", {**area, "keys": "big"}),
            Call("storage.getKeys", area),
        ]
    )
    assert results[:3] == [{}, {}, {}]
    assert results[3:] == [{"items": {"big": PICTURE}}, {"keys": ["a", "b", "big"]}]


async def test_batch_whose_answers_together_are_big_stays_below_the_limit(
    host: SidekeepHost,
) -> None:
    items = {f"k{n}": "v" * 60_000 for n in range(40)}
    await host.set(items)
    calls = [Call("storage.get", {"area": "local", "keys": key}) for key in items]
    results = await host.batch(calls)
    assert results == [{"items": {key: value}} for key, value in items.items()]


async def test_operation_in_parts_is_repeated_safely(host: SidekeepHost) -> None:
    await host.set({"a": "x" * 1_000_000}, op=1)
    await host.set({"a": "y" * 1_000_000}, op=2)
    await host.set({"a": "x" * 1_000_000}, op=1)
    assert await host.get() == {"a": "y" * 1_000_000}


async def test_memory_stays_bounded_while_big_values_pass(host: SidekeepHost) -> None:
    value = "x" * 64_000_000
    async with host.sampled_peak() as peak:
        await host.set({"a": value})
        assert await host.get("a") == {"a": value}
    # Three times the largest value, the interpreter aside.
    assert peak.anonymous < 3 * len(value) + (24 << 20)


async def test_connection_that_ends_between_parts_leaves_nothing(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"a": 1})
        message = {
            "jsonrpc": "2.0",
            "id": "never",
            "method": "storage.set",
            "params": {"area": "local", "items": {"a": 2, "big": "x" * 2_000_000}},
        }
        await host.send_parts(1, split_message(message, 1)[:-1])
    async with sandbox.open() as host:
        assert await host.get() == {"a": 1}


async def test_without_parts_a_reply_up_to_one_mebibyte_travels_whole(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=None) as host:
        await host.set({"k": ""})
        read = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": "fix",
                "method": "storage.get",
                "params": {"area": "local", "keys": "k"},
            }
        ).encode()
        host.largest_frame = 0
        await host.exchange(read)
        around = host.largest_frame
        for size in (MAX_TO_EXTENSION - 1, MAX_TO_EXTENSION):
            host.largest_frame = 0
            await host.set({"k": "x" * (size - around)})
            assert len((await host.exchange(read))["result"]["items"]["k"]) == size - around
            assert host.largest_frame == size
        await host.set({"k": "x" * (MAX_TO_EXTENSION + 1 - around)})
        refusal = await host.exchange(read)
        assert refusal["error"]["data"]["kind"] == "tooLarge"
        assert refusal["error"]["data"]["next"]
        await host.ping()


async def test_without_parts_only_the_call_that_is_too_big_fails(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=None) as host:
        await host.set({"big": "\x01" * 400_000, "small": 1})
        area = {"area": "local"}
        small, big, keys = await host.batch(
            [
                Call("storage.get", {**area, "keys": "small"}),
                Call("storage.get", {**area, "keys": "big"}),
                Call("storage.getKeys", area),
            ]
        )
        assert small == {"items": {"small": 1}}
        assert_kind(big, "tooLarge")
        assert keys == {"keys": ["big", "small"]}
        with refused("tooLarge"):
            await host.get()


async def test_without_parts_big_requests_are_taken_whole(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=None) as host:
        await host.set({"big": "x" * 30_000_000})
        assert await host.bytes_in_use("big") == 30_000_005


async def test_call_during_which_the_host_is_killed_settles(host: SidekeepHost) -> None:
    await host.set({"a": "x" * 20_000_000})
    host.hold_acknowledgements()
    call = asyncio.create_task(host.get("a"))
    await host.until(lambda: host.unacknowledged_by_us > 0)
    host.kill()
    with pytest.raises(HostGoneError):
        await call


def all_paths(value: Any) -> int:
    """Count the strings above 64 KiB in a value."""
    if isinstance(value, dict):
        return sum(map(all_paths, value.values()))
    if isinstance(value, list):
        return sum(map(all_paths, value))
    return isinstance(value, str) and len(value) > 65_536


def test_samples_have_big_strings_and_none() -> None:
    assert all_paths(BIG["nested"]) == 3
    assert all_paths(BIG["many small"]) == 0


async def test_thousands_of_big_replies_may_wait_at_once(host: SidekeepHost) -> None:
    value = "x" * 300_000
    await host.set({"big": value})
    calls = [
        asyncio.ensure_future(host.call("storage.get", {"area": "local", "keys": "big"}))
        for _ in range(1500)
    ]
    for call in calls:
        assert (await call)["items"] == {"big": value}
