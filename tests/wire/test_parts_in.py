"""Messages that arrive in parts: joined exactly, refused when a rule is broken, acknowledged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.wire import parts_in
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call
from tests.wire.caller import Path, Port, in_parts, outcomes, request, text_of

PING = text_of(request("after"))


class Host:
    """A handler that keeps the calls and answers them with ``{}``."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, channel: Channel, call: Call) -> None:
        self.calls.append(call)
        channel.reply(call, b"{}")


def talk(*bodies: bytes, window: int = 64) -> tuple[list[Call], Port]:
    """Send frames to a channel with granted parts; return the calls and the port."""
    port = Port()
    host = Host()
    port.send_beside(*bodies)
    port.serve(host, window=window)
    return host.calls, port


def whole(call: Call) -> Any:
    """Return the parameters of a call with its holes filled."""
    params = json.loads(call.params)
    for hole in call.holes:
        place = params
        for step in hole.path[:-1]:
            place = place[step]
        assert place[hole.path[-1]] == ""
        for piece in hole.pieces:
            json.loads(b'"' + piece + b'"').encode()  # each piece is sound by itself
        joined = b"".join(hole.pieces)
        assert len(joined) == hole.length
        place[hole.path[-1]] = json.loads(b'"' + joined + b'"')
    return params


def by(size: int) -> Callable[[str], list[str]]:
    """Return a function that cuts text every ``size`` characters."""
    return lambda text: [text[at : at + size] for at in range(0, len(text), size)] or [""]


TRICKY = [
    "",
    "x",
    "é",
    "中文",
    "😀",
    '"',
    "\\",
    "\n",
    "\x00",
    "\x1f",
    "\u2028",
    "<b>",
    "\\u0041",
    "/",
]
texts = st.lists(st.sampled_from(TRICKY), max_size=30).map("".join)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), texts, max_size=4
    ),
    st.lists(texts, max_size=3),
    st.integers(1, 7),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_any_message_in_any_pieces_arrives(
    members: dict[str, str], items: list[str], size: int, data: st.DataObject
) -> None:
    params = {"a": members, "b": [{"c": items}]}
    paths: list[Path] = [["params", "a", key] for key in members]
    paths += [["params", "b", 0, "c", at] for at in range(len(items))]
    holes = data.draw(st.lists(st.sampled_from(paths), unique_by=str)) if paths else []
    message = request(7, "m", params, op=3)
    calls, port = talk(*in_parts(message, 1, holes, by(size)), PING)
    assert outcomes(port.messages) == {7: "result", "after": "result"}
    call = calls[0]
    assert whole(call) == params
    assert (call.id, call.method, call.op, call.batch) == (b"7", "m", 3, False)
    assert [list(hole.path) for hole in call.holes] == [path[1:] for path in holes]


def test_big_message_arrives_and_its_parts_are_acknowledged() -> None:
    params = {"items": {"shot": 'é😀\\"\n<' * 300_000, "text": "x" * 70_000, "n": [1]}}
    holes: list[Path] = [["params", "items", "shot"], ["params", "items", "text"]]
    parts = list(in_parts(request(1, "m", params), 1, holes, by(40_000)))
    calls, port = talk(*parts)
    assert whole(calls[0]) == params
    places = port.acknowledgements
    assert places == sorted(set(places))
    assert places[-1] == (1, len(parts) - 1)


def test_escapes_stay_as_they_were_sent() -> None:
    head = b'{"part":{"of":1,"i":0,"last":true,"holes":[["params","a"]]},"text":"%b"}'
    text = rb"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":\"\"}}"
    calls, _ = talk(
        head % text,
        rb'{"part":{"of":1,"hole":0,"i":1,"last":false},"s":"\u003Cb\u003e\/"}',
        rb'{"part":{"of":1,"hole":0,"i":2,"last":true},"s":"\ud83d\ude00"}',
    )
    assert calls[0].holes[0].pieces == [rb"\u003Cb\u003e\/", rb"\ud83d\ude00"]
    assert calls[0].holes[0].length == 15 + 12


