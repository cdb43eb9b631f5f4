"""What happens to the file underneath: growth, several processes, damage, full disks, crashes."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path

import pytest

from tests.faults.disks import small_disk
from tests.harness import HostGoneError, RpcError
from tests.harness.native import many
from tests.harness.sidekeep_host import Sandbox, assert_kind, refused

MIB = 1 << 20


def digest(path: Path) -> str:
    """Return a hash of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_store_grows_to_many_times_its_first_map(sandbox: Sandbox) -> None:
    sandbox.limits["map_size"] = MIB
    sandbox.write()
    async with sandbox.open() as host:
        for number in range(20):
            await host.set({f"k{number}": f"{number}" * (MIB // 2)})
        found = await host.get()
        assert {key: len(value) for key, value in found.items()} == {
            f"k{n}": len(f"{n}") * (MIB // 2) for n in range(20)
        }
        # One value that is many times the map.
        await host.set({"big": "x" * (30 * MIB)})
        assert len((await host.get("big"))["big"]) == 30 * MIB


async def test_configured_largest_size_is_kept_and_named_in_the_refusal(sandbox: Sandbox) -> None:
    sandbox.limits |= {"map_size": MIB, "max_size": 8 * MIB}
    sandbox.write()
    async with sandbox.open() as host:
        stored: dict[str, str] = {}
        with refused("quota") as caught:
            for number in range(100):
                item = {f"k{number}": f"{number:03}" * (MIB // 6)}
                await host.set(item)
                stored |= item
        assert len(stored) >= 8
        assert str(8 * MIB) in caught.value.message
        assert caught.value.data["max"] == 8 * MIB
        assert 0 < caught.value.data["used"] <= 8 * MIB
        assert await host.get() == stored
        with refused("quota"):
            await host.set({"big": "x" * (20 * MIB)})
        await host.ping()
        await host.remove(list(stored)[:4])
        await host.set({"fits": "y" * MIB})
        assert sandbox.store_file().stat().st_size <= 8 * MIB
    async with sandbox.open() as host:
        assert await host.get("fits") == {"fits": "y" * MIB}


@pytest.mark.parametrize(
    ("rounds", "megabytes"), [(6, 20), pytest.param(20, 300, marks=pytest.mark.long)]
)
async def test_processes_adopt_a_map_that_another_one_grew(
    sandbox: Sandbox, rounds: int, megabytes: int
) -> None:
    sandbox.limits["map_size"] = MIB
    sandbox.write()
    async with sandbox.open() as one, sandbox.open() as two:
        writer, reader = one, two
        for number in range(rounds):
            for piece in range(megabytes // 5):
                await writer.set({f"k{piece}": f"{number}:" + "x" * 5_000_000})
            for piece in range(megabytes // 5):
                value = (await reader.get(f"k{piece}"))[f"k{piece}"]
                assert value == f"{number}:" + "x" * 5_000_000
            writer, reader = reader, writer


async def test_reader_keeps_its_moment_while_another_process_grows_the_map(
    sandbox: Sandbox,
) -> None:
    sandbox.limits["map_size"] = MIB
    sandbox.write()
    async with sandbox.open() as writer, sandbox.open(parts=1) as reader:
        await writer.set({"a": "x" * 3_000_000})
        reader.hold_acknowledgements()
        read = asyncio.create_task(reader.get("a"))
        await reader.until(lambda: reader.unacknowledged_by_us == 1)
        for number in range(5):
            await writer.set({"a": f"{number}" * 4_000_000, f"k{number}": "y" * 4_000_000})
        await reader.ping()
        await reader.release_acknowledgements()
        assert await read == {"a": "x" * 3_000_000}


@pytest.mark.parametrize(
    "how", ["half", "one page", "8 pages", "100 bytes", "empty", "foreign", "gone"]
)
async def test_damaged_file_is_refused_and_left_untouched(sandbox: Sandbox, how: str) -> None:
    async with sandbox.open() as host:
        await host.set({f"k{n}": f"{n:02}" * 50_000 for n in range(20)})
        size = (await host.status())["bytes"]  # behind it is a hole, which nobody needs
    store = sandbox.store_file()
    if how == "foreign":
        store.write_bytes(random.Random(1).randbytes(100_000))
    elif how == "gone":
        store.unlink()
    else:
        length = {
            "half": size // 2 // 4096 * 4096,
            "one page": size - 4096,
            "8 pages": 8 * 4096,
            "100 bytes": 100,
            "empty": 0,
        }[how]
        with store.open("r+b") as file:
            file.truncate(length)
    before = None if how == "gone" else digest(store)
    for _ in range(2):
        async with sandbox.host() as host:
            with refused("damaged") as caught:
                await host.hello()
            assert str(store) in caught.value.message
            with refused("damaged"):
                await host.set({"a": 1})
            with refused("damaged"):
                await host.get()
            status = await host.status()
            assert status["health"] == "damaged"
            assert status["problem"]
            await host.ping()
    assert (digest(store) if store.exists() else None) == before


async def test_damage_inside_the_file_is_an_error_and_never_a_wrong_value(
    sandbox: Sandbox,
) -> None:
    """Overwrite pages at random: every answer is the right value or a refusal, no signal death."""
    items = {f"k{n:03}": f"{n:03}" * 3000 for n in range(60)}
    async with sandbox.open() as host:
        await host.set(items)
    store = sandbox.store_file()
    whole = store.read_bytes()
    dice = random.Random(7)
    for _ in range(12):
        broken = bytearray(whole)
        page = dice.randrange(2, len(whole) // 4096)
        broken[page * 4096 + 16 : (page + 1) * 4096] = dice.choice(
            [bytes(4080), dice.randbytes(4080)]
        )
        store.write_bytes(broken)
        async with sandbox.host() as host:
            try:
                await host.hello()
            except RpcError as error:
                assert_kind(error, "damaged")
                continue
            for key, value in items.items():
                try:
                    found = await host.get(key)
                except RpcError as error:
                    assert_kind(error, "damaged")
                except HostGoneError:
                    exit = await host.wait()
                    pytest.fail(f"reading {key} with page {page} broken ended the host: {exit}")
                else:
                    assert found == {key: value}, f"page {page}"


async def test_full_disk_refuses_the_write_keeps_the_data_and_recovers(sandbox: Sandbox) -> None:
    with small_disk(sandbox.data, 6 * MIB) as prefix:
        host = sandbox.host()
        host.command = [*prefix, *host.command]
        async with host:
            await host.hello()
            stored: dict[str, str] = {}
            with refused("diskFull") as caught:
                for number in range(200):
                    item = {f"k{number}": f"{number:03}" * 50_000}
                    await host.set(item)
                    stored |= item
            assert len(stored) >= 10
            assert caught.value.data["next"]
            for _ in range(3):
                with refused("diskFull"):
                    await host.set({"more": "m" * (2 * MIB)})
            assert await host.get() == stored
            await host.ping()
            assert (await host.status())["health"] == "good"
            second = sandbox.host()
            if not prefix:  # in a namespace of its own it would see another disk
                async with second:
                    await second.hello()
                    assert await second.get() == stored
            # Deleting needs no new space, and what it frees can be used at once.
            for key in list(stored)[: len(stored) // 2]:
                await host.remove(key)
                del stored[key]
            await host.set({"fits": "f" * 100_000})
            assert await host.get() == stored | {"fits": "f" * 100_000}


async def test_disk_without_any_room_is_told_at_the_hello(sandbox: Sandbox) -> None:
    with small_disk(sandbox.data, 16 * 1024) as prefix:
        host = sandbox.host()
        host.command = [*prefix, *host.command]
        async with host:
            with refused("diskFull"):
                await host.hello()


@pytest.mark.parametrize("hosts", [60, pytest.param(300, marks=pytest.mark.long)])
async def test_readers_that_were_killed_leave_no_slots_and_pin_no_pages(
    sandbox: Sandbox, hosts: int
) -> None:
    async with sandbox.open() as host:
        await host.set({"big": "x" * 4_000_000, "small": "s"})
    started = 0
    while started < hosts:
        group = [sandbox.host() for _ in range(10)]
        async with many(group):
            for reader in group:
                await reader.hello()
                reader.pause_reading()
                params = b'{"area":"local","keys":"big"}'
                await reader.send_frame(
                    b'{"jsonrpc":"2.0","id":"r","method":"storage.get","params":' + params + b"}"
                )
            await asyncio.sleep(0.1)
            for reader in group:
                reader.kill()
                reader.take_unclaimed()
        started += len(group)
    async with sandbox.open() as host:
        before = sandbox.store_file().stat().st_size
        for number in range(1000):
            await host.set({"value": f"{number:04}" * 5000})
        assert sandbox.store_file().stat().st_size - before < 5 * MIB
        assert (await host.status())["readers"] <= 2


@pytest.mark.parametrize(
    ("rounds", "hosts"), [(2, 20), pytest.param(20, 40, marks=pytest.mark.long)]
)
async def test_many_hosts_started_at_once_on_a_missing_folder_share_one_store(
    sandbox: Sandbox, rounds: int, hosts: int
) -> None:
    link = Sandbox(sandbox.folder.parent / "second")
    for number in range(rounds):
        sandbox.data = sandbox.folder / f"data{number}"
        sandbox.write()
        # The same folder by another path.
        link.data = sandbox.folder.parent / f"link{number}"
        link.data.symlink_to(sandbox.data, target_is_directory=True)
        link.write()
        sandbox.data.mkdir(mode=0o700)
        group = [(sandbox, link)[n % 2].host() for n in range(hosts)]
        async with many(group):
            await asyncio.gather(*(host.hello() for host in group))
            assert len({host.greeting["store"] for host in group}) == 1
            await asyncio.gather(
                *(host.set({f"own{n}": n, f"shared{n // 2}": n}) for n, host in enumerate(group))
            )
            for host in group:
                found = await host.get()
                for n in range(hosts):
                    assert found[f"own{n}"] == n
                    assert found[f"shared{n // 2}"] // 2 == n // 2


async def test_hosts_write_to_one_store_at_the_same_time_without_loss(sandbox: Sandbox) -> None:
    sandbox.limits["map_size"] = MIB
    sandbox.write()
    group = [sandbox.host() for _ in range(4)]
    async with many(group):
        await asyncio.gather(*(host.hello() for host in group))

        async def work(index: int) -> None:
            for number in range(60):
                await group[index].set({f"{index}.{number}": "x" * 30_000, f"last{index}": number})

        await asyncio.gather(*(work(index) for index in range(4)))
        expected = {f"{i}.{n}" for i in range(4) for n in range(60)} | {
            f"last{i}" for i in range(4)
        }
        for host in group:
            assert set(await host.keys()) == expected


async def test_fresh_store_takes_little_of_the_disk(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"a": 1})
        used = sum(path.stat().st_blocks * 512 for path in sandbox.data.rglob("*"))
        assert used <= 4 * MIB


async def test_store_grows_in_steps_where_files_cannot_be_sparse(sandbox: Sandbox) -> None:
    """The file is never larger than what was written needs, so no file system has to be sparse."""
    sandbox.limits["map_size"] = MIB
    sandbox.write()
    async with sandbox.open() as host:
        for number in range(10):
            await host.set({f"k{number}": f"{number}" * 5_000_000})
            size = sandbox.store_file().stat()
            assert size.st_size <= (number + 1) * 5_000_000 * 1.1 + 2 * MIB
            assert size.st_blocks * 512 >= size.st_size * 0.9


async def test_two_profiles_and_two_extensions_never_meet(sandbox: Sandbox) -> None:
    firefox = "sidekeep@example.org"
    sandbox.extensions.append(firefox)
    sandbox.write()
    other = sandbox.host(arguments=["/manifest.json", firefox])
    async with sandbox.open("first") as one, sandbox.open("second") as two, other as three:
        await three.hello("first")
        for host, value in ((one, 1), (two, 2), (three, 3)):
            await host.set({"a": value, f"only{value}": value})
        for host, value in ((one, 1), (two, 2), (three, 3)):
            assert await host.get() == {"a": value, f"only{value}": value}
        await one.clear()
        assert await two.keys() == ["a", "only2"]
        assert await three.keys() == ["a", "only3"]
    assert len(list(sandbox.data.rglob("store.mdb"))) == 3


async def test_two_hosts_of_one_profile_see_each_others_changes_at_once(sandbox: Sandbox) -> None:
    async with sandbox.open() as one, sandbox.open() as two:
        for number in range(50):
            await one.set({"a": number})
            assert await two.get() == {"a": number}
            await two.remove("a")
            assert await one.get() == {}
