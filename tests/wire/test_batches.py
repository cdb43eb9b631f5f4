"""Requests in an array: only the faulty ones fail, and the answers stay small enough."""

from __future__ import annotations

from typing import Any

import pytest

from sidekeep.wire import rpc
from sidekeep.wire.messages import Call
from tests.wire.caller import Port, converse, outcomes, request, text_of
from tests.wire.test_requests import WRONG
from tests.wire.test_strict import REFUSED

PING = text_of(request("after"))


def test_batch_is_handed_out_at_once_in_order() -> None:
    elements = rpc.read(text_of([request(n, "m", {"n": n}, op=n) for n in range(5)]))
    assert elements == [Call(b"%d" % n, "m", b'{"n":%d}' % n, n, (), True) for n in range(5)]


def test_two_thousand_calls_are_answered_in_one_array() -> None:
    port = Port()
    port.send_beside(text_of([request(n) for n in range(2000)]))
    assert outcomes(port.serve()) == dict.fromkeys(range(2000), "result")
    assert len(port.frames) == 1


def test_request_alone_is_answered_by_an_object_and_a_batch_of_one_by_an_array() -> None:
    port = Port()
    port.send(text_of(request(1)), text_of([request(2)]))
    port.close_input()
    port.serve()
    assert [body[:1] for body in port.frames] == [b"{", b"["]


@pytest.mark.parametrize("granted", [0, 4])
def test_arrays_of_answers_are_closed_at_256_kb(granted: int) -> None:
    port = Port()
    port.send_beside(text_of([request(n) for n in range(40)]))
    answer = b'{"v":"%b"}' % (b"x" * 60_000)

    def handle(channel: Any, call: Call) -> None:
        channel.reply(call, answer)

    assert outcomes(port.serve(handle, window=granted)) == dict.fromkeys(range(40), "result")
    assert all(len(body) <= 262_144 for body in port.frames)
    assert len(port.frames) == 10


@pytest.mark.parametrize("name", REFUSED)
def test_element_that_is_not_strict_json_fails_alone(name: str) -> None:
    faulty = b'{"jsonrpc":"2.0","id":2,"method":"m","params":{"v":%b}}' % REFUSED[name]
    body = b"[%b,%b,%b]" % (text_of(request(1)), faulty, text_of(request(3)))
    found = outcomes(converse(body, PING))
    if found.get(None) == "parse":
        # An element whose brackets or quotes are open cannot be told from what follows.
        assert name in {"no end", "100,000 brackets", "rest behind"}
        assert found == {None: "parse", "after": "result"}
    else:
        assert found == {1: "result", 2: "parse", 3: "result", "after": "result"}


@pytest.mark.parametrize("name", set(WRONG) - {"nothing", "space", "an open brace"})
def test_element_that_is_no_request_fails_alone(name: str) -> None:
    body, number, kind = WRONG[name]
    whole = b"[%b,%b,%b]" % (text_of(request("a")), body, text_of(request("b")))
    assert outcomes(converse(whole)) == {"a": "result", number: kind, "b": "result"}


def test_each_of_several_faulty_elements_is_answered() -> None:
    body = b'[1,,{"jsonrpc":"2.0","id":1,"method":"m"},{"jsonrpc":"2.0","id":2,"method":NaN},[]]'
    messages = converse(body)
    assert [(message["id"], "result" in message) for message in messages] == [
        (None, False),
        (None, False),
        (2, False),
        (None, False),
        (1, True),
    ]


def test_empty_array_is_one_invalid_request() -> None:
    for body in (b"[]", b"[ ]", b" [\n]"):
        port = Port()
        port.send(body)
        port.close_input()
        assert outcomes(port.serve()) == {None: "invalidRequest"}
        assert port.frames[0][:1] == b"{"


def test_batch_whose_elements_cannot_be_told_apart_fails_as_a_whole() -> None:
    body = b'[%b,{"jsonrpc":"2.0","id":2,"method":"m}]' % text_of(request(1))
    assert outcomes(converse(body, PING)) == {None: "parse", "after": "result"}


def test_depth_is_that_of_each_element() -> None:
    deep = b'{"jsonrpc":"2.0","id":%d,"method":"m","params":{"v":%b%b},"x":%b%b}'
    good = deep % (1, b"[" * 198, b"]" * 198, b"[" * 199, b"]" * 199)
    bad = deep % (2, b"[" * 199, b"]" * 199, b"", b"1")
    hidden = deep % (3, b"", b"1", b"[" * 200, b"]" * 200)
    body = b"[%b,%b,%b,%b]" % (good, bad, hidden, text_of(request(4)))
    assert outcomes(converse(body)) == {1: "result", 2: "parse", 3: "parse", 4: "result"}


def test_depth_is_counted_in_unknown_members_too() -> None:
    hidden = b'{"jsonrpc":"2.0","id":1,"method":"m","x":%b%b}'
    for inside, outcome in ((199, "result"), (200, "parse")):
        body = b"[%b,%b]" % (hidden % (b"[" * inside, b"]" * inside), text_of(request(2)))
        assert outcomes(converse(body)) == {1: outcome, 2: "result"}


def test_many_elements_are_not_deep() -> None:
    calls = [request(n, "m", {"v": [[[n]]]}) for n in range(500)]
    assert outcomes(converse(text_of(calls))) == dict.fromkeys(range(500), "result")


@pytest.mark.parametrize("element", [b"1", b'{"jsonrpc":"2.0","method":"m"}'])
def test_more_elements_than_allowed_are_refused_together(element: bytes) -> None:
    body = b"[%b]" % b",".join([element] * (rpc.MOST_ELEMENTS + 1))
    assert outcomes(converse(body, PING)) == {None: "tooLarge", "after": "result"}


def test_notifications_in_a_batch_are_not_answered() -> None:
    body = text_of([{"jsonrpc": "2.0", "method": "note"}, request(1)])
    assert outcomes(converse(body)) == {1: "result"}
    assert converse(text_of([{"jsonrpc": "2.0", "method": "note"}])) == []


def test_acknowledgements_may_stand_among_requests() -> None:
    body = text_of([{"ack": {"of": 9, "i": 1}}, request(1), {"ack": {"i": 0, "of": 9}}])
    assert outcomes(converse(body)) == {1: "result"}
