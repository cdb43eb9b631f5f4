"""Whatever arrives is answered with a code, harms nothing beside itself, and the host lives on."""

from __future__ import annotations

import asyncio
import json
import random
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import encode_frame
from tests.harness.frames import MAX_TO_HOST
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, error_codes

STORED = {"kept": "é", "number": 1}


def request(
    params: str | bytes, method: str | bytes = b"storage.set", number: str = '"r"'
) -> bytes:
    """Return the text of a request with ``params`` and ``method`` put in as they are."""
    params = params.encode() if isinstance(params, str) else params
    method = method.encode() if isinstance(method, str) else method
    head = b'{"jsonrpc":"2.0","id":' + number.encode() + b',"method":"' + method + b'","params":'
    return head + params + b"}"


def setting(value: str | bytes, key: str | bytes = b"bad") -> bytes:
    """Return the text of a storage.set with key and value put in as they are."""
    value = value.encode() if isinstance(value, str) else value
    key = key.encode() if isinstance(key, str) else key
    return request(b'{"area":"local","items":{"' + key + b'":' + value + b"}}")


NOT_JSON = {
    "nothing": b"",
    "spaces": b"   ",
    "open brace": b"{",
    "half a word": b"nul",
    "two bytes FF FE": b"\xff\xfe",
    "byte-order mark": b"\xef\xbb\xbf{}",
    "two values": b"{}{}",
    "trailing comma": b'{"a":1,}',
    "comment": b"// x\n{}",
    "single quotes": b"{'a':1}",
    "raw newline in a string": b'"a\nb"',
    "deep brackets": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "closed deep brackets": b"[" * 100_000 + b"]" * 100_000,
    "NaN": b"NaN",
    "UTF-16": '{"jsonrpc":"2.0"}'.encode("utf-16"),
    "zeros": b"\x00" * 1000,
}

NO_REQUEST = {
    "empty array": b"[]",
    "number": b"5",
    "string": b'"x"',
    "null": b"null",
    "true": b"true",
    "object of something else": b'{"op":7}',
    "no version": b'{"id":"r","method":"host.ping","params":{}}',
    "other version": b'{"jsonrpc":"1.0","id":"r","method":"host.ping","params":{}}',
    "method is a number": b'{"jsonrpc":"2.0","id":"r","method":5}',
    "method is null": b'{"jsonrpc":"2.0","id":"r","method":null}',
    "id is an object": b'{"jsonrpc":"2.0","id":{},"method":"host.ping"}',
    "id is a list": b'{"jsonrpc":"2.0","id":[1],"method":"host.ping"}',
    "id is true": b'{"jsonrpc":"2.0","id":true,"method":"host.ping"}',
    "params is a number": request("5"),
}

# Each of these is one request that fails alone, in a batch too.
BAD_REQUEST = {
    "invalid UTF-8 in a value": setting(b'"\xff\xfe"'),
    "cut UTF-8 in a value": setting(b'"\xc3"'),
    "overlong UTF-8": setting(b'"\xc0\xaf"'),
    "surrogate in UTF-8": setting(b'"\xed\xa0\xbd"'),
    "invalid UTF-8 in a key": setting("1", b"\xff"),
    "NaN": setting("NaN"),
    "Infinity": setting("[Infinity]"),
    "negative Infinity": setting("-Infinity"),
    "number beyond a double": setting("1e999"),
    "negative number beyond a double": setting('{"a":[-1e400]}'),
    "integer beyond a double": setting("1" + "0" * 400),
    "integer of 5,000 digits": setting("7" * 5000),
    "fraction with a huge exponent": setting("0.1e99999999999"),
    "leading zero": setting("01"),
    "plus": setting("+1"),
    "key twice in the value": setting('{"a":1,"a":2}'),
    "key twice deep in the value": setting('[{"b":[{"a":1,"x":0,"a":1}]}]'),
    "key twice in other spelling": setting(r'{"a":1,"\u0061":2}'),
    "key twice in items": request('{"area":"local","items":{"bad":1,"bad":2}}'),
    "key twice in params": request('{"area":"local","items":{"bad":1},"area":"local"}'),
    "key twice in the request": request('{},"params":{}', "host.ping"),
    "half a surrogate pair": setting(r'"\ud83d"'),
    "second half of a pair": setting(r'"\ude00"'),
    "pair in the wrong order": setting(r'"\ude00\ud83d"'),
    "half a pair before a letter": setting(r'"\ud83d\u0041"'),
    "half a pair in a key": setting("1", r"\ud83d"),
    "half a pair deep in a key": setting(r'{"x":[{"\udc00":1}]}'),
    "half a pair in a big value": setting('"' + "x" * 100_000 + r'\ud800"'),
    "brackets 201 deep": setting("[" * 198 + "]" * 198),
    "brackets 1,000 deep": setting("[" * 1000 + "]" * 1000),
    "brackets 100,000 deep": setting('{"a":' * 100_000 + "1" + "}" * 100_000),
    "method with half a pair": request("{}", r"\ud83d"),
}

