"""Change events: told once, in order, to every listener, whichever process made the change."""

from __future__ import annotations

import asyncio
import base64
import os
import random
from typing import Any

import pytest

from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost


async def watch(host: SidekeepHost, **params: Any) -> dict[str, Any]:
    """Begin to listen to the local area (unless ``areas`` says otherwise)."""
    answer: dict[str, Any] = await host.call("storage.watch", {"areas": ["local"], **params})
    return answer


async def notification(host: SidekeepHost) -> dict[str, Any]:
    """Return the next notification."""
    await host.until(lambda: bool(host.notifications), timeout=10)
    return host.notifications.pop(0)


async def event(host: SidekeepHost) -> tuple[int, dict[str, Any]]:
    """Return sequence number and changes of the next event."""
    message = await notification(host)
    assert message["method"] == "storage.changed", message
    return message["params"]["seq"], message["params"]["changes"]


async def test_an_event_tells_old_and_new_values_of_what_changed(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"same": 1, "a": 1, "gone": [1]})
        await watch(host)
        await host.set({"same": 1, "a": {"x": 2}, "new": None})
        await host.remove(["gone", "never"])
        assert await event(host) == (
            2,
            {"a": {"newValue": {"x": 2}, "oldValue": 1}, "new": {"newValue": None}},
        )
        assert await event(host) == (3, {"gone": {"oldValue": [1]}})


async def test_nothing_is_told_of_calls_that_change_nothing(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"o": {"a": 1, "b": [1, 2]}})
        await watch(host)
        await host.set({"o": {"b": [1, 2], "a": 1}})  # another order of keys
        await host.set({})
        await host.remove("never")
        await host.set({"o": {"a": 1, "b": [2, 1]}})
        await host.clear()
        await host.clear()
        assert [seq for seq, _ in [await event(host), await event(host)]] == [2, 3]
        assert host.notifications == []


async def test_an_event_comes_before_the_reply_that_it_belongs_to(sandbox: Sandbox) -> None:
    big = base64.b64encode(os.urandom(3_000_000)).decode()
    async with sandbox.open() as host:
        await watch(host)
        for value in (1, big, 2):
            await host.set({"k": value})
            message = host.notifications.pop()  # it is there already
            assert host.notifications == []
            assert message["params"]["changes"]["k"]["newValue"] == value


