"""The other side of a channel, written anew from docs/protocol.md for these tests.

Rules: nothing of ``sidekeep.wire`` is used to frame, join or cut, so that a mistake there is not
repeated here. Whatever the channel writes is checked: whole frames, strict JSON, every rule of
parts, the window.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Cut

LARGEST_FRAME = 1_048_576
LARGEST_PIECE = 262_144
LONGEST_CONVERSATION = 60.0

Json = Any
Path = list[str | int]


def frame(body: bytes) -> bytes:
    """Return ``body`` as a frame."""
    return struct.pack("=I", len(body)) + body


def request(
    number: object = 1, method: str = "ping", params: Json = None, **more: Json
) -> dict[str, Json]:
    """Return a request with this id."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, **more}
    if params is not None:
        message["params"] = params
    return message


def text_of(value: Json) -> bytes:
    """Return the JSON text of ``value`` as a browser writes it: compact, not escaped to ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def strict(body: bytes) -> Json:
    """Return the value of ``body``; fail if any strict parser could refuse it."""

    def single(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        assert len(dict(pairs)) == len(pairs), "a key stands twice"
        return dict(pairs)

    def constant(name: str) -> Json:
        raise AssertionError(f"{name} is not JSON")

    value = json.loads(body.decode("utf-8"), object_pairs_hook=single, parse_constant=constant)
    encode_strictly(value)
    return value


def encode_strictly(value: Json) -> None:
    """Fail if ``value`` holds half a surrogate pair or a number beyond a double."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, float):
        assert math.isfinite(value)
    elif isinstance(value, int):
        float(value)
    elif isinstance(value, list):
        for item in value:
            encode_strictly(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            encode_strictly(key)
            encode_strictly(item)


class Joiner:
    """Joins messages in parts and checks every rule on the way."""

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._paths: dict[int, list[Path]] = {}
        self._holes: dict[int, list[str]] = {}
        self._counts: dict[int, int] = {}
        self._newest = 0

    def take(self, body: bytes) -> Json:
        """Take a part; return the message if it is complete now, else ``None``."""
        message = strict(body)
        part = message["part"]
        of = part["of"]
        if of not in self._counts:
            assert of > self._newest, "the numbers of messages rise"
            self._newest = of
            self._counts[of] = 0
            self._texts[of] = []
            self._paths[of] = []
            self._holes[of] = []
        assert part["i"] == self._counts[of], "parts are counted without gaps"
        self._counts[of] += 1
        if "hole" not in part:
            assert set(message) == {"part", "text"}
            assert not self._holes[of], "text comes before holes"
            assert len(text_of(message["text"])) - 2 <= LARGEST_PIECE
            check_cut(message["text"])
            self._texts[of].append(message["text"])
            self._paths[of].extend(part.get("holes", []))
            if not part["last"] or self._paths[of]:
                return None
            return self._finish(of)
        assert set(message) == {"part", "s"}
        piece = raw_piece(body)
        assert len(piece) <= LARGEST_PIECE
        holes = self._holes[of]
        if part["hole"] == len(holes):
            holes.append("")
        assert part["hole"] == len(holes) - 1, "holes come in order"
        holes[-1] += message["s"]
        if part["last"]:
            if len(holes) == len(self._paths[of]):
                return self._finish(of)
            assert len(holes) < len(self._paths[of])
        return None

    def forget(self, of: int) -> None:
        """Drop what there is of a message that ended with an error."""
        self._counts.pop(of, None)

    def _finish(self, of: int) -> Json:
        del self._counts[of]
        message = strict("".join(self._texts[of]).encode())
        assert len("".join(self._texts[of])) > 0
        for path, string in zip(self._paths[of], self._holes[of], strict=True):
            place = message
            for step in path[:-1]:
                place = place[step]
            assert place[path[-1]] == ""
            place[path[-1]] = string
        return message


def raw_piece(body: bytes) -> bytes:
    """Return the JSON text of ``s`` in a hole part, without its quotes."""
    found = re.fullmatch(rb'\{"part":\{[^}]*\},"s":"(.*)"\}', body, re.DOTALL)
    assert found is not None
    return found[1]


def check_cut(piece: str) -> None:
    """Fail if JSON text was cut inside an escape or between the two of a surrogate pair."""
    tail = re.sub(r"\\\\", "  ", piece)
    assert not re.search(r"\\(u[0-9a-fA-F]{0,3})?$", tail), "cut inside an escape"
    assert not re.search(r"\\u[dD][89abAB][0-9a-fA-F]{2}$", tail), "cut inside a surrogate pair"


def in_parts(
    message: Json, of: int, holes: list[Path], cut: Callable[[str], list[str]]
) -> Iterator[bytes]:
    """Yield the parts of ``message``; ``cut`` cuts a text (not escaped) into pieces."""
    copy = json.loads(json.dumps(message))
    strings = []
    for path in holes:
        place = copy
        for step in path[:-1]:
            place = place[step]
        strings.append(place[path[-1]])
        place[path[-1]] = ""
    count = 0
    texts = cut(text_of(copy).decode())
    for number, text in enumerate(texts):
        head: dict[str, Json] = {"of": of, "i": count, "last": number == len(texts) - 1}
        share = holes[number :: len(texts)] if number == len(texts) - 1 else []
        if number == len(texts) - 1:
            share = holes
        if share:
            head["holes"] = share
        yield text_of({"part": head, "text": text})
        count += 1
    for number, string in enumerate(strings):
        pieces = cut(string)
        for at, piece in enumerate(pieces):
            last = at == len(pieces) - 1
            yield text_of(
                {"part": {"of": of, "hole": number, "i": count, "last": last}, "s": piece}
            )
            count += 1


class Text(Cut):
    """A cut that reads from memory, in pieces of ``step`` characters, and counts its readings."""

    def __init__(self, path: tuple[str | int, ...], text: str, step: int = 100_000) -> None:
        self.pieces = [
            json.dumps(text[at : at + step], ensure_ascii=False)[1:-1].encode()
            for at in range(0, len(text), step)
        ]
        super().__init__(path, sum(map(len, self.pieces)))
        self.read_pieces = 0

    def read(self) -> Iterator[bytes]:
        for piece in self.pieces:
            self.read_pieces += 1
            yield piece


Handler = Callable[[Channel, Call], None]


def answer(channel: Channel, call: Call) -> None:
    """Answer as a small host: ``echo`` with the parameters, all else with ``{}``."""
    channel.reply(call, call.params if call.method == "echo" else b"{}")


class Port:
    """A channel in this process, and a caller that reads and writes in threads of its own.

    ``frames``: the bodies that were read. ``messages``: single responses and notifications, those
    from arrays and those joined from parts included, in the order in which they were complete.
    Parts are acknowledged at once unless ``acknowledging`` is false.
    """

    def __init__(self, *, acknowledging: bool = True) -> None:
        host_in, self._write_end = os.pipe()
        self._read_end, host_out = os.pipe()
        self._host_ends = [host_in, host_out]
        self.channel = Channel(host_in, host_out)
        self.channel.finished()  # the test process is not to be ended
        self.acknowledging = acknowledging
        self.frames: list[bytes] = []
        self.messages: list[Json] = []
        self.acknowledgements: list[tuple[int, int]] = []
        self.unacknowledged = 0
        self.most_unacknowledged = 0
        self.failure: BaseException | None = None
        self.on_message: Callable[[Json], None] | None = None
        self.on_part: Callable[[Json], None] | None = None
        self.joiner = Joiner()
        self._reader = threading.Thread(target=self._read)
        self._writers: list[threading.Thread] = []
        self._reader.start()
        # A conversation that never ends fails instead of hanging.
        self._timer = threading.Timer(LONGEST_CONVERSATION, self.close_input)
        self._timer.daemon = True
        self._timer.start()

    # The caller's side

    def send(self, *bodies: bytes) -> None:
        """Write frames; this may block, so it is for the caller's threads or small bodies."""
        for body in bodies:
            self.send_bytes(frame(body))

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._write_end, view) :]

    def send_beside(self, *bodies: bytes, close: bool = True) -> None:
        """Write frames in a thread, and end the input behind them."""

        def write() -> None:
            self.send(*bodies)
            if close:
                self.close_input()

        thread = threading.Thread(target=write)
        self._writers.append(thread)
        thread.start()

    def close_input(self) -> None:
        """End the channel's input."""
        end, self._write_end = self._write_end, -1
        if end >= 0:
            os.close(end)

    def _read(self) -> None:
        try:
            with os.fdopen(self._read_end, "rb", buffering=1 << 16) as stream:
                while head := stream.read(4):
                    (length,) = struct.unpack("=I", head)
                    assert length <= LARGEST_FRAME
                    body = stream.read(length)
                    assert len(body) == length, "the output ended inside a frame"
                    self._take(body)
        except BaseException as error:  # noqa: BLE001 - raised in the test by ``serve``
            self.failure = error
            self.close_input()

    def _take(self, body: bytes) -> None:
        self.frames.append(body)
        value = strict(body)
        if isinstance(value, dict) and "part" in value:
            self.unacknowledged += 1
            self.most_unacknowledged = max(self.unacknowledged, self.most_unacknowledged)
            whole = self.joiner.take(body)
            if self.on_part is not None:
                self.on_part(value)
            if self.acknowledging:
                self.acknowledge(value["part"]["of"], value["part"]["i"])
            if whole is not None:
                self._deliver(whole)
        elif isinstance(value, dict) and "ack" in value:
            self.acknowledgements.append((value["ack"]["of"], value["ack"]["i"]))
        elif isinstance(value, list):
            assert value
            for item in value:
                self._deliver(item)
        else:
            self._deliver(value)

    def acknowledge(self, of: int, i: int) -> None:
        """Acknowledge a part, if the input has not ended."""
        self.unacknowledged -= 1
        if self._write_end >= 0:
            self.send(text_of({"ack": {"of": of, "i": i}}))

    def _deliver(self, message: Json) -> None:
        self.messages.append(message)
        if self.on_message is not None:
            self.on_message(message)

    # The channel's side

    def serve(self, handle: Handler = answer, *, window: int = 0) -> list[Json]:
        """Run the main loop until the input ends; return ``messages``."""
        if window:
            self.channel.grant_parts(window)
        try:
            while (calls := self.channel.receive()) is not None:
                for call in calls:
                    handle(self.channel, call)
                self.channel.flush()
        finally:
            self.close()
        if self.failure is not None:
            raise self.failure
        return self.messages

    def close(self) -> None:
        """Close everything and wait for the caller's threads."""
        self._timer.cancel()
        for writer in self._writers:
            writer.join()
        self.close_input()
        for end in self._host_ends:
            os.close(end)
        self._host_ends = []
        self._reader.join()


def converse(*bodies: bytes, handle: Handler = answer, window: int = 0) -> list[Json]:
    """Send frames and the end of input to a channel; return the messages it wrote."""
    port = Port()
    port.send_beside(*bodies)
    return port.serve(handle, window=window)


def outcomes(messages: list[Json]) -> dict[Json, Json]:
    """Return ``{id: "result" or the kind of the error}``; every id must stand once."""
    found: dict[Json, Json] = {}
    for message in messages:
        if "id" in message:
            assert message["id"] not in found, "a request was answered twice"
            assert message["jsonrpc"] == "2.0"
            assert ("result" in message) != ("error" in message)
            found[message["id"]] = (
                message["error"]["data"]["kind"] if "error" in message else "result"
            )
    return found
