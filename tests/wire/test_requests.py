"""A request alone in its frame: what is passed on, and how each fault is answered."""

from __future__ import annotations

from typing import Any

import pytest

from sidekeep.errors import ForbiddenError
from sidekeep.wire import rpc
from sidekeep.wire.messages import Call
from tests.wire.caller import Port, converse, frame, outcomes, request, text_of
from tests.wire.test_strict import REFUSED

PING = text_of(request("after"))


def only(body: bytes) -> Any:
    """Return what the one element of a frame is."""
    (element,) = rpc.read(body)
    return element


def test_request_is_passed_on_as_it_stands() -> None:
    body = b'{"id":5,"jsonrpc":"2.0","method":"m","op":9,"params":{"a":[1,2.50,"\xc3\xa9"]}}'
    assert only(body) == Call(b"5", "m", b'{"a":[1,2.50,"\xc3\xa9"]}', 9, (), False)


def test_space_around_changes_nothing() -> None:
    body = b' \n{ "jsonrpc" : "2.0" , "method" : "m" , "params" : { "a" : 1 } }\t'
    assert only(body) == Call(None, "m", b'{ "a" : 1 }')


def test_absent_params_are_an_empty_object() -> None:
    assert only(text_of(request(1))).params == b"{}"


def test_unknown_members_are_ignored() -> None:
    body = text_of(request(1, later={"a": [1]}, part={"of": 1}, ack=3, s="x", text=1))
    assert only(body) == Call(b"1", "ping", b"{}")


@pytest.mark.parametrize("number", [0, 5, -1, 1.5, "a", "", "é\n😀", 2**60, None])
def test_id_comes_back_as_it_was(number: object) -> None:
    messages = converse(text_of(request(number)))
    assert messages == [{"jsonrpc": "2.0", "id": number, "result": {}}]


@pytest.mark.parametrize("text", [b"1.0", b"1e3", b'"\\u0061"', b"12345678901234567890123"])
def test_id_comes_back_in_the_same_writing(text: bytes) -> None:
    port = Port()
    port.send(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % text)
    port.close_input()
    port.serve()
    assert b'"id":%b,' % text in port.frames[0]


def test_notification_is_handed_out_and_not_answered() -> None:
    seen = []

    def handle(channel: Any, call: Call) -> None:
        seen.append(call.method)
        channel.reply(call, b"{}")

    assert converse(b'{"jsonrpc":"2.0","method":"note"}', handle=handle) == []
    assert seen == ["note"]


@pytest.mark.parametrize("operation", [0, 1, 2**53])
def test_operation_number_is_passed_on(operation: int) -> None:
    assert only(text_of(request(1, op=operation))).op == operation


WRONG: dict[str, tuple[bytes, object, str]] = {
    "operation below zero": (text_of(request(1, op=-1)), 1, "invalidRequest"),
    "operation beyond 2^53": (text_of(request(1, op=2**53 + 1)), 1, "invalidRequest"),
    "operation of 100 digits": (text_of(request(1, op=10**100)), 1, "invalidRequest"),
    "operation that is text": (text_of(request(1, op="1")), 1, "invalidRequest"),
    "operation that is null": (text_of(request(1, op=None)), 1, "invalidRequest"),
    "operation that is true": (text_of(request(1, op=True)), 1, "invalidRequest"),
    "operation with a fraction": (text_of(request(1, op=1.5)), 1, "invalidRequest"),
    "params in an array": (text_of(request(1, "m", [1])), 1, "invalidParams"),
    "params that are text": (text_of(request(1, "m", "x")), 1, "invalidParams"),
    "params that are null": (
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}',
        1,
        "invalidParams",
    ),
    "no method": (b'{"jsonrpc":"2.0","id":1}', 1, "invalidRequest"),
    "method that is a number": (text_of(request(1, 5)), 1, "invalidRequest"),  # type: ignore[arg-type]
    "method that is null": (b'{"jsonrpc":"2.0","id":1,"method":null}', 1, "invalidRequest"),
    "no version": (b'{"id":1,"method":"m"}', 1, "invalidRequest"),
    "version 1": (b'{"jsonrpc":"1.0","id":1,"method":"m"}', 1, "invalidRequest"),
    "version as a number": (b'{"jsonrpc":2.0,"id":1,"method":"m"}', 1, "invalidRequest"),
    "id that is true": (text_of(request(True)), None, "invalidRequest"),
    "id that is an array": (text_of(request([1])), None, "invalidRequest"),
    "id that is an object": (text_of(request({})), None, "invalidRequest"),
    "id of 2 KB": (text_of(request("x" * 2000)), None, "invalidRequest"),
    "a response": (b'{"jsonrpc":"2.0","id":1,"result":{}}', 1, "invalidRequest"),
    "a number": (b"5", None, "invalidRequest"),
    "a string": (b'"x"', None, "invalidRequest"),
    "null": (b"null", None, "invalidRequest"),
    "an object of something else": (b'{"op":7}', None, "invalidRequest"),
    "an empty object": (b"{}", None, "invalidRequest"),
    "nothing": (b"", None, "parse"),
    "space": (b" \n", None, "parse"),
    "half a word": (b"nul", None, "parse"),
    "an open brace": (b"{", None, "parse"),
    "two bytes that are no UTF-8": (b"\xff\xfe", None, "parse"),
    "a part before parts were granted": (
        b'{"part":{"of":1,"i":0,"last":true},"text":"{}"}',
        None,
        "invalidRequest",
    ),
    "an acknowledgement without numbers": (b'{"ack":5}', None, "invalidRequest"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_request_is_answered_and_the_next_one_served(name: str) -> None:
    body, number, kind = WRONG[name]
    assert outcomes(converse(body, PING)) == {number: kind, "after": "result"}


@pytest.mark.parametrize("name", REFUSED)
def test_params_that_are_not_strict_json_fail_under_their_id(name: str) -> None:
    body = b'{"jsonrpc":"2.0","id":8,"method":"m","params":{"v":%b}}' % REFUSED[name]
    assert outcomes(converse(body, PING)) == {8: "parse", "after": "result"}


@pytest.mark.parametrize("name", REFUSED)
def test_frame_that_is_not_strict_json_fails(name: str) -> None:
    *errors, last = converse(REFUSED[name], PING)
    kinds = {error["error"]["data"]["kind"] for error in errors}
    # An array is a batch: what is strict in it is still no request.
    assert kinds <= ({"parse", "invalidRequest"} if REFUSED[name][:1] == b"[" else {"parse"})
    assert kinds
    assert last == {"jsonrpc": "2.0", "id": "after", "result": {}}


def test_depth_counts_from_the_brace_of_the_request() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"v":%b%b}}'
    for inside, outcome in ((198, "result"), (199, "parse")):
        body = deep % (b"[" * inside, b"]" * inside)
        assert outcomes(converse(body)) == {1: outcome}


