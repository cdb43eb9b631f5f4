"""Messages that leave in parts: cut by the rules, within the window, let go exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.errors import DamagedError, TooLargeError
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Cut, Pieces
from tests.wire.caller import LARGEST_FRAME, Port, Text, outcomes, request, text_of

BIG = 'é😀\\"\n\x00' * 100_000


class Counter:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class Replies:
    """A handler that answers each method with the pieces given for it, and counts releases."""

    def __init__(self, **pieces: Pieces) -> None:
        self.pieces = pieces
        self.releases = {name: Counter() for name in pieces}

    def __call__(self, channel: Channel, call: Call) -> None:
        if call.method in self.pieces:
            channel.reply(call, self.pieces[call.method], self.releases[call.method])
        else:
            channel.reply(call, b"{}")


def pieces_of(value: Any, path: tuple[str | int, ...] = ("result",), step: int = 50_000) -> Pieces:
    """Return ``value`` as pieces in which every string of 20 characters or more is a cut."""
    if isinstance(value, str) and len(value) >= 20:
        return [b'"', Text(path, value, step), b'"']
    if isinstance(value, dict):
        pieces: Pieces = [b"{"]
        for key, item in value.items():
            pieces += [b"," if len(pieces) > 1 else b"", text_of(key), b":"]
            pieces += pieces_of(item, (*path, key), step)
        return [*pieces, b"}"]
    if isinstance(value, list):
        pieces = [b"["]
        for index, item in enumerate(value):
            pieces += [b"," if len(pieces) > 1 else b""]
            pieces += pieces_of(item, (*path, index), step)
        return [*pieces, b"]"]
    return [text_of(value)]


def close_after(port: Port, count: int) -> None:
    """End the input when so many messages have arrived."""

    def look(_: Any) -> None:
        if len(port.messages) == count:
            port.close_input()

    port.on_message = look


def ask(replies: Replies, *methods: str, window: int = 4) -> Port:
    """Send one request per method and serve until all are answered."""
    port = Port()
    close_after(port, len(methods))
    port.send(*(text_of(request(method, method)) for method in methods))
    port.serve(replies, window=window)
    return port


def test_strings_above_64_kb_travel_as_holes_and_others_in_the_text() -> None:
    value = {"items": {"big": BIG, "list": [1, "x" * 65_537, "y" * 65_536], "small": "z" * 100}}
    replies = Replies(get=pieces_of(value))
    port = ask(replies, "get")
    assert port.messages == [{"jsonrpc": "2.0", "id": "get", "result": value}]
    assert replies.releases["get"].count == 1
    paths = [path for body in port.frames if b'"holes"' in body for path in _holes(body)]
    assert paths == [["result", "items", "big"], ["result", "items", "list", 1]]


def _holes(body: bytes) -> list[Any]:
    import json

    holes = json.loads(body)["part"]["holes"]
    assert isinstance(holes, list)
    return holes


texts = st.lists(
    st.sampled_from(["x", "é", "中", "😀", '"', "\\", "\n", "\x00", "/", "a" * 3000]), max_size=60
).map("".join)
values = st.recursive(
    st.one_of(st.integers(), texts), lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)


@given(values, st.integers(1, 3), st.integers(1, 4000))
@settings(max_examples=40, deadline=None)
def test_any_message_is_joined_to_what_it_was(value: Any, window: int, step: int) -> None:
    import sidekeep.wire.parts_out as parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sidekeep.wire.outbox.SMALL_BYTES", 200)
        patch.setattr("sidekeep.wire.outbox._SURELY_SMALL", 0)
        for name, size in (("INLINE_BYTES", 50), ("PIECE_BYTES", 60), ("_TEXT_BYTES", 40)):
            patch.setattr(parts, name, size)
        patch.setattr(parts, "_PATHS_BYTES", 100)
        replies = Replies(get=pieces_of(value, step=step))
        port = ask(replies, "get", window=window)
    assert port.messages == [{"jsonrpc": "2.0", "id": "get", "result": value}]
    assert replies.releases["get"].count == 1
    assert port.most_unacknowledged <= window


def test_message_of_256_kb_is_one_frame_and_the_next_longer_one_is_not() -> None:
    around = len(b'{"jsonrpc":"2.0","id":"get","result":""}')
    for size, frames in ((262_144, 1), (262_145, 4)):
        cut = Text(("result",), "x" * (size - around))
        port = ask(Replies(get=[b'"', cut, b'"']), "get")
        assert len(port.frames) == (1 if frames == 1 else len(port.frames))
        assert (b'"part"' in port.frames[0][:8]) == (frames > 1)


def test_text_without_cuts_travels_in_parts_too() -> None:
    text = text_of([{"n": n, "é": '"\\'} for n in range(100_000)])
    replies = Replies(get=[text[:1_000_000], text[1_000_000:]])
    port = ask(replies, "get")
    assert text_of(port.messages[0]["result"]) == text
    assert replies.releases["get"].count == 1
    assert max(map(len, port.frames)) < LARGEST_FRAME


def test_path_of_a_megabyte_stays_in_the_text() -> None:
    value = {"k" * 1_000_000: "x" * 100_000}
    port = ask(Replies(get=pieces_of(value)), "get")
    assert port.messages[0]["result"] == value


def test_pieces_that_are_too_long_are_cut() -> None:
    value = "😀\n" * 300_000
    port = ask(Replies(get=pieces_of(value, step=10**9)), "get")
    assert port.messages[0]["result"] == value


@pytest.mark.parametrize("window", [1, 2, 64])
def test_window_is_respected_over_all_messages(window: int) -> None:
    replies = Replies(a=pieces_of("a" * 2_000_000), b=pieces_of("b" * 2_000_000))
    port = ask(replies, "a", "b", window=window)
    assert {message["id"] for message in port.messages} == {"a", "b"}
    assert port.most_unacknowledged <= window


def test_nothing_is_sent_beyond_the_window_until_it_is_acknowledged() -> None:
    port = Port(acknowledging=False)
    close_after(port, 2)
    port.send(text_of(request("big", "big")), text_of(request("small")))
    replies = Replies(big=pieces_of("x" * 3_000_000))
    seen: list[tuple[int, float]] = []

    def handle(channel: Channel, call: Call) -> None:
        replies(channel, call)
        channel.flush()
        seen.append((replies.releases["big"].count, channel.oldest_stream_age))

    port.channel.grant_parts(3)
    channel = port.channel
    quiet = 0
    while quiet < 3:
        calls = channel.receive(0.05)
        quiet = quiet + 1 if not calls else 0
        for call in calls or ():
            handle(channel, call)
        channel.flush()
    assert [message["id"] for message in port.messages] == ["small"]
    assert channel.streaming
    assert port.unacknowledged == 3
    assert channel.oldest_stream_age > 0
    assert replies.releases["big"].count == 0
    port.acknowledging = True
    port.acknowledge(1, 0)
    port.acknowledge(1, 2)
    port.serve(handle)
    assert [message["id"] for message in port.messages] == ["small", "big"]
    assert not channel.streaming
    assert channel.oldest_stream_age == 0.0
    assert replies.releases["big"].count == 1


def test_small_replies_pass_between_the_parts_of_big_ones() -> None:
    port = Port()
    close_after(port, 11)

    def on_part(value: Any) -> None:
        if value["part"]["i"] in range(1, 11):
            port.send(text_of(request(value["part"]["i"])))

    port.on_part = on_part
    port.send(text_of(request("big", "big")))
    port.serve(Replies(big=pieces_of("x" * 8_000_000)), window=1)
    found = [message["id"] for message in port.messages]
    assert found[-1] == "big"
    assert sorted(found[:-1]) == list(range(1, 11))


def test_acknowledgement_covers_all_earlier_parts_and_others_are_ignored() -> None:
    port = Port(acknowledging=False)
    close_after(port, 1)

    def on_part(value: Any) -> None:
        i = value["part"]["i"]
        if i % 4 == 3:
            nonsense = [{"of": 1, "i": at} for at in (i + 1, i - 4, -1)] + [{"of": 2, "i": 0}]
            answers = [{"ack": place} for place in [*nonsense, {"of": 1, "i": i}, *nonsense]]
            port.unacknowledged -= 4
            port.send(text_of(answers))

    port.on_part = on_part
    port.send(text_of(request("big", "big")))
    port.serve(Replies(big=pieces_of("x" * 4_000_000)), window=4)
    assert port.most_unacknowledged == 4
    assert port.messages[0]["result"] == "x" * 4_000_000


def test_materialised_replies_arrive_and_are_let_go_once() -> None:
    port = Port()
    close_after(port, 2)
    cut = Text(("result",), BIG)
    replies = Replies(big=[b'"', cut, b'"'], other=pieces_of([BIG, BIG]))

    def handle(channel: Channel, call: Call) -> None:
        replies(channel, call)
        if call.method == "other":
            channel.flush()
            assert channel.streaming
            channel.materialise()
            assert not channel.streaming
            assert replies.releases["big"].count == 1
            assert replies.releases["other"].count == 1
            channel.materialise()

    port.send(text_of(request("big", "big")), text_of(request("other", "other")))
    port.serve(handle, window=2)
    results = {message["id"]: message["result"] for message in port.messages}
    assert results == {"big": BIG, "other": [BIG, BIG]}
    assert [release.count for release in replies.releases.values()] == [1, 1]
    assert cut.read_pieces == len(cut.pieces)


def test_reply_that_is_small_in_parts_is_let_go_at_once() -> None:
    replies = Replies(get=pieces_of(["x" * 1000, "y" * 30]))
    port = ask(replies, "get")
    assert port.messages[0]["result"] == ["x" * 1000, "y" * 30]
    assert replies.releases["get"].count == 1


def test_reply_to_a_notification_is_let_go_and_not_sent() -> None:
    replies = Replies(note=pieces_of(BIG))
    port = Port()
    port.send(text_of({"jsonrpc": "2.0", "method": "note"}))
    port.close_input()
    assert port.serve(replies, window=1) == []
    assert replies.releases["note"].count == 1


def test_unsent_replies_are_let_go_when_the_reader_is_gone() -> None:
    import os

    replies = Replies(big=pieces_of("x" * 3_000_000), small=pieces_of("y" * 100))
    host_in, write_end = os.pipe()
    read_end, host_out = os.pipe()
    channel = Channel(host_in, host_out)
    channel.finished()
    channel.grant_parts(64)
    os.close(read_end)
    with os.fdopen(write_end, "wb", buffering=0) as stream:
        from tests.wire.caller import frame

        stream.write(frame(text_of(request(1, "big"))) + frame(text_of([request(2, "small")])))
        stream.write(frame(text_of(request(3, "big"))))
    handled = 0
    while (calls := channel.receive()) is not None:
        for call in calls:
            handled += 1
            if call.id == b"3":
                replies.releases["big"].count -= 1
            replies(channel, call)
        channel.flush()
    assert handled == 3
    assert [release.count for release in replies.releases.values()] == [1, 1]
    os.close(host_in)
    os.close(host_out)


class Broken(Cut):
    """A cut whose reading fails after some pieces."""

    def __init__(self, length: int, pieces: list[bytes], error: Exception | None = None) -> None:
        super().__init__(("result",), length)
        self.pieces = pieces
        self.error = error

    def read(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("length", [1000, 60_000, 600_000])
def test_cut_that_cannot_be_read_fails_its_request_alone(length: int) -> None:
    error = DamagedError("The record is damaged.", next="restore")
    cut = Broken(length, [b"x" * (length // 2)], error)
    pieces: Pieces = [b'["', cut, b'","', b"z" * 300_000, b'"]']
    replies = Replies(big=pieces, good=pieces_of("y" * 1_000_000))
    port = ask(replies, "big", "good", "small", window=2)
    assert outcomes(port.messages) == {"big": "damaged", "good": "result", "small": "result"}
    assert [release.count for release in replies.releases.values()] == [1, 1]
    data = next(message for message in port.messages if message["id"] == "big")["error"]["data"]
    assert data.get("of") == 1


@pytest.mark.parametrize("pieces", [[b"x" * 500_000], [b"x" * 500_000, b"x" * 200_000], []])
def test_cut_of_another_length_than_announced_is_an_internal_error(pieces: list[bytes]) -> None:
    replies = Replies(big=[b'"', Broken(600_000, pieces), b'"'])
    port = ask(replies, "big", "small")
    assert outcomes(port.messages) == {"big": "internal", "small": "result"}
    assert replies.releases["big"].count == 1


def test_fault_of_the_host_while_reading_is_answered_and_raised() -> None:
    replies = Replies(big=[b'"', Broken(600_000, [], ZeroDivisionError()), b'"'])
    port = Port()
    port.send(text_of(request("big", "big")))
    with pytest.raises(ZeroDivisionError):
        port.serve(replies, window=4)
    assert replies.releases["big"].count == 1


def test_cut_that_cannot_be_materialised_fails_its_request() -> None:
    port = Port()
    close_after(port, 1)
    replies = Replies(big=[b'"', Broken(600_000, [], DamagedError("damaged")), b'"'])

    def handle(channel: Channel, call: Call) -> None:
        replies(channel, call)
        channel.materialise()

    port.send(text_of(request("big", "big")))
    port.serve(handle, window=1)
    assert outcomes(port.messages) == {"big": "damaged"}
    assert replies.releases["big"].count == 1


@pytest.mark.parametrize(("size", "batch"), [(1_048_576, False), (1_048_574, True)])
def test_without_parts_a_reply_goes_up_to_one_mebibyte(size: int, batch: bool) -> None:
    around = len(b'{"jsonrpc":"2.0","id":1,"result":""}')
    for more, outcome in ((0, "result"), (1, "tooLarge")):
        port = Port()
        port.send(text_of([request(1)] if batch else request(1)))
        port.close_input()
        counter = Counter()
        pieces: Pieces = [b'"', Text(("result",), "x" * (size + more - around)), b'"']
        port.serve(lambda channel, call, p=pieces, c=counter: channel.reply(call, p, c))  # type: ignore[misc]
        assert outcomes(port.messages) == {1: outcome}
        assert counter.count == 1
        if more:
            assert port.messages[0]["error"]["data"]["next"]
        else:
            assert len(port.frames[0]) == 1_048_576


def test_nothing_overtakes_a_notification_in_parts() -> None:
    port = Port()
    close_after(port, 7)

    def handle(channel: Channel, call: Call) -> None:
        if call.method == "start":
            channel.reply(call, pieces_of("r" * 1_000_000))
            channel.notify("before", b"{}")
            channel.notify("big", [b'{"v":"', Text(("params", "v"), "x" * 2_000_000), b'"}'])
            channel.notify("behind", b"{}")
        elif call.method == "late":
            channel.reply(call, pieces_of("s" * 300_000))
        else:
            channel.reply(call, b"{}")

    port.send(
        text_of(request(1, "start")),
        text_of([request(2)]),
        text_of(request(3, "late")),
        text_of(request(4)),
    )
    port.serve(handle, window=2)
    names = [message.get("method") or message["id"] for message in port.messages]
    order = [name for name in names if name not in {1, "before", 3}]
    assert order == ["big", "behind", 2, 4]
    assert names.index("before") < names.index("big") < names.index(3)
    assert names[0] == "before"


def test_notification_that_cannot_be_carried_is_refused_to_the_one_who_gives_it() -> None:
    port = Port()
    with pytest.raises(TooLargeError):
        port.channel.notify("n", [b'{"v":"', Text(("params", "v"), "x" * 2_000_000), b'"}'])
    port.channel.notify('é"', b'{"a":1}')
    port.close_input()
    assert port.serve() == [{"jsonrpc": "2.0", "method": 'é"', "params": {"a": 1}}]


def test_big_and_small_answers_of_a_batch_all_arrive() -> None:
    port = Port()
    close_after(port, 4)
    replies = Replies(big=pieces_of("x" * 1_000_000), other=pieces_of(["y" * 400_000]))
    port.send(text_of([request(1), request(2, "big"), request(3), request(4, "other")]))
    port.serve(replies, window=8)
    assert outcomes(port.messages) == dict.fromkeys((1, 2, 3, 4), "result")
    assert port.frames[0][:1] == b"["


def test_small_reply_passes_though_the_window_is_open() -> None:
    port = Port()
    close_after(port, 2)

    def on_part(value: Any) -> None:
        if value["part"]["i"] == 1:
            port.send(text_of(request("small")))

    port.on_part = on_part
    port.send(text_of(request("big", "big")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sidekeep.wire.input._HELD_UP", 30.0)  # nobody reads in its place
        port.serve(Replies(big=pieces_of("x" * 8_000_000)), window=64)
    assert [message["id"] for message in port.messages] == ["small", "big"]
