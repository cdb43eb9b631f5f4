"""Frames reach a reader however slowly it reads, and a reader that is gone does no harm."""

from __future__ import annotations

import os
import resource
import selectors
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sidekeep.errors import InternalError
from sidekeep.wire.channel import Channel
from sidekeep.wire.input import Input
from sidekeep.wire.messages import Call
from sidekeep.wire.output import Output
from tests.wire.caller import Port, answer, frame, outcomes, request, text_of


class Ends:
    """A channel with plain descriptors for the caller's side."""

    def __init__(self) -> None:
        host_in, self.write_end = os.pipe()
        self.read_end, host_out = os.pipe()
        self._host = (host_in, host_out)
        self.channel = Channel(host_in, host_out)
        self.channel.finished()

    def serve(self) -> None:
        """Answer until the input ends, then close the channel's side."""
        while (calls := self.channel.receive()) is not None:
            for call in calls:
                answer(self.channel, call)
            self.channel.flush()
        for end in self._host:
            os.close(end)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    for end in (made.write_end, made.read_end):
        try:
            os.close(end)
        except OSError:
            continue


def read_all(end: int, *, size: int, pause: float = 0.0) -> bytes:
    """Read until the end, ``size`` bytes at a time, after a pause."""
    time.sleep(pause)
    found = bytearray()
    while data := os.read(end, size):
        found += data
    return bytes(found)


@pytest.mark.parametrize("size", [*range(65_530, 65_546), 131_072])
def test_reader_that_sleeps_and_reads_byte_by_byte_gets_all(ends: Ends, size: int) -> None:
    around = len(b'{"jsonrpc":"2.0","id":1,"result":{"v":""}}')
    body = text_of(request(1, "echo", {"v": "x" * (size - around)}))
    thread = threading.Thread(target=ends.serve)
    thread.start()
    writer = threading.Thread(target=lambda: (os.write(ends.write_end, frame(body)), None)[1])
    writer.start()
    time.sleep(0.1)
    first = b"".join(os.read(ends.read_end, 1) for _ in range(3000))
    writer.join()
    os.close(ends.write_end)
    found = first + read_all(ends.read_end, size=70_000)
    thread.join()
    result = b'{"jsonrpc":"2.0","id":1,"result":{"v":"%b"}}' % (b"x" * (size - around))
    assert len(result) == size
    assert found == frame(result)


def test_channel_waits_for_a_slow_reader_without_using_the_processor(ends: Ends) -> None:
    body = text_of(request(1, "echo", {"v": "x" * 900_000}))
    thread = threading.Thread(target=ends.serve)
    thread.start()
    writer = threading.Thread(target=lambda: (os.write(ends.write_end, frame(body)), None)[1])
    writer.start()
    writer.join()
    time.sleep(0.3)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(1.0)
    after = resource.getrusage(resource.RUSAGE_SELF)
    os.close(ends.write_end)
    read_all(ends.read_end, size=65_536)
    thread.join()
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.2


def test_caller_that_writes_everything_before_it_reads_is_served(ends: Ends) -> None:
    """More answers than a pipe holds, and more requests than a pipe holds behind them."""
    count = 400
    bodies = b"".join(frame(text_of(request(n, "echo", {"v": "x" * 1000}))) for n in range(count))
    assert len(bodies) > 400_000
    thread = threading.Thread(target=ends.serve)
    thread.start()
    view = memoryview(bodies)
    while view:  # nothing is read meanwhile
        view = view[os.write(ends.write_end, view) :]
    os.close(ends.write_end)
    found = read_all(ends.read_end, size=65_536)
    thread.join()
    assert found.count(b'"result"') == count


def test_frames_that_came_while_writing_are_served_in_order(ends: Ends) -> None:
    seen: list[bytes | None] = []

    def serve() -> None:
        while (calls := ends.channel.receive()) is not None:
            for call in calls:
                seen.append(call.id)
                answer(ends.channel, call)
            ends.channel.flush()

    thread = threading.Thread(target=serve)
    thread.start()
    bodies = [frame(text_of(request(n, "echo", {"v": "x" * 100_000}))) for n in range(30)]
    view = memoryview(b"".join(bodies))
    while view:
        view = view[os.write(ends.write_end, view) :]
    reader = threading.Thread(target=read_all, args=(ends.read_end,), kwargs={"size": 65_536})
    reader.start()
    deadline = time.monotonic() + 30
    while len(seen) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.close(ends.write_end)
    thread.join()
    for end in ends._host:
        os.close(end)
    reader.join()
    assert seen == [b"%d" % n for n in range(30)]


def test_output_that_another_made_non_blocking_is_written_whole(ends: Ends) -> None:
    os.set_blocking(ends._host[1], False)
    os.set_blocking(ends._host[0], False)
    thread = threading.Thread(target=ends.serve)
    thread.start()
    body = frame(text_of(request(1, "echo", {"v": "x" * 500_000})))
    writer = threading.Thread(target=lambda: (os.write(ends.write_end, body), None)[1])
    writer.start()
    time.sleep(0.2)
    writer.join()
    os.close(ends.write_end)
    found = read_all(ends.read_end, size=4096)
    thread.join()
    assert found == frame(b'{"jsonrpc":"2.0","id":1,"result":{"v":"%b"}}' % (b"x" * 500_000))


