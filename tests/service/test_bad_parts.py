"""Parts and acknowledgements that break the rules end their message and nothing else."""

from __future__ import annotations

import json
from typing import Any

from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost, error_codes


def setting(value: str, key: str) -> bytes:
    """Return the text of a storage.set with the value put in as it is."""
    head = b'{"jsonrpc":"2.0","id":"r","method":"storage.set","params":{"area":"local","items":{'
    return head + f'"{key}":{value}'.encode() + b"}}}"


def kind_of(response: dict[str, Any]) -> str:
    """Return the kind of an error response, after checking its code against the table."""
    error = response["error"]
    kind = error["data"]["kind"]
    assert error["code"] == error_codes()[kind]
    return str(kind)


async def test_bad_parts_are_refused_and_calls_go_on(host: SidekeepHost) -> None:
    part = {"of": 1, "i": 0, "last": True}
    hole = {"of": 1, "hole": 0, "i": 1, "last": True}
    start: dict[str, Any] = {"part": {**part, "holes": [["params", "items", "a"]]}}
    start["text"] = setting('""', "a").decode()
    sequences: tuple[list[dict[str, Any]], ...] = (
        [{"part": {**part, "i": 1}, "text": "{}"}],
        [{"part": {**part, "of": 0}, "text": "{}"}],
        [{"part": {**part, "of": "x"}, "text": "{}"}],
        [{"part": {**part, "last": 1}, "text": "{}"}],
        [{"part": part}],
        [{"part": part, "text": 5}],
        [{"part": part, "s": "{}"}],
        [{"part": hole, "s": "x"}],
        [{"part": part, "text": "{"}],
        [{"part": part, "text": '{"a":NaN}'}],
        [
            {"part": {**part, "holes": [["nowhere"]]}, "text": start["text"]},
            {"part": hole, "s": "x"},
        ],
        [{"part": {**part, "holes": [[]]}, "text": start["text"]}, {"part": hole, "s": "x"}],
        [{"part": {**part, "holes": 5}, "text": start["text"]}],
        [{"part": {**part, "holes": [["id"]]}, "text": start["text"]}, {"part": hole, "s": "x"}],
        [start, {"part": {**hole, "hole": 1}, "s": "x"}],
        [start, {"part": {**hole, "i": 2}, "s": "x"}],
        [start, {"part": hole, "text": "x"}],
        [start, {"part": hole, "s": 5}],
    )
    for number, bad in enumerate(sequences, 1):
        for frame in bad:
            numbered = json.loads(json.dumps(frame))
            if numbered["part"]["of"] == 1:
                numbered["part"]["of"] = number
            await host.send_frame(json.dumps(numbered).encode())
        response = await host.unclaimed()
        assert "error" in response, (bad, response)
        await host.ping()
    assert await host.get() == {}


async def test_half_a_pair_in_a_part_is_refused(host: SidekeepHost) -> None:
    text = setting('""', "a").decode()
    head = {"of": 1, "i": 0, "last": True, "holes": [["params", "items", "a"]]}
    await host.send_frame(json.dumps({"part": head, "text": text}).encode())
    await host.send_frame(b'{"part":{"of":1,"hole":0,"i":1,"last":true},"s":"\\ud83d"}')
    response = await host.unclaimed()
    assert response["id"] in {None, "r"}
    assert "error" in response
    assert await host.get() == {}


async def test_unfinished_messages_do_not_pile_up_without_limit(host: SidekeepHost) -> None:
    """Only what has arrived is held, and other calls are answered meanwhile."""
    before = host.memory().anonymous
    for number in range(1, 200):
        part = {"part": {"of": number, "i": 0, "last": False}, "text": "{"}
        await host.send_frame(json.dumps(part).encode())
    await host.ping()
    assert host.memory().anonymous - before < 4 << 20
    assert {kind_of(response) for response in host.take_unclaimed()} <= {"tooLarge"}
    results = await host.batch([Call("host.ping", {}), Call("storage.getKeys", {"area": "local"})])
    assert results == [{}, {"keys": []}]


async def test_parts_without_an_agreement_are_refused(sandbox: Sandbox) -> None:
    async with sandbox.open(parts=None) as host:
        body = b'{"part":{"of":1,"i":0,"last":true},"text":"{}"}'
        response = await host.exchange(body)
        assert "error" in response
        await host.ping()


async def test_acknowledgement_of_nothing_is_ignored(host: SidekeepHost) -> None:
    for ack in (b'{"ack":{"of":99,"i":5}}', b'[{"ack":{"of":1,"i":0}},{"ack":{"of":2,"i":9}}]'):
        await host.send_frame(ack)
    await host.ping()


async def test_malformed_acknowledgement_does_no_harm(host: SidekeepHost) -> None:
    for ack in (b'{"ack":5}', b'{"ack":{"of":"x"}}', b'{"ack":{"of":1,"i":-1}}', b'{"ack":null}'):
        await host.send_frame(ack)
        await host.ping()
    for response in host.take_unclaimed():
        assert kind_of(response) in {"invalidRequest", "parse", "invalidParams"}
