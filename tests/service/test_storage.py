"""storage.* on the area ``local``: what was set is what is read, in every form of the call."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest

from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, refused

EVERY_TYPE: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "integer": 9007199254740991,
    "negative": -9007199254740991,
    "fraction": 0.1,
    "huge": 1e308,
    "tiny": 5e-324,
    "empty string": "",
    "string": "plain",
    "escapes": '"\\/\b\f\n\r\t\x00\x1f\x7f',
    "letters": "é中文😀\u2028\u2029\ufffe\uffff",
    "empty array": [],
    "empty object": {},
    "array": [1, None, [2, [3, {}]], "x"],
    "object": {"b": 1, "a": {"": {"": None}}},
}

AWKWARD_KEYS = [
    "",
    " ",
    "\x00",
    "é",
    "中文",
    "😀",
    "\u2028",
    '"',
    "\\",
    "__proto__",
    "constructor",
    "k" * 399,
    "k" * 400,
    "k" * 401,
    "k" * 510,
    "k" * 511,
    "k" * 512,
    "k" * 5000,
    "é" * 5000,
    "k" * 399 + "é",
    "x" * 70_000,
]


async def test_every_json_type_comes_back_equal_also_after_restart(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set(EVERY_TYPE)
        assert await host.get() == EVERY_TYPE
    async with sandbox.open() as host:
        found = await host.get()
        assert found == EVERY_TYPE
        # 1 == True in Python, so the types are compared too.
        assert {key: type(value) for key, value in found.items()} == {
            key: type(value) for key, value in EVERY_TYPE.items()
        }


async def test_get_takes_null_one_key_or_a_list_and_leaves_missing_ones_out(
    host: SidekeepHost,
) -> None:
    await host.set({"b": 2, "a": 1, "c": 3})
    assert await host.get(None) == {"a": 1, "b": 2, "c": 3}
    assert await host.get("a") == {"a": 1}
    assert await host.get("missing") == {}
    assert await host.get(["c", "missing", "a", "a"]) == {"a": 1, "c": 3}
    assert await host.get([]) == {}


async def test_items_and_keys_come_in_byte_order_of_their_keys(host: SidekeepHost) -> None:
    await host.set(dict.fromkeys(reversed(AWKWARD_KEYS), 1))
    expected = sorted(AWKWARD_KEYS, key=str.encode)
    assert list(await host.get()) == expected
    assert list(await host.get(AWKWARD_KEYS)) == expected
    assert await host.keys() == expected


@pytest.mark.parametrize(
    "key", AWKWARD_KEYS, ids=[f"{len(key)}:{key[:3]!r}" for key in AWKWARD_KEYS]
)
async def test_any_string_is_a_key(host: SidekeepHost, key: str) -> None:
    await host.set({key: "first", key + "x": "neighbour"})
    await host.set({key: "second"})
    assert await host.get(key) == {key: "second"}
    await host.remove(key)
    assert await host.get() == {key + "x": "neighbour"}


async def test_keys_that_agree_in_their_first_thousand_bytes_stay_apart(host: SidekeepHost) -> None:
    keys = {"k" * 1000 + end: end for end in ("", "a", "b", "é")}
    await host.set(keys)
    assert await host.get() == keys
    await host.remove("k" * 1000 + "a")
    assert await host.get(list(keys)) == {k: v for k, v in keys.items() if v != "a"}


async def test_remove_takes_one_key_or_a_list_and_ignores_missing_ones(host: SidekeepHost) -> None:
    await host.set({"a": 1, "b": 2, "c": 3, "d": 4})
    await host.remove("a")
    await host.remove(["b", "missing", "b"])
    await host.remove([])
    await host.remove("missing")
    assert await host.get() == {"c": 3, "d": 4}


async def test_clear_empties_the_area(host: SidekeepHost) -> None:
    await host.clear()
    await host.set({"a": 1, "": 2, "big": "x" * 1_000_000})
    await host.clear()
    assert await host.get() == {}
    assert await host.keys() == []
    assert await host.bytes_in_use() == 0
    assert (await host.status())["entries"] == 0


async def test_set_of_nothing_is_fine(host: SidekeepHost) -> None:
    await host.set({})
    assert await host.get() == {}


async def test_keys_that_look_like_the_hosts_own_words_are_plain_keys(host: SidekeepHost) -> None:
    items = {
        "history": {"not": "an array"},
        "sidekeep:token": "sidekeep:token",
        "part": {"part": {"of": 1, "i": 0, "last": True}, "text": "{}"},
        "ack": {"ack": {"of": 1, "i": 0}},
        "jsonrpc": {"jsonrpc": "2.0", "id": 1, "result": None},
    }
    await host.set(items)
    assert await host.get() == items


BYTES_OF_FIREFOX = {
    "key1": "value1",
    "key2": {"nested": "value2"},
    "key3": 12345,
    "key4": "Привет, мир!",
    "null": None,
    "": "Value for key that's an empty string.",
}
BYTES_OF_WEBKIT = {
    "string": "string",
    "number": 1,
    "boolean": True,
    "dictionary": {"key": "value"},
    "array": [1, True, "string"],
}


async def test_bytes_in_use_counts_as_chromium_does(host: SidekeepHost) -> None:
    await host.set(BYTES_OF_FIREFOX)
    assert await host.bytes_in_use() == 118
    assert await host.bytes_in_use("key2") == 23
    assert await host.bytes_in_use(["key1", "key3"]) == 21
    assert await host.bytes_in_use("") == 39
    assert await host.bytes_in_use([]) == 0
    assert await host.bytes_in_use("missing") == 0
    await host.clear()
    await host.set(BYTES_OF_WEBKIT)
    assert await host.bytes_in_use() == 79
    assert await host.bytes_in_use("array") == 22
    assert await host.bytes_in_use(["boolean", "dictionary"]) == 36


async def test_bytes_in_use_counts_what_chromium_escapes(host: SidekeepHost) -> None:
    # Chromium writes < as \\u003C and U+2028/U+2029 as escapes: 6 bytes each. Keys count raw.
    await host.set({"k": "<\u2028\u2029", "<": 1, "e": '\x01\n"é😀'})
    assert await host.bytes_in_use("k") == 1 + 2 + 18
    assert await host.bytes_in_use("<") == 2
    assert await host.bytes_in_use("e") == 1 + 2 + 6 + 2 + 2 + 2 + 4
    await host.set({"big": "<" * 100_000})
    assert await host.bytes_in_use("big") == 3 + 2 + 600_000


async def test_bytes_in_use_is_the_same_for_big_values_in_one_piece_or_many(
    host: SidekeepHost,
) -> None:
    await host.set({"a": "x" * 3_000_000, "b": ["y" * 5000] * 100})
    assert await host.bytes_in_use("a") == 1 + 2 + 3_000_000
    assert await host.bytes_in_use("b") == 1 + 2 + 99 + 100 * 5002


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("storage.get", {"area": "local", "keys": 5}),
        ("storage.get", {"area": "local", "keys": {"a": 1}}),
        ("storage.get", {"area": "local", "keys": [1]}),
        ("storage.get", {"keys": "a"}),
        ("storage.get", {"area": "elsewhere", "keys": "a"}),
        ("storage.get", {"area": 1, "keys": "a"}),
        ("storage.get", ["local", "a"]),
        ("storage.get", "local"),
        ("storage.get", None),
        ("storage.set", {"area": "local", "items": [["a", 1]]}),
        ("storage.set", {"area": "local", "items": None}),
        ("storage.set", {"area": "local"}),
        ("storage.set", {"area": "sync", "items": {"a": 2}}),
        ("storage.remove", {"area": "local", "keys": None}),
        ("storage.remove", {"area": "local", "keys": ["a", 1]}),
        ("storage.remove", {"area": "local"}),
        ("storage.clear", {}),
        ("storage.getKeys", {}),
        ("storage.getBytesInUse", {"area": "local", "keys": {"a": 1}}),
        ("storage.getBytesInUse", {"area": "local", "keys": [None]}),
    ],
)
async def test_parameters_of_wrong_types_are_refused_and_change_nothing(
    host: SidekeepHost, method: str, params: Any
) -> None:
    await host.set({"a": 1, "b": 2})
    with refused("invalidParams"):
        await host.call(method, params)
    assert await host.get() == {"a": 1, "b": 2}


async def test_calls_of_one_batch_take_effect_in_order(host: SidekeepHost) -> None:
    area = {"area": "local"}
    results = await host.batch(
        [
            Call("storage.set", {**area, "items": {"a": 1}}),
            Call("storage.get", {**area, "keys": "a"}),
            Call("storage.set", {**area, "items": {"a": 2, "b": 3}}),
            Call("storage.getKeys", area),
            Call("storage.remove", {**area, "keys": "a"}),
            Call("storage.get", {**area, "keys": None}),
            Call("storage.clear", area),
            Call("storage.getKeys", area),
            Call("storage.set", {**area, "items": {"c": 4}}),
        ]
    )
    assert results == [
        {},
        {"items": {"a": 1}},
        {},
        {"keys": ["a", "b"]},
        {},
        {"items": {"b": 3}},
        {},
        {"keys": []},
        {},
    ]
    assert await host.get() == {"c": 4}


async def test_calls_posted_one_by_one_take_effect_in_order(host: SidekeepHost) -> None:
    def request(number: str, method: str, params: dict[str, Any]) -> bytes:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        return json.dumps(message | {"params": {"area": "local"} | params}).encode()

    for number in range(100):
        await host.send_frame(request(f"s{number}", "storage.set", {"items": {"a": number}}))
        await host.send_frame(request(f"g{number}", "storage.get", {"keys": "a"}))
    replies = [await host.unclaimed() for _ in range(200)]
    found = {reply["id"]: reply["result"] for reply in replies}
    assert [found[f"g{n}"]["items"]["a"] for n in range(100)] == list(range(100))


async def test_two_thousand_calls_in_one_frame_are_all_answered(host: SidekeepHost) -> None:
    calls = [Call("storage.set", {"area": "local", "items": {f"k{n}": n}}) for n in range(2000)]
    assert await host.batch(calls) == [{}] * 2000
    calls = [Call("storage.get", {"area": "local", "keys": f"k{n}"}) for n in range(2000)]
    assert await host.batch(calls) == [{"items": {f"k{n}": n}} for n in range(2000)]
    assert len(await host.keys()) == 2000


async def test_revisions_change_with_the_value_when_asked_for(host: SidekeepHost) -> None:
    async def revisions() -> dict[str, Any]:
        params = {"area": "local", "keys": None, "revisions": True}
        result = (await host.call("storage.get", params))["revisions"]
        assert isinstance(result, dict)
        return result

    await host.set({"a": 1, "b": 2})
    before = await revisions()
    assert set(before) == {"a", "b"}
    await host.set({"a": 3})
    after = await revisions()
    assert after["a"] != before["a"]
    assert after["b"] == before["b"]


async def test_same_picture_under_many_keys_is_stored_once(host: SidekeepHost) -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 20_000
    await host.set({f"k{n}": {"image": picture, "n": n} for n in range(10)})
    status = await host.status()
    assert status["blobBytes"] < 2 * len(picture)
    await host.remove([f"k{n}" for n in range(9)])
    assert await host.get("k9") == {"k9": {"image": picture, "n": 9}}


async def test_folders_and_files_belong_to_the_user_alone(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        await host.set({"a": "b" * 1_000_000})
        paths = [sandbox.data, *sandbox.data.rglob("*")]
    assert len(paths) > 3
    for path in paths:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


async def test_status_tells_what_the_page_lists(sandbox: Sandbox, host: SidekeepHost) -> None:
    await host.set({"a": 1, "b": "x" * 100_000})
    status = await host.status()
    assert status["health"] == "good"
    assert status["file"] == str(sandbox.store_file())
    # The file ends with a hole that takes no room.
    assert 0 < status["bytes"] <= sandbox.store_file().stat().st_size < status["bytes"] + 300_000
    assert status["entries"] == 2
    assert status["blobs"] == 1
    assert status["mapBytes"] >= status["bytes"]
    assert status["lastBackup"] is None
    assert status["pid"] == host.pid
    assert status["profile"] == "profile"
    assert set(status["journal"]) == {"first", "last", "rows"}
    assert set(status["versions"]) == {
        "sidekeep",
        "protocol",
        "format",
        "python",
        "lmdb",
        "msgspec",
    }
    assert set(status["conversations"]) == {"count", "entries", "text", "own", "shared"}
    assert set(status["trash"]) == {"items", "entries"}
    assert set(status["previews"]) == {"on", "reason"}
    for name in ("valueBytes", "blobBytes", "readers"):
        assert isinstance(status[name], int)