def test_members_of_parts_in_any_order_and_spacing_arrive() -> None:
    text = text_of(request(1, "m", {"a": ""})).decode()
    head = {"last": True, "later": 1, "holes": [["params", "a"]], "i": 0, "of": 3}
    calls, _ = talk(
        json.dumps({"text": text, "new": 1, "part": head}, indent=1).encode(),
        b' {"s": "x", "part": {"of": 3, "hole": 0, "i": 1, "last": true}}',
    )
    assert whole(calls[0]) == {"a": "x"}


def test_messages_may_be_interleaved_with_each_other_and_with_calls() -> None:
    first = list(in_parts(request(1, "m", {"a": "x" * 10}), 1, [["params", "a"]], by(4)))
    second = list(in_parts(request(2, "m", {"a": "y" * 10}), 2, [["params", "a"]], by(4)))
    mixed = [part for pair in zip(first, second, strict=True) for part in pair]
    mixed.insert(5, PING)
    calls, _ = talk(*mixed)
    assert [call.method for call in calls] == ["ping", "m", "m"]
    assert whole(calls[1]) == {"a": "x" * 10}
    assert whole(calls[2]) == {"a": "y" * 10}


def test_parts_and_calls_may_share_an_array() -> None:
    parts = list(in_parts(request(1, "m", {"a": "xyz"}), 1, [["params", "a"]], by(2)))
    calls, port = talk(b"[%b,%b]" % (b",".join(parts), PING))
    assert [call.batch for call in calls] == [False, True]
    assert outcomes(port.messages) == {1: "result", "after": "result"}


def test_message_without_holes_arrives() -> None:
    calls, _ = talk(*in_parts(request(1, "m", {"a": "x" * 50}), 1, [], by(7)))
    assert whole(calls[0]) == {"a": "x" * 50}
    assert calls[0].holes == ()


def part(text: bytes | None = None, s: bytes | None = None, **head: object) -> bytes:
    """Return a part with this head and these members, which are JSON texts."""
    body = b'{"part":' + text_of({"of": 1, "i": 0, "last": True, **head})
    if text is not None:
        body += b',"text":' + text
    if s is not None:
        body += b',"s":' + s
    return body + b"}"


def quoted(message: object) -> bytes:
    """Return the JSON text of a message as a JSON string."""
    return text_of(text_of(message).decode())


TEXT = quoted(request(1, "m", {"a": "", "b": ["", "x"], "c": ""}))
HOLE_A = [["params", "a"]]

NO_ID: dict[str, list[bytes]] = {
    "head without numbers": [part(TEXT, of="1")],
    "head that is a list": [b'{"part":[],"text":"x"}'],
    "number with a fraction": [part(TEXT, i=0.5)],
    "last that is a number": [part(TEXT, last=1)],
    "path with a fraction": [part(TEXT, holes=[["params", 1.5]])],
    "path that is text": [part(TEXT, holes=["params"])],
    "of zero": [part(TEXT, of=0)],
    "of below zero": [part(TEXT, of=-1)],
    "of beyond 2^53": [part(TEXT, of=2**53 + 1)],
    "first part is not part 0": [part(TEXT, i=1)],
    "first part is a hole": [part(s=b'"x"', hole=0)],
    "gap between text parts": [part(b'"{"', last=False), part(b'"}"', i=2)],
    "same part twice": [part(b'"{"', last=False), part(b'"}"', i=0)],
    "text part without text": [part()],
    "text part with a piece of a hole": [part(TEXT, s=b'"x"')],
    "text that is a number": [part(b"5")],
    "text that is null": [part(b"null")],
    "text that is not valid": [part(b'"\xff"')],
    "text with half a surrogate pair": [part(b'"\\ud83d"', last=False)],
    "text of more than a piece": [part(b'"' + b"x" * 262_145 + b'"', last=False)],
    "message that is no JSON": [part(b'"{"')],
    "message that is an array": [part(quoted([request(1)]))],
    "message that is an acknowledgement": [part(quoted({"ack": {"of": 1, "i": 0}}))],
    "message that is a part": [part(quoted({"part": {"of": 1}}))],
    "head with a key twice": [b'{"part":{"of":1,"of":1,"i":0,"last":true},"text":"{}"}'],
    "member twice": [b'{"part":{"of":1,"i":0,"last":true},"text":"{}","text":"{}"}'],
    "notification with a bad hole": [
        part(quoted({"jsonrpc": "2.0", "method": "m"}), holes=[["params"]])
    ],
}

