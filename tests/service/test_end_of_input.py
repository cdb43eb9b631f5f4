"""End of input ends the process within 1.5 s with exit code 0, whatever it is doing."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest

from tests.harness import Call, Exit, encode_frame, split_message
from tests.harness.measure import session_members
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused

LIMIT = 1.5
"""Seconds; the browser sends SIGKILL 2 s after it has closed the port."""

HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"host.hello","params":{"protocol":1,"profile":"profile"}}'
)


def assert_clean(exit: Exit, *, cpu: float | None = 0.3) -> None:
    """Check how a host ended: in time, by itself, and without a busy loop."""
    assert (exit.code, exit.signal) == (0, None)
    assert exit.after_input is not None
    assert exit.after_input < LIMIT
    if cpu is not None:
        assert exit.cpu < cpu


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        struct.pack("=I", 100)[:2],
        struct.pack("=I", 100),
        struct.pack("=I", 100) + b'{"jsonrpc"',
        encode_frame(HELLO),
        encode_frame(HELLO) + struct.pack("=I", 60 << 20) + b"x" * 30_000,
        encode_frame(HELLO) + encode_frame(b"{"),
    ],
    ids=[
        "nothing",
        "two bytes of a length",
        "a length",
        "half a body",
        "hello",
        "the start of a big body",
        "a bad frame",
    ],
)
async def test_host_ends_at_once_wherever_the_input_stops(sandbox: Sandbox, sent: bytes) -> None:
    host = await sandbox.host().__aenter__()
    await host.send_bytes(sent)
    await host.close_input()
    await host.wait()
    await host.wait_output_end()
    host.take_unclaimed()
    assert_clean(await host.close())
    assert "Traceback" not in host.stderr


async def test_host_ends_after_a_hundred_requests_all_answered(sandbox: Sandbox) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    calls = [Call("storage.set", {"area": "local", "items": {f"k{n}": n}}) for n in range(100)]
    for call in calls:
        await host.call(call.method, call.params)
    assert_clean(await host.close(), cpu=0.6)
    async with sandbox.open() as again:
        assert len(await again.keys()) == 100


async def test_requests_before_the_end_of_input_still_take_effect(sandbox: Sandbox) -> None:
    """A browser still delivers a message that was posted just before the disconnect."""
    for number in range(10):
        host = await sandbox.host().__aenter__()
        await host.hello()
        await host.notify("storage.set", {"area": "local", "items": {f"k{number}": number}})
        await host.disconnect()
        await host.wait(LIMIT)
        await host.close()
    async with sandbox.open() as again:
        assert await again.get() == {f"k{number}": number for number in range(10)}


async def test_idle_host_uses_no_processor_time(host: SidekeepHost) -> None:
    await host.ping()
    await asyncio.sleep(0.3)
    before = host.cpu_seconds()
    await asyncio.sleep(1)
    assert host.cpu_seconds() - before <= 0.02


@pytest.mark.parametrize("how", ["reader waits", "reader gone", "acknowledgements missing"])
async def test_host_ends_in_the_middle_of_a_big_read(sandbox: Sandbox, how: str) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.call(
        "storage.set", {"area": "local", "items": {"big": "x" * 60_000_000}}, timeout=60
    )
    if how == "acknowledgements missing":
        host.hold_acknowledgements()
    call = asyncio.create_task(host.get("big"))
    if how == "acknowledgements missing":
        await host.until(lambda: host.unacknowledged_by_us == host.window)
    else:
        await host.until(lambda: host.unacknowledged_by_us > 0 or bool(host.bytes_received > 1000))
        host.pause_reading()
        await asyncio.sleep(0.1)
    if how == "reader gone":
        await host.disconnect()
    else:
        host.expect_cut_output()
        await host.close_input()
    exit = await host.wait(LIMIT)
    assert exit.code == 0
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await host.close()


@pytest.mark.parametrize("megabytes", [8, 60])
async def test_host_ends_in_the_middle_of_a_big_write(sandbox: Sandbox, megabytes: int) -> None:
    async with sandbox.open() as host:
        await host.set({"small": 1})
    host = await sandbox.host().__aenter__()
    await host.hello()
    message = {
        "jsonrpc": "2.0",
        "id": "w",
        "method": "storage.set",
        "params": {"area": "local", "items": {"small": 2, "big": "x" * (megabytes * 1_000_000)}},
    }
    await host.send_frame(json.dumps(message).encode())
    await host.disconnect()
    exit = await host.wait(LIMIT)
    assert exit.code == 0
    await host.close()
    async with sandbox.open() as again:
        # All of the call or nothing of it.
        small = (await again.get("small"))["small"]
        assert await again.keys() == (["big", "small"] if small == 2 else ["small"])
        assert (await again.status())["health"] == "good"


async def test_host_ends_while_a_message_in_parts_is_unfinished(sandbox: Sandbox) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    params = {"area": "local", "items": {"a": "x" * 3_000_000}}
    message = {"jsonrpc": "2.0", "id": "w", "method": "storage.set", "params": params}
    await host.send_parts(1, split_message(message, 1)[:-2])
    assert_clean(await host.close(), cpu=1)


@contextmanager
def write_lock_held(store: Path, *, lmdb_too: bool) -> Iterator[None]:
    """Hold the lock that writers take first, and LMDB's own if asked, as a stopped writer would."""
    descriptor = os.open(store.with_name("write.lock"), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        if lmdb_too:
            with (
                lmdb.open(str(store), subdir=False, max_dbs=16, create=False) as environment,
                environment.begin(write=True),
            ):
                yield
        else:
            yield
    finally:
        os.close(descriptor)


async def test_write_is_refused_as_busy_while_another_process_holds_the_lock(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open() as host:
        await host.set({"a": 1})
        with write_lock_held(sandbox.store_file(), lmdb_too=False):
            with refused("busy") as caught:
                await host.set({"a": 2}, op=2)
            assert caught.value.data["next"]
            assert await host.get() == {"a": 1}
            await host.ping()
        await host.set({"a": 3}, op=2)
        assert await host.get() == {"a": 3}


async def test_reads_go_on_while_a_write_waits_for_the_lock(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"a": 1})
        with write_lock_held(sandbox.store_file(), lmdb_too=True):
            write = asyncio.create_task(host.set({"a": 2}))
            assert await host.get() == {"a": 1}
            with refused("busy"):
                await write


@pytest.mark.parametrize("lmdb_too", [False, True], ids=["write.lock", "both locks"])
async def test_host_ends_while_another_process_holds_the_write_lock(
    sandbox: Sandbox, lmdb_too: bool
) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.set({"a": 1})
    with write_lock_held(sandbox.store_file(), lmdb_too=lmdb_too):
        write = asyncio.create_task(host.set({"a": 2}))
        await asyncio.sleep(0.2)
        await host.close_input()
        exit = await host.wait(LIMIT)
        assert exit.code == 0
        await asyncio.gather(write, return_exceptions=True)
        await host.close()
    async with sandbox.open() as again:
        assert (await again.get())["a"] in {1, 2}
        await again.set({"a": 3})


async def test_host_ends_while_lmdbs_own_lock_alone_is_held(sandbox: Sandbox) -> None:
    """A foreign program that writes takes LMDB's lock only, which cannot be waited for in time."""
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.set({"a": 1})
    store = str(sandbox.store_file())
    with (
        lmdb.open(store, subdir=False, max_dbs=16, create=False) as environment,
        environment.begin(write=True),
    ):
        write = asyncio.create_task(host.set({"a": 2}))
        await asyncio.sleep(0.2)
        await host.close_input()
        exit = await host.wait(LIMIT)
        assert exit.code == 0
        await asyncio.gather(write, return_exceptions=True)
        await host.close()


async def test_stopped_writer_does_not_hang_the_others(sandbox: Sandbox) -> None:
    async with sandbox.open() as first, sandbox.open() as second:
        await first.set({"a": 1})
        for _ in range(20):
            # Somewhere inside a write of 8 MB, the lock most likely held.
            write = asyncio.create_task(first.set({"big": "x" * 8_000_000}))
            await asyncio.sleep(0.01)
            first.stop()
            try:
                await second.set({"b": 1})
                assert (await second.get("b")) == {"b": 1}
            except Exception as error:
                with refused("busy"):
                    raise error
                break
            finally:
                first.resume()
                await write
        await second.set({"b": 2})
        assert await first.get("b") == {"b": 2}


async def test_no_process_is_left_behind(sandbox: Sandbox) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.set({"a": 1})
    session = host.pid
    await host.close()
    assert session_members(session) == []
