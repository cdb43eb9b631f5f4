"""Faults that were seen in the field in other hosts' framing, tried on this one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.harness import encode_frame
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused

MIB = 1 << 20


def read(key: str, number: Any = "r") -> bytes:
    """Return the text of a storage.get of one key."""
    params = {"area": "local", "keys": key}
    message = {"jsonrpc": "2.0", "id": number, "method": "storage.get", "params": params}
    return json.dumps(message, ensure_ascii=False).encode()


async def sizes_around(host: SidekeepHost) -> int:
    """Return how many bytes a reply of ``read("k")`` has beside the string that it carries."""
    await host.set({"k": ""})
    host.largest_frame = 0
    await host.exchange(read("k"))
    return host.largest_frame


@pytest.mark.parametrize(
    "flags_and_environment",
    [
        (["-S"], {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"}),
        (["-S", "-X", "dev", "-W", "always", "-v"], {}),
        (["-I", "-S", "-X", "importtime"], {}),
    ],
    ids=["environment", "verbose", "import times"],
)
async def test_standard_output_carries_frames_only_whatever_python_wants_to_print(
    sandbox: Sandbox, flags_and_environment: tuple[list[str], dict[str, str]]
) -> None:
    flags, environment = flags_and_environment
    sandbox.interpreter_flags = flags
    bare = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    async with sandbox.host(environment=bare | environment) as host:
        await host.hello()
        await host.set({"a": "x" * 2_000_000})
        assert len((await host.get("a"))["a"]) == 2_000_000
        with refused("methodNotFound"):
            await host.call("no.such", {})
        with refused("invalidParams"):
            await host.call("storage.get", 5)
        await host.exchange(b"{")
        await host.ping()
    # The harness has checked standard output from byte 0 to the end.


async def test_standard_output_carries_frames_only_when_the_store_is_damaged(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open() as host:
        await host.set({"a": 1})
    sandbox.store_file().write_bytes(b"not a store\n" * 1000)
    sandbox.interpreter_flags = ["-S", "-X", "dev"]
    async with sandbox.host() as host:
        with refused("damaged"):
            await host.hello()
        assert (await host.status())["health"] == "damaged"


async def test_host_without_its_libraries_answers_that_storage_is_unavailable(
    sandbox: Sandbox,
) -> None:
    (sandbox.folder / "libraries" / "lmdb").unlink()
    async with sandbox.host() as host:
        with refused("unavailable") as caught:
            await host.hello()
        assert "lmdb" in caught.value.message


@pytest.mark.parametrize(
    "value",
    [
        "x" * (5 * MIB),
        "x" * (40 * MIB),
        "\x01" * 400_000,
        "é" * 400_000,
        '"' * 600_000,
        "\\" * 600_000,
    ],
    ids=["5 MiB", "40 MiB", "control characters", "accents", "quotes", "backslashes"],
)
async def test_reply_near_and_beyond_the_frame_limit_arrives_in_parts(
    host: SidekeepHost, value: str
) -> None:
    await host.set({"k": value})
    assert await host.get("k") == {"k": value}
    assert host.largest_frame <= MIB


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1, 262_143, 262_144, 262_145])
async def test_reply_of_exactly_the_limits_size_arrives(host: SidekeepHost, size: int) -> None:
    around = await sizes_around(host)
    value = "é" + "x" * (size - around - 2)
    await host.set({"k": value})
    response = await host.exchange(read("k"))
    assert response["result"]["items"] == {"k": value}
    assert host.largest_frame <= MIB


async def test_slow_reader_gets_replies_around_the_pipes_size_and_the_host_waits_idly(
    host: SidekeepHost,
) -> None:
    around = await sizes_around(host)
    sizes = [*range(65_530, 65_546), 131_072]
    for size in sizes:
        await host.set({f"k{size}": "x" * (size - around)})
    host.pause_reading()
    for size in sizes:
        await host.send_frame(read(f"k{size}", size))
    await asyncio.sleep(0.5)
    before = host.cpu_seconds()
    await asyncio.sleep(3)
    assert host.cpu_seconds() - before <= 0.05
    host.resume_reading(chunk=1)
    first = await host.unclaimed(60)
    second = await host.unclaimed(60)
    host.pause_reading()
    host.resume_reading(chunk=4093)
    rest = [await host.unclaimed() for _ in sizes[2:]]
    found = {response["id"]: response["result"]["items"] for response in (first, second, *rest)}
    assert found == {size: {f"k{size}": "x" * (size - around)} for size in sizes}


async def test_three_frames_in_one_write_are_all_answered_in_order(host: SidekeepHost) -> None:
    await host.set({"k": 1})
    await host.send_bytes(
        b"".join(encode_frame(read("k", number)) for number in (1_001, 1_002, 1_003))
    )
    assert [(await host.unclaimed())["id"] for _ in range(3)] == [1_001, 1_002, 1_003]


async def test_frame_split_at_every_byte_is_read_whole(host: SidekeepHost) -> None:
    key = "é😀"
    await host.set({key: "中"})
    frame = encode_frame(read(key))
    for place in range(1, len(frame)):
        await host.send_split(frame, [place], delay=0.002)
        assert (await host.unclaimed())["result"]["items"] == {key: "中"}
    await host.send_split(frame, range(1, len(frame)), delay=0.005)
    assert (await host.unclaimed())["result"]["items"] == {key: "中"}


@pytest.mark.parametrize(
    "sample", ["é", "中文", "😀", "\u2028", "\x00", '"', "\\", "\x7f", "\r\n", "\x1a"]
)
async def test_length_counts_bytes_and_not_characters(host: SidekeepHost, sample: str) -> None:
    await host.set({"other": sample})
    for text in (sample, sample * 100, sample * (MIB // len(sample.encode()))):
        await host.set({"key " + sample: text})
        assert await host.get() == {"key " + sample: text, "other": sample}


@pytest.mark.parametrize("length", [10, 13, 26, 0x0A0A, 0x0D0A, 0x1A0D, 2560, 3338, 6666])
async def test_line_ends_and_end_of_file_bytes_in_lengths_and_bodies_are_only_bytes(
    host: SidekeepHost, length: int
) -> None:
    # A frame of exactly that length that is answered: too short ones are padded with line ends.
    body = b'{"a":1}' if length < 100 else read("k", "x")
    body += b"\r\n" * ((length - len(body)) // 2) + b"\n" * ((length - len(body)) % 2)
    assert len(body) == length
    response = await host.exchange(body)
    assert ("result" in response) == (length >= 100)
    around = await sizes_around(host)
    if length > around:
        value = "\r\n\x1a" * 100
        inner = len(json.dumps(value)) - 2
        if length >= around + inner:
            value += "x" * (length - around - inner)
        else:
            value = "x" * (length - around)
        await host.set({"k": value})
        host.largest_frame = 0
        assert (await host.exchange(read("k")))["result"]["items"] == {"k": value}
        assert host.largest_frame == length


async def test_refusal_of_each_fatal_path_arrives_before_the_end_of_output(
    sandbox: Sandbox,
) -> None:
    stranger = await sandbox.host(arguments=["chrome-extension://" + "b" * 32 + "/"]).__aenter__()
    refusal = await stranger.exchange(read("k"))
    assert refusal["error"]["data"]["kind"] == "forbidden"
    assert (await stranger.close()).code == 3

    oversize = await sandbox.host().__aenter__()
    await oversize.hello()
    # No more than the pipe holds: the host ends without reading it.
    await oversize.send_bytes(b"\xff\xff\xff\xff" + b"x" * 10_000)
    refusal = await oversize.unclaimed()
    assert refusal["error"]["data"]["kind"] == "tooLarge"
    assert (await oversize.wait()).code == 2
    await oversize.close()

    sandbox.config.write_text("broken", encoding="utf-8")
    unset = await sandbox.host().__aenter__()
    refusal = await unset.exchange(read("k"))
    assert refusal["error"]["data"]["kind"] == "unavailable"
    assert (await unset.close()).code == 4


async def test_data_folder_that_cannot_be_written_is_told(sandbox: Sandbox) -> None:
    sandbox.data.parent.mkdir(exist_ok=True)
    sandbox.data.write_text("a file where the folder should be", encoding="utf-8")
    async with sandbox.host() as host:
        with refused("unavailable") as caught:
            await host.hello()
        assert str(sandbox.data) in caught.value.message