WITH_ID: dict[str, list[bytes]] = {
    "message with a key twice": [
        part(text_of('{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}'))
    ],
    "message with params that are a list": [part(quoted(request(1, "m", [1])))],
    "path to nothing": [part(TEXT, holes=[["params", "z"]])],
    "path through text": [part(TEXT, holes=[["params", "a", "b"]])],
    "path to a list": [part(TEXT, holes=[["params", "b"]])],
    "path to text that is not empty": [part(TEXT, holes=[["params", "b", 1]])],
    "path with a key for a list": [part(TEXT, holes=[["params", "b", "0"]])],
    "path with an index for an object": [part(TEXT, holes=[["params", 0]])],
    "path with an index below zero": [part(TEXT, holes=[["params", "b", -2]])],
    "path beyond a list": [part(TEXT, holes=[["params", "b", 2]])],
    "path outside of params": [
        part(
            quoted(request("", "m", {})).replace(b'\\"id\\":\\"\\"', b'\\"id\\":1,\\"x\\":\\"\\"'),
            holes=[["x"]],
        )
    ],
    "empty path": [part(TEXT, holes=[[]])],
    "same path twice": [part(TEXT, holes=[["params", "a"], ["params", "a"]])],
    "text after the last text part": [part(TEXT, holes=HOLE_A), part(b'"x"', i=1)],
    "wrong hole": [part(TEXT, holes=HOLE_A), part(s=b'"x"', i=1, hole=1)],
    "hole below zero": [part(TEXT, holes=HOLE_A), part(s=b'"x"', i=1, hole=-1)],
    "gap between parts of a hole": [part(TEXT, holes=HOLE_A), part(s=b'"x"', i=2, hole=0)],
    "hole without a piece": [part(TEXT, holes=HOLE_A), part(i=1, hole=0)],
    "hole with text": [part(TEXT, holes=HOLE_A), part(b'"x"', b'"x"', i=1, hole=0)],
    "hole with more holes": [part(TEXT, holes=HOLE_A), part(s=b'"x"', i=1, hole=0, holes=[])],
    "piece that is a number": [part(TEXT, holes=HOLE_A), part(s=b"5", i=1, hole=0)],
    "piece that is null": [part(TEXT, holes=HOLE_A), part(s=b"null", i=1, hole=0)],
    "piece that is not UTF-8": [part(TEXT, holes=HOLE_A), part(s=b'"\xff"', i=1, hole=0)],
    "piece cut inside UTF-8": [
        part(TEXT, holes=HOLE_A),
        part(s=b'"\xc3"', i=1, hole=0, last=False),
    ],
    "piece of more than a piece": [
        part(TEXT, holes=HOLE_A),
        part(s=b'"' + b"\xc3\xa9" * 131_073 + b'"', i=1, hole=0),
    ],
}


@pytest.mark.parametrize("name", NO_ID)
def test_broken_rule_ends_a_message_whose_id_is_not_known(name: str) -> None:
    bodies = NO_ID[name]
    calls, port = talk(*bodies, PING)
    found = outcomes(port.messages)
    assert found.pop("after") == "result"
    assert set(found) == {None}
    assert set(found.values()) <= {"invalidRequest", "parse"}
    assert [call.method for call in calls] == ["ping"]


@pytest.mark.parametrize("name", WITH_ID)
def test_broken_rule_ends_a_message_under_its_id(name: str) -> None:
    bodies = WITH_ID[name]
    calls, port = talk(*bodies, PING)
    found = outcomes(port.messages)
    assert found.pop("after") == "result"
    assert set(found) == {1}
    assert found[1] in {"invalidRequest", "parse", "invalidParams"}
    assert [call.method for call in calls] == ["ping"]