def test_calls_are_handed_out_though_nobody_reads_the_answers(ends: Ends) -> None:
    os.close(ends.read_end)
    seen: list[Any] = []
    for n in range(50):
        os.write(ends.write_end, frame(text_of(request(n))))
    os.write(ends.write_end, frame(b"nonsense"))
    os.close(ends.write_end)
    while (calls := ends.channel.receive()) is not None:
        for call in calls:
            seen.append(call.id)
            ends.channel.reply(call, b"{}")
        ends.channel.notify("note", b"{}")
        ends.channel.flush()
    assert len(seen) == 50
    for end in ends._host:
        os.close(end)


def test_frame_that_would_close_the_port_is_never_written() -> None:
    read_end, write_end = os.pipe()
    source, source_writer = os.pipe()
    held = Input(source)
    held.finished()
    output = Output(write_end, held)
    with pytest.raises(InternalError):
        output.write_frames([b"x" * 1_048_577])
    with pytest.raises(InternalError):
        output.write_part([b"x" * 1_000_000, b"y" * 48_577])
    os.set_blocking(read_end, False)
    with pytest.raises(BlockingIOError):
        os.read(read_end, 1)
    for end in (source_writer, source, read_end, write_end):
        os.close(end)


def test_many_frames_at_once_are_all_written() -> None:
    port = Port()

    def handle(channel: Channel, call: Call) -> None:
        for n in range(3000):
            channel.notify("n", b'{"n":%d,"v":"%b"}' % (n, b"x" * 900))
        channel.reply(call, b"{}")

    port.send(text_of(request(1)))
    port.close_input()
    messages = port.serve(handle)
    assert [message["params"]["n"] for message in messages[:-1]] == list(range(3000))
    assert outcomes(messages[-1:]) == {1: "result"}


def test_receive_returns_after_its_timeout(ends: Ends) -> None:
    assert ends.channel.receive(0.01) == []
    os.write(ends.write_end, frame(text_of(request(1)))[:10])
    assert ends.channel.receive(0.01) == []
    os.write(ends.write_end, frame(text_of(request(1)))[10:])
    calls = ends.channel.receive(30)
    assert calls is not None
    assert [call.id for call in calls] == [b"1"]
    os.close(ends.write_end)
    assert ends.channel.receive(30) is None
    for end in ends._host:
        os.close(end)


def test_receive_wakes_for_another_descriptor(ends: Ends) -> None:
    bell, ringer = os.pipe()
    ends.channel.wake_on(bell)
    os.write(ringer, b"!")
    assert ends.channel.receive() == []
    os.read(bell, 1)
    os.write(ends.write_end, frame(text_of(request(1))))
    calls = ends.channel.receive()
    assert calls is not None
    assert len(calls) == 1
    assert ends.channel.receive(0.01) == []
    os.close(ends.write_end)
    assert ends.channel.receive() is None
    for end in (bell, ringer, *ends._host):
        os.close(end)


def test_frame_that_came_while_parts_were_written_is_served_at_once(ends: Ends) -> None:
    def serve() -> None:
        ends.channel.grant_parts(64)
        while (calls := ends.channel.receive()) is not None:
            for call in calls:
                ends.channel.reply(call, b'"%b"' % (b"x" * 900_000) if call.op else b"{}")
            ends.channel.flush()

    thread = threading.Thread(target=serve)
    thread.start()
    late = frame(text_of(request("late")))
    os.write(ends.write_end, frame(text_of(request(1, op=1))) + late[:10])
    time.sleep(0.2)  # it writes a part and is held up
    os.write(ends.write_end, late[10:])
    found = read_until(ends.read_end, b'"late"')
    os.close(ends.write_end)
    os.close(ends.read_end)  # it is still writing parts
    thread.join()
    for end in ends._host:
        os.close(end)
    assert b'"id":"late","result"' in found


def read_until(end: int, mark: bytes) -> bytes:
    """Read until ``mark`` has come or nothing comes for ten seconds."""
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(end, selectors.EVENT_READ)
        while mark not in found and selector.select(10):
            found += os.read(end, 65_536)
    return found


def test_frame_that_came_while_refusals_were_written_is_served_at_once(ends: Ends) -> None:
    thread = threading.Thread(target=ends.serve)
    thread.start()
    os.write(ends.write_end, frame(text_of(request(1, "echo", {"v": "x" * 60_000}))))
    time.sleep(0.1)
    os.write(ends.write_end, frame(b"nonsense") * 60)  # the answers do not fit into the pipe
    time.sleep(0.2)
    os.write(ends.write_end, frame(text_of(request("late"))))
    time.sleep(0.2)
    found = read_until(ends.read_end, b'"late"')
    os.close(ends.write_end)
    thread.join()
    assert b'"id":"late","result"' in found