# As above, and the elements of a batch can still be told apart.
UNKNOWN = {
    "unknown method": request("{}", "storage.explode"),
    "empty method": request("{}", ""),
    "method of another case": request("{}", "Storage.Set"),
    "method with a path": request("{}", "../../etc/passwd"),
    "dunder method": request("{}", "__class__"),
    "method of 1 MB": request("{}", "x" * 1_000_000),
}


async def assert_unharmed(host: SidekeepHost) -> None:
    """Check that the host answers and that what was stored is what is stored."""
    await host.ping()
    assert await host.get() == STORED


def kind_of(response: dict[str, Any]) -> str:
    """Return the kind of an error response, after checking its code against the table."""
    error = response["error"]
    kind = error["data"]["kind"]
    assert error["code"] == error_codes()[kind]
    assert len(error["message"]) < 1000
    return str(kind)


@pytest.mark.parametrize("name", NOT_JSON)
async def test_frame_that_is_not_json_is_a_parse_error(host: SidekeepHost, name: str) -> None:
    await host.set(STORED)
    response = await host.exchange(NOT_JSON[name])
    assert (response["id"], kind_of(response)) == (None, "parse")
    await assert_unharmed(host)


@pytest.mark.parametrize("name", NO_REQUEST)
async def test_json_that_is_no_request_is_refused(host: SidekeepHost, name: str) -> None:
    await host.set(STORED)
    response = await host.exchange(NO_REQUEST[name])
    # Parameters that are neither object nor array break JSON-RPC and the method's types alike.
    assert kind_of(response) in {"invalidRequest", "invalidParams"}
    known = b'"id":"r"' in NO_REQUEST[name]
    assert response["id"] in ({None, "r"} if known else {None})
    await assert_unharmed(host)


@pytest.mark.parametrize("name", BAD_REQUEST)
async def test_request_that_is_not_strict_json_fails(host: SidekeepHost, name: str) -> None:
    await host.set(STORED)
    response = await host.exchange(BAD_REQUEST[name])
    assert response["id"] in {None, "r"}
    assert kind_of(response) in {"parse", "invalidRequest", "invalidParams"}
    await assert_unharmed(host)


@pytest.mark.parametrize("name", UNKNOWN)
async def test_unknown_method_is_refused_in_a_short_reply(host: SidekeepHost, name: str) -> None:
    await host.set(STORED)
    response = await host.exchange(UNKNOWN[name])
    assert (response["id"], kind_of(response)) == ("r", "methodNotFound")
    assert len(json.dumps(response)) < 2000
    await assert_unharmed(host)


@pytest.mark.parametrize("name", [*BAD_REQUEST, *UNKNOWN])
async def test_faulty_element_of_a_batch_fails_alone(host: SidekeepHost, name: str) -> None:
    await host.set(STORED)
    bad = (BAD_REQUEST | UNKNOWN)[name]
    first = setting("1", "one").replace(b'"r"', b'"first"')
    last = setting("2", "two").replace(b'"r"', b'"last"')
    await host.send_frame(b"[" + first + b"," + bad + b"," + last + b"]")
    responses = [await host.unclaimed() for _ in range(3)]
    by_id = {response["id"]: response for response in responses}
    assert by_id["first"]["result"] == {}
    assert by_id["last"]["result"] == {}
    (failed,) = (by_id[number] for number in by_id if number not in {"first", "last"})
    assert failed["id"] in {None, "r"}
    assert "error" in failed
    assert await host.get() == STORED | {"one": 1, "two": 2}