@pytest.mark.parametrize("cut", [b'"\\u00"', b'"\\"', b'"\\ud83d\\u"', b'"\\ud83d"', b'"\n"'])
def test_piece_whose_frame_is_no_json_ends_its_message(cut: bytes) -> None:
    begun = part(TEXT, of=1, holes=HOLE_A)
    calls, port = talk(begun, part(s=cut, i=1, hole=0), part(s=b'"x"', i=2, hole=0), PING)
    assert outcomes(port.messages) == {1: "invalidRequest", "after": "result"}
    assert port.acknowledgements[-1] == (1, 2)
    assert [call.method for call in calls] == ["ping"]


def test_error_names_the_message_whose_id_is_not_known() -> None:
    _, port = talk(part(b'"{"', of=5))
    assert port.messages[0]["error"]["data"]["of"] == 5


def test_rest_of_an_ended_message_is_acknowledged_and_dropped() -> None:
    bodies = [
        part(TEXT, holes=HOLE_A),
        part(s=b'"x"', i=1, hole=5, last=False),
        part(s=b'"x"', i=2, hole=5, last=False),
        part(s=b'"x"', i=3, hole=5),
        PING,
    ]
    _, port = talk(*bodies)
    assert outcomes(port.messages) == {1: "invalidRequest", "after": "result"}
    assert port.acknowledgements[-1] == (1, 3)


def test_number_of_a_finished_message_cannot_be_used_again() -> None:
    message = list(in_parts(request(1, "m", {"a": "x"}), 2, [["params", "a"]], by(9)))
    earlier = list(in_parts(request(2, "m", {"a": "x"}), 1, [["params", "a"]], by(9)))
    calls, port = talk(*message, message[0], earlier[0], PING)
    assert [message["id"] for message in port.messages] == [1, None, None, "after"]
    assert [call.method for call in calls] == ["m", "ping"]


def test_unfinished_messages_are_limited() -> None:
    most = parts_in.MOST_UNFINISHED
    bodies = [part(b'"{"', of=of, last=False) for of in range(1, most + 2)]
    _, port = talk(*bodies, PING)
    assert outcomes(port.messages) == {None: "tooLarge", "after": "result"}
    assert port.messages[0]["error"]["data"]["of"] == most + 1


def test_bytes_of_a_message_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_in, "LARGEST_MESSAGE", 1000)
    fits = list(in_parts(request(1, "m", {"a": "x" * 900}), 1, [["params", "a"]], by(100)))
    beyond = list(in_parts(request(2, "m", {"a": "x" * 1000}), 2, [["params", "a"]], by(100)))
    text = list(in_parts(request(3, "m", {"a": "x" * 1000}), 3, [], by(100)))
    _, port = talk(*fits, *beyond, *text, PING)
    assert outcomes(port.messages) == {
        1: "result",
        2: "tooLarge",
        None: "tooLarge",
        "after": "result",
    }


def test_bytes_of_all_unfinished_messages_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_in, "LARGEST_TOTAL", 1000)
    begun = [part(b'"%b"' % (b" " * 400), of=of, last=False) for of in (1, 2, 3)]
    ended = part(quoted(request(1)), of=1, i=1)
    again = [part(b'"%b"' % (b" " * 400), of=4, last=False), part(quoted(request(4)), of=4, i=1)]
    _, port = talk(*begun, ended, *again)
    assert outcomes(port.messages) == {None: "tooLarge", 1: "result", 4: "result"}


def test_pieces_may_be_longer_by_the_escapes_of_a_browser() -> None:
    piece = b'"' + b"\\u003C" * 262_144 + b'"'
    calls, _ = talk(part(TEXT, holes=HOLE_A), part(s=piece, i=1, hole=0))
    assert whole(calls[0])["a"] == "<" * 262_144


def test_empty_pieces_are_allowed() -> None:
    calls, _ = talk(
        part(b'""', last=False),
        part(TEXT, i=1, last=False, holes=HOLE_A),
        part(b'""', i=2, holes=[["params", "c"]]),
        part(s=b'""', i=3, hole=0),
        part(s=b'"x"', i=4, hole=1, last=False),
        part(s=b'""', i=5, hole=1),
    )
    assert whole(calls[0]) == {"a": "", "b": ["", "x"], "c": "x"}
