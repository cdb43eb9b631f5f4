"""The check of a store over the protocol: what it finds, what it tells, and who waits for it."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sidekeep.store.environment import Store
from sidekeep.store.layout import NUMBER, RECORD_HEADER, RECORDS
from sidekeep.store.transaction import Transaction
from tests.harness.measure import session_members
from tests.harness.sidekeep_host import EXTENSION_ID, Sandbox, SidekeepHost, refused

RAW = random.Random(7).randbytes(300_000)
SHOT = f"data:image/png;base64,{base64.b64encode(RAW).decode()}"
ENTRY = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": SHOT}}]}


async def fill(host: SidekeepHost) -> None:
    """Store an item, and an entry with a picture."""
    await host.set({"note": "find me somewhere"})
    await host.call("history.append", {"entries": [ENTRY]})


def told(host: SidekeepHost) -> list[dict[str, Any]]:
    """Return the parameters of every word of progress so far."""
    return [one["params"] for one in host.notifications if one["method"] == "host.progress"]


def change_bytes(path: Path, needle: bytes) -> None:
    """Turn a bit of ``needle`` wherever it lies: pages that were given up may still hold it."""
    wrong = needle[:5] + bytes([needle[5] ^ 1]) + needle[6:]
    content = path.read_bytes()
    assert needle in content
    path.write_bytes(content.replace(needle, wrong))


def change_store(sandbox: Sandbox, job: Callable[[Transaction], None]) -> None:
    """Write to the store of a sandbox past everything that keeps it consistent."""
    folder = str(sandbox.store_file().parent)
    store = Store(folder, extension=EXTENSION_ID, profile="profile")
    try:
        store.write(job)
    finally:
        store.close()


async def stopped_helper(host: SidekeepHost) -> int:
    """Return the helper that the next check will be given to, which does not run."""
    before = session_members(host.pid)
    await host.call("host.verify", {})
    (helper,) = set(session_members(host.pid)) - set(before)
    os.kill(helper, signal.SIGSTOP)
    return helper


@pytest.mark.parametrize("parts", [16, None])
async def test_a_sound_store_is_ok_and_everything_was_looked_at(
    sandbox: Sandbox, parts: int | None
) -> None:
    async with sandbox.open(parts=parts) as host:
        await host.set({"note": "find me somewhere"})
        await host.call("history.append", {"entries": [{"role": "user", "content": "hello"}]})
        report = await host.call("host.verify", {})
        assert report["ok"] is True
        assert report["problems"] == []
        assert report["checked"]["items"] == 2
        assert (report["checked"]["lists"], report["checked"]["entries"]) == (1, 1)
        assert report["checked"]["journal"] == 2
        assert "more" not in report


async def test_progress_is_told_at_the_start_and_at_the_end_and_never_goes_back(
    host: SidekeepHost,
) -> None:
    await fill(host)
    report = await host.call("host.verify", {})
    assert report["checked"]["blobBytes"] == len(RAW)
    words = told(host)
    assert {word["method"] for word in words} == {"host.verify"}
    assert words[0]["done"] == 0
    assert words[-1]["done"] == words[-1]["of"]
    assert [word["done"] for word in words] == sorted(word["done"] for word in words)


async def test_damage_is_told_with_its_code_and_place(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await fill(host)
    change_bytes(sandbox.store_file(), RAW[1000:1040])
    change_bytes(sandbox.store_file(), b"find me somewhere")
    async with sandbox.open(parts=None) as host:
        report = await host.call("host.verify", {})
        assert report["ok"] is False
        damaged = [one for one in report["problems"] if one["code"] == "damaged"]
        assert any(len(one.get("blob", "")) == 16 for one in damaged)
        assert any(one.get("item") == "note" for one in damaged)
        assert any("record" in one for one in damaged)
        assert all(one["text"] for one in damaged)
        await host.ping()


async def test_a_wrong_count_is_told_with_the_record(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"note": "find me somewhere"})
    wrong: list[int] = []

    def count_once_more(transaction: Transaction) -> None:
        key, row = next(transaction.rows(RECORDS))
        (number,), copy = NUMBER.unpack(key), bytes(row)
        fields = list(RECORD_HEADER.unpack_from(copy))
        fields[3] += 1
        transaction.put(
            RECORDS, NUMBER.pack(number), RECORD_HEADER.pack(*fields) + copy[RECORD_HEADER.size :]
        )
        wrong.append(number)

    change_store(sandbox, count_once_more)
    async with sandbox.open() as host:
        report = await host.call("host.verify", {})
        (problem,) = report["problems"]
        assert problem["record"] == wrong[0]
        assert problem["code"] == "count"


async def test_a_long_list_of_problems_is_cut_and_the_others_are_counted(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({f"{number} {'k' * 9000}": number for number in range(130)})

    def lose_all(transaction: Transaction) -> None:
        for key in [bytes(key) for key, _ in transaction.rows(RECORDS)]:
            transaction.delete(RECORDS, key)

    change_store(sandbox, lose_all)
    async with sandbox.open(parts=None) as host:
        report = await host.call("host.verify", {})
        assert report["ok"] is False
        assert len(report["problems"]) == 100
        assert report["more"] >= 30


async def test_small_calls_are_answered_while_a_check_runs_and_a_second_one_joins_it(
    host: SidekeepHost,
) -> None:
    await fill(host)
    helper = await stopped_helper(host)
    host.notifications.clear()
    checks = [asyncio.ensure_future(host.call("host.verify", {})) for _ in range(2)]
    await host.ping()
    await host.set({"meanwhile": 1})
    assert await host.get("meanwhile") == {"meanwhile": 1}
    assert not any(check.done() for check in checks)
    os.kill(helper, signal.SIGCONT)
    first, second = await asyncio.gather(*checks)
    assert first["ok"] is True
    assert second == first
    assert [word["done"] for word in told(host)].count(0) == 1, "one check for both"


async def test_a_check_ends_with_the_port(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        helper = await stopped_helper(host)
        waiting = asyncio.ensure_future(host.call("host.verify", {}))
        await asyncio.sleep(0)  # it is sent before the ping
        await host.ping()
        pid = host.pid
    await asyncio.gather(waiting, return_exceptions=True)
    assert helper not in session_members(pid)


async def test_a_helper_that_dies_fails_the_check_and_says_what_to_do(host: SidekeepHost) -> None:
    helper = await stopped_helper(host)
    waiting = asyncio.ensure_future(host.call("host.verify", {}))
    await asyncio.sleep(0)  # it is sent before the ping
    await host.ping()
    os.kill(helper, signal.SIGKILL)
    with refused("unavailable") as caught:
        await waiting
    assert "sidekeep verify" in str(caught.value.data)
    assert (await host.call("host.verify", {}))["ok"] is True


async def test_only_the_profile_of_the_caller_is_checked(sandbox: Sandbox) -> None:
    async with sandbox.open("other") as host:
        await fill(host)
    async with sandbox.open("profile") as host:
        report = await host.call("host.verify", {})
        assert set(report["checked"].values()) == {0}