@pytest.mark.parametrize("text", [b"[5,%s]", b"[%s,null]", b'[[],%s,"x"]', b"[{},%s]", b"[%s,nul]"])
async def test_element_that_is_no_request_fails_alone(host: SidekeepHost, text: bytes) -> None:
    fine = setting("1", "one")
    await host.send_frame(text.replace(b"%s", fine))
    responses = [await host.unclaimed() for _ in range(text.count(b",") + 1)]
    assert [response["result"] for response in responses if response["id"] == "r"] == [{}]
    for response in responses:
        if response["id"] is None:
            assert kind_of(response) in {"invalidRequest", "parse"}
    assert await host.get() == {"one": 1}


async def test_two_requests_without_a_comma_do_nothing(host: SidekeepHost) -> None:
    response = await host.exchange(b"[" + setting("1", "one") + b" " + setting("2", "two") + b"]")
    assert kind_of(response) == "parse"
    assert await host.get() == {}


@pytest.mark.parametrize("text", [b"[%s,", b"[%s,}]", b"[%s", b"[%s]]", b'[%s,"]', b"[%s}]"])
async def test_batch_whose_elements_cannot_be_told_apart_fails_as_a_whole(
    host: SidekeepHost, text: bytes
) -> None:
    await host.set(STORED)
    response = await host.exchange(text.replace(b"%s", setting("1", "one")))
    assert (response["id"], kind_of(response)) == (None, "parse")
    await assert_unharmed(host)


async def test_brackets_200_deep_and_numbers_at_the_edge_are_fine(host: SidekeepHost) -> None:
    deep: Any = 1
    for _ in range(197):  # the request, its params and its items are three levels more
        deep = [deep]
    items = {"deep": deep, "max": 1.7976931348623157e308, "long": int("1" + "0" * 300)}
    await host.set(items)
    found = await host.get()
    assert found["deep"] == deep
    assert found["max"] == items["max"]
    assert float(found["long"]) == 1e300


async def test_notifications_are_never_answered(host: SidekeepHost) -> None:
    await host.notify("host.ping")
    await host.notify("no.such.method", {"a": 1})
    await host.notify("storage.get", {"area": 5})
    await host.send_frame(b'[{"jsonrpc":"2.0","method":"host.ping"}]')
    await host.ping()
    # A response in ``unclaimed`` that nobody took fails the test when the host is closed.


async def test_mutation_sent_as_a_notification_takes_effect(host: SidekeepHost) -> None:
    await host.notify("storage.set", {"area": "local", "items": {"a": 1}})
    assert await host.get() == {"a": 1}


