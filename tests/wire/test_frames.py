"""Frames are cut out of the stream whatever the borders of the readings are."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidekeep.wire.frames import LARGEST_INCOMING, FrameReader, header
from tests.wire.caller import Port as CallerPort
from tests.wire.caller import frame, outcomes, request, text_of


def test_header_is_the_length_in_native_byte_order() -> None:
    for length in (0, 10, 13, 26, 2560, 3338, 65_536, 1_048_576):
        assert header(length) == struct.pack("=I", length)


@pytest.mark.parametrize("at", range(len(frame("é".encode())) + len(frame(b"[]")) + 1))
def test_stream_cut_anywhere_gives_the_same_bodies(at: int) -> None:
    stream = frame("é".encode()) + frame(b"[]")
    reader = FrameReader()
    assert reader.feed(stream[:at]) + reader.feed(stream[at:]) == ["é".encode(), b"[]"]
    assert not reader.inside_frame


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_any_bodies_come_through_any_readings(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = FrameReader()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:end])
    assert found == bodies
    assert not reader.inside_frame


def test_byte_by_byte_gives_the_same_bodies() -> None:
    bodies = [b"", b"a" * 300, b"\x0a\x0d\x1a", b""]
    reader = FrameReader()
    found = [body for byte in b"".join(map(frame, bodies)) for body in reader.feed(bytes([byte]))]
    assert found == bodies


def test_missing_counts_what_the_frame_still_lacks() -> None:
    reader = FrameReader()
    assert reader.missing == 0
    reader.feed(frame(b"x" * 100)[:50])
    assert reader.missing == 54
    assert reader.inside_frame


def test_largest_length_is_read_and_the_next_one_is_lost() -> None:
    reader = FrameReader()
    assert reader.feed(header(LARGEST_INCOMING)) == []
    assert reader.lost is None
    reader = FrameReader()
    assert reader.feed(frame(b"{}") + header(LARGEST_INCOMING + 1) + b"more") == [b"{}"]
    assert reader.lost == LARGEST_INCOMING + 1
    assert reader.feed(frame(b"{}")) == []


def test_memory_follows_what_has_arrived() -> None:
    reader = FrameReader()
    tracemalloc.start()
    try:
        reader.feed(header(LARGEST_INCOMING) + b"x" * 1000)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_several_frames_in_one_write_are_all_answered() -> None:
    port = CallerPort()
    port.send_bytes(b"".join(frame(text_of(request(number))) for number in range(3)))
    port.close_input()
    assert outcomes(port.serve()) == {0: "result", 1: "result", 2: "result"}


@pytest.mark.parametrize("size", [10, 13, 26, 2560, 3338])
def test_lengths_and_bodies_with_line_ends_arrive_exactly(size: int) -> None:
    body = text_of(request(1, "echo", {"a": ""}))
    body = body[:-1] + b"\n" * max(0, size - len(body)) + b"}"
    messages = converse_raw(body)
    assert messages == [{"jsonrpc": "2.0", "id": 1, "result": {"a": ""}}]


def converse_raw(body: bytes) -> list[object]:
    port = CallerPort()
    port.send(body)
    port.close_input()
    return port.serve()


def test_input_that_dies_inside_a_frame_has_no_effect_and_is_a_clean_end() -> None:
    port = CallerPort()
    whole = frame(text_of(request(1)))
    port.send_bytes(whole + frame(text_of(request(2)))[:-1])
    port.close_input()
    assert outcomes(port.serve()) == {1: "result"}
    assert port.channel.exit_code == 0


def test_lost_framing_is_answered_after_the_frames_before_it() -> None:
    port = CallerPort()
    port.send_bytes(frame(text_of(request(1))) + header(LARGEST_INCOMING + 1) + b"x" * 100)
    assert outcomes(port.serve()) == {1: "result", None: "tooLarge"}
    assert port.channel.exit_code == 2