def test_method_of_a_megabyte_is_passed_on_and_can_be_quoted() -> None:
    from sidekeep.errors import MethodNotFound

    def handle(channel: Any, call: Call) -> None:
        channel.fail(call, MethodNotFound(f"There is no method {call.method}."))

    (message,) = converse(text_of(request(1, "m" * 1_000_000)), handle=handle)
    assert message["error"]["code"] == -32601
    assert len(message["error"]["message"]) <= 500


def test_acknowledgement_of_nothing_is_ignored() -> None:
    assert converse(b'{"ack":{"of":1,"i":0}}', b'{"ack":{"of":-1,"i":-5}}', b"[]", PING) == [
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": {
                "code": -32600,
                "message": "An empty array asks for nothing.",
                "data": {"kind": "invalidRequest"},
            },
        },
        {"jsonrpc": "2.0", "id": "after", "result": {}},
    ]


@pytest.mark.parametrize("extra", [b"\xed\xa0\x80", b"\\ud800"])
def test_error_that_quotes_anything_is_strict_json(extra: bytes) -> None:
    from sidekeep.errors import NotFoundError

    def handle(channel: Any, call: Call) -> None:
        error = NotFoundError("half \ud800", next="\udfff", half="\ud800", what=object())
        channel.fail(call, error)
        channel.fail(call, NotFoundError("big", rest="x" * 2_000_000))
        channel.fail(call, NotFoundError("no double", number=10**400, set={1}))
        channel.fail(call, NotFoundError("well", expected=7, next="look"))

    first, second, third, fourth = converse(text_of(request(1)), handle=handle)
    assert first["error"]["data"] == {"kind": "notFound", "next": "?"}
    assert second["error"]["data"] == {"kind": "notFound"}
    assert third["error"]["data"] == {"kind": "notFound"}
    assert fourth["error"] == {
        "code": -32003,
        "message": "well",
        "data": {"kind": "notFound", "next": "look", "expected": 7},
    }


def test_forbidden_caller_gets_that_answer_to_everything() -> None:
    port = Port()
    port.channel.forbid = ForbiddenError("Not this extension.", next="install")
    bodies = [
        text_of(request(1)),
        text_of([request(2), 5, {"jsonrpc": "2.0", "method": "note"}]),
        b'{"jsonrpc":"2.0","id":3,"method":"m","params":NaN}',
        b'{"part":{"of":1,"i":0,"last":true},"text":"{}"}',
    ]
    port.send_bytes(b"".join(map(frame, bodies)))
    port.close_input()
    seen: list[Call] = []
    messages = port.serve(lambda _, call: seen.append(call))
    assert seen == []
    assert [(message["id"], message["error"]["data"]["kind"]) for message in messages] == [
        (1, "forbidden"),
        (2, "forbidden"),
        (None, "forbidden"),
        (3, "forbidden"),
        (None, "forbidden"),
    ]