async def test_responses_from_the_extension_are_not_answered(host: SidekeepHost) -> None:
    response = await host.exchange(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert kind_of(response) == "invalidRequest"
    await host.ping()


@pytest.mark.parametrize("number", ['""', '"\\u0000"', "0", "-1", "9007199254740993", '"😀"'])
async def test_any_string_or_integer_is_an_id(host: SidekeepHost, number: str) -> None:
    response = await host.exchange(request("{}", "host.ping", number))
    assert response == {"jsonrpc": "2.0", "id": json.loads(number), "result": {}}


async def test_id_too_long_for_any_reply_is_refused(host: SidekeepHost) -> None:
    response = await host.exchange(request("{}", "host.ping", '"' + "x" * 2_000_000 + '"'))
    assert "error" in response
    await host.ping()


async def test_two_requests_with_one_id_get_two_responses(host: SidekeepHost) -> None:
    body = request("{}", "host.ping")
    await host.send_frame(b"[" + body + b"," + body + b"]")
    assert [(await host.unclaimed())["id"] for _ in range(2)] == ["r", "r"]


@pytest.mark.parametrize("length", [MAX_TO_HOST + 1, 0x7FFFFFFF, 0xFFFFFFFF, 1_819_043_176])
async def test_length_beyond_64_mib_is_answered_and_ends_with_exit_code_2(
    sandbox: Sandbox, length: int
) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.set(STORED)
    before = host.memory().anonymous
    async with host.sampled_peak(0.001) as peak:
        await host.send_bytes(struct.pack("=I", length))
        response = await host.unclaimed()
        exit = await host.wait()
    assert (response["id"], kind_of(response)) == (None, "tooLarge")
    assert exit.code == 2
    assert peak.anonymous - before < 2 << 20
    await host.close()
    async with sandbox.open() as again:
        await assert_unharmed(again)


async def test_body_of_exactly_64_mib_is_read_and_answered(host: SidekeepHost) -> None:
    await host.set(STORED)
    body = b'"' + b"x" * (MAX_TO_HOST - 2) + b'"'
    response = await host.exchange(body, timeout=60)
    assert kind_of(response) in {"invalidRequest", "parse"}
    await assert_unharmed(host)


async def test_memory_follows_what_has_arrived_and_not_what_was_announced(
    host: SidekeepHost,
) -> None:
    before = host.memory().anonymous
    await host.send_bytes(struct.pack("=I", 60 << 20))
    await asyncio.sleep(0.2)
    assert host.memory().anonymous - before < 2 << 20
    await host.send_bytes(b"[" * (1 << 20))
    await asyncio.sleep(0.2)
    assert host.memory().anonymous - before < 5 << 20
    host.kill()


async def test_memory_does_not_grow_with_the_number_of_big_bad_frames(host: SidekeepHost) -> None:
    bodies = (b"[" * 20_000_000, b'"' + b"x" * 20_000_000 + b'"', b"\xff" * 20_000_000)

    async def feed() -> int:
        for body in bodies:
            await host.exchange(body)
        await host.ping()
        return host.memory().anonymous

    first = await feed()
    await feed()
    assert await feed() - first < 8 << 20


def test_mutated_frames_never_harm_the_host(sandbox: Sandbox) -> None:
    """Feed frames with random damage to one host; it must answer a ping after each."""
    loop = asyncio.new_event_loop()
    host = loop.run_until_complete(sandbox.host().__aenter__())
    loop.run_until_complete(host.hello())
    loop.run_until_complete(host.set(STORED))
    seeds = [
        setting('"x"', "kept").replace(b"kept", b"other"),
        request('{"area":"local","keys":null}', "storage.get"),
        b"["
        + request("{}", "host.ping")
        + b","
        + request('{"area":"local"}', "storage.getKeys")
        + b"]",
        b'{"part":{"of":1,"i":0,"last":false,"holes":[["params","items","a"]]},"text":"{}"}',
        b'{"ack":{"of":1,"i":0}}',
    ]

    async def feed(body: bytes) -> None:
        await host.send_frame(body)
        await host.ping()
        found = await host.get(list(STORED))
        assert found == STORED
        host.check()
        host.take_unclaimed()

    fragments = st.sampled_from(
        [b"", b"\x00", b"\xff", b'"', b"{", b"]", b"NaN", b"1e999", b"\\ud800", b",", b"[" * 300]
    )

    @settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.sampled_from(seeds),
        st.lists(
            st.tuples(st.integers(0, 400), st.integers(0, 12), fragments | st.binary(max_size=9)),
            max_size=4,
        ),
    )
    def mutate(body: bytes, changes: list[tuple[int, int, bytes]]) -> None:
        for place, length, new in changes:
            start = place % (len(body) + 1)
            body = body[:start] + new + body[start + length :]
        # No damage to the protected keys: the mutation may spell a valid call by chance.
        if b"kept" not in body and b"number" not in body and b"storage.clear" not in body:
            loop.run_until_complete(feed(body))

    try:
        mutate()
    finally:
        loop.run_until_complete(host.close())
        loop.close()


async def test_frames_in_random_pieces_are_all_answered(
    host: SidekeepHost, dice: random.Random
) -> None:
    bodies = [
        dice.choice([setting(f'"{"é" * dice.randrange(50)}"', f"k{n}"), b"{", b"", b"[]", b"null"])
        for n in range(200)
    ]
    data = b"".join(encode_frame(body) for body in bodies)
    cuts = sorted(dice.randrange(len(data)) for _ in range(300))
    await host.send_split(data, cuts, delay=0)
    responses = [await host.unclaimed() for _ in bodies]
    fine = [body for body in bodies if body.startswith(b"{") and len(body) > 1]
    assert sum("result" in response for response in responses) == len(fine)
    assert len(await host.keys()) == len(fine)