async def test_calls_of_one_frame_have_an_event_each(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await watch(host)
        await host.batch(
            [
                Call("storage.set", {"area": "local", "items": {"k": value}})
                for value in ("a", "b", "a")
            ]
        )
        told = [await event(host) for _ in range(3)]
        assert [seq for seq, _ in told] == [1, 2, 3]
        assert [changes["k"]["newValue"] for _, changes in told] == ["a", "b", "a"]


async def test_changes_of_other_processes_are_told_in_one_order(sandbox: Sandbox) -> None:
    async with sandbox.open() as one, sandbox.open() as two, sandbox.open() as third:
        await watch(one)
        await watch(two)
        for number in range(20):
            await asyncio.gather(
                one.set({"one": number}), two.set({"two": number}), third.set({"three": number})
            )
        heard = [[await event(host) for _ in range(60)] for host in (one, two)]
        assert heard[0] == heard[1]
        assert [seq for seq, _ in heard[0]] == list(range(1, 61))


async def test_keys_and_values_can_be_left_out(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await watch(host, keys=["wanted"], values=False)
        await host.set({"wanted": 1, "other": 1})
        await host.set({"other": 2})
        await host.set({"wanted": 2})
        assert await event(host) == (1, {"wanted": {}})
        assert await event(host) == (3, {"wanted": {}})


async def test_what_was_missed_is_replayed_once(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        place = await watch(host)
        await host.set({"k": 1})
        assert (await event(host))[0] == 1
    async with sandbox.open() as other:
        await other.set({"k": 2})
        await other.set({"k": 3})
    async with sandbox.open() as host:
        await watch(host, since={"local": 1}, stores=place["stores"])
        assert [(await event(host))[0] for _ in range(2)] == [2, 3]
        await host.set({"k": 4})
        assert await event(host) == (4, {"k": {"newValue": 4, "oldValue": 3}})
        assert host.notifications == []


async def test_what_can_no_longer_be_replayed_is_a_gap(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        place = await watch(host, areas=["local"])
        await host.set({"k": 1})
    async with sandbox.open() as other:
        for _ in range(6):
            await other.set({"k": base64.b64encode(os.urandom(900_000)).decode()})
    async with sandbox.open() as host:
        await watch(host, since={"local": 1}, stores=place["stores"])
        gap = await notification(host)
        assert (gap["method"], gap["params"]) == ("storage.gap", {"area": "local", "seq": 7})
        await host.set({"k": 2})
        assert (await event(host))[0] == 8


@pytest.mark.parametrize("known", [{"store": "another"}, {"stores": {"local": "another"}}])
async def test_a_place_in_another_file_is_a_gap(sandbox: Sandbox, known: dict[str, Any]) -> None:
    async with sandbox.open() as host:
        await host.set({"k": 1})
        await watch(host, since={"local": 0}, **known)
        assert (await notification(host))["method"] == "storage.gap"


async def test_without_parts_a_value_that_does_not_fit_is_a_gap(sandbox: Sandbox) -> None:
    async with sandbox.host() as host:
        await host.hello(parts=None)
        await watch(host)
        async with sandbox.open() as other:
            await other.set({"k": "x" * 2_000_000})
        gap = await notification(host)
        assert (gap["method"], gap["params"]["seq"]) == ("storage.gap", 1)


async def test_big_values_written_quickly_are_all_told_to_a_slow_listener(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open() as listener, sandbox.open() as writer:
        await watch(listener)
        listener.hold_acknowledgements()
        for number in range(12):
            await writer.set({"k": f"{number}:" + "x" * 1_000_000})
        await listener.release_acknowledgements()
        told = [await event(listener) for _ in range(12)]
        assert [changes["k"]["newValue"][:3].split(":")[0] for _, changes in told] == [
            str(number) for number in range(12)
        ]


async def test_a_later_watch_takes_the_place_of_the_first(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await watch(host)
        await host.set({"k": 1})
        assert (await event(host))[0] == 1
        await watch(host, areas=[])
        await host.set({"k": 2})
        await host.ping()
        assert host.notifications == []


async def test_a_store_that_nobody_watches_has_no_bell(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"k": 1})
        assert not (sandbox.store_file().parent / "bell").exists()
        await watch(host)
        await host.set({"k": 2})
        assert (sandbox.store_file().parent / "bell").exists()


async def test_events_equal_the_journal_while_hosts_are_killed(sandbox: Sandbox) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    heard: list[tuple[int, dict[str, Any]]] = []
    place: dict[str, Any] = {"seq": {"local": 0}}
    for _ in range(6):
        async with sandbox.open() as listener, sandbox.open() as writer:
            since = heard[-1][0] if heard else 0
            place = await watch(listener, since={"local": since}, stores=place.get("stores"))
            for _ in range(dice.randrange(5, 25)):
                key = dice.choice("abcd")
                if dice.random() < 0.2:
                    await writer.remove(key)
                else:
                    await dice.choice([writer, listener]).set({key: dice.randrange(3)})
                if dice.random() < 0.05:
                    listener.kill()
                    break
            await asyncio.sleep(0.05)
            heard += [
                (message["params"]["seq"], message["params"]["changes"])
                for message in listener.notifications
            ]
    async with sandbox.open() as fresh:
        await watch(fresh, since={"local": 0}, stores=place["stores"])
        end = (await fresh.status())["journal"]["last"]
        journal = [await event(fresh) for _ in range(end)]
    assert heard == journal[: len(heard)], f"seed {seed}"
    assert [seq for seq, _ in journal] == list(range(1, end + 1))
