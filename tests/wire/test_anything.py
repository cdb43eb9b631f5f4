"""Whatever bytes come in, the channel answers strict JSON and serves the next call.

Inputs are made in three ways: arbitrary bytes, requests with some bytes changed, and parts with
some bytes changed, so that the search reaches behind the first check.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.errors import NotFoundError
from sidekeep.wire import rpc
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call
from tests.wire.caller import Port, frame, in_parts, request, strict, text_of

BITS = [
    b'"', b"\\", b"\\u", b"d83d", b"\\ud83d", b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"1e999",
    b"9" * 400, b"\xff", b"\xed\xa0\x80", b"\x00", b"\n", b" ", b"null", b"-", b"0", b"[" * 300,
    b'"id":1', b'"part":{"of":1,"i":0}', b'"ack":{"of":1,"i":0}', b'"s":"x"', b'"text":""',
]  # fmt: skip

SEEDS: list[bytes] = [
    text_of(request(1, "m", {"a": [1, 2.5, 'é\\"\n😀', None, {"b": {}}]}, op=4)),
    text_of(request("x", "echo", {})),
    text_of([request(1), request(2, "m", {"v": "]}"}), {"jsonrpc": "2.0", "method": "n"}]),
    text_of([{"ack": {"of": 1, "i": 0}}, request(3)]),
    *in_parts(
        request(4, "m", {"a": "xé" * 9, "b": ["y"]}), 1, [["params", "a"]], lambda s: [s[:9], s[9:]]
    ),
    *in_parts(request(5, "m", {"a": "xé" * 9}), 2, [], lambda s: [s]),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Return one of the seeds after some replacements, insertions and deletions."""
    body = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 6)))
        body = body[:start] + draw(st.sampled_from([*BITS, b""])) + body[end:]
    return body


bodies = st.one_of(
    st.binary(max_size=60), mutated(), st.lists(st.sampled_from(BITS), max_size=9).map(b"".join)
)


def quote(channel: Channel, call: Call) -> None:
    """Answer with everything that came in, as a result or in an error."""
    strict(call.params)
    for hole in call.holes:
        for piece in hole.pieces:
            strict(b'"' + piece + b'"')
    if call.op is None:
        channel.reply(call, call.params)
    else:
        channel.fail(call, NotFoundError(call.method, next=call.method, op=call.op))


def is_last(message: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == "the last one"


@given(st.lists(bodies, max_size=8), st.sampled_from([0, 2]))
@settings(max_examples=300, deadline=None)
def test_any_frames_are_survived(frames: list[bytes], window: int) -> None:
    port = Port()
    port.send(*frames, text_of(request("the last one")))
    port.close_input()
    messages = port.serve(quote, window=window)  # reads strictly
    assert sum(map(is_last, messages)) == 1
    for message in messages:
        assert message["jsonrpc"] == "2.0"
        assert ("result" in message) != ("error" in message)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
@settings(deadline=None)
def test_any_stream_is_survived(stream: bytes, cuts: list[int]) -> None:
    port = Port()
    port.send_bytes(stream)
    port.close_input()
    port.serve(quote)
    assert port.channel.exit_code in {0, 2}


@given(bodies)
@settings(max_examples=500, deadline=None)
def test_only_strict_json_is_passed_on(body: bytes) -> None:
    for element in rpc.read(body):
        if isinstance(element, Call):
            assert isinstance(strict(element.params), dict)
            if element.id is not None:
                assert isinstance(strict(element.id), (str, int, float, type(None)))
        elif isinstance(element, rpc.Refusal):
            strict(rpc.failure(element.id, element.error))


@given(st.lists(st.one_of(mutated(), st.sampled_from(SEEDS)), min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_sound_element_of_any_batch_is_served_or_the_batch_fails_as_a_whole(
    elements: list[bytes],
) -> None:
    sound = text_of(request("sound"))
    port = Port()
    port.send_bytes(frame(b"[%b,%b]" % (sound, b",".join(elements))))
    port.close_input()
    messages = port.serve(quote)
    served = [message for message in messages if message["id"] == "sound"]
    if len(served) != 1:
        assert [message["id"] for message in messages] == [None]
        assert messages[0]["error"]["data"]["kind"] == "parse"


@pytest.mark.parametrize("nested", [b"[", b'{"a":', b'[{"":['])
def test_deep_nesting_of_every_kind_is_survived(nested: bytes) -> None:
    port = Port()
    whole = b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b' % (nested * 50_000)
    port.send_beside(whole, b"[%b]" % whole, nested * 100_000, text_of(request("the last one")))
    messages = port.serve(quote)
    assert is_last(messages[-1])
    assert all(message["error"]["data"]["kind"] == "parse" for message in messages[:-1])
    assert messages[0]["id"] == 1
