"""Outgoing messages above 256 KB travel in parts, as many at a time as the window allows.

Rules of this module:

* A cut is read while it is sent: one that travels as a hole piece by piece, without a copy; a short
  one when the text around it is sent, so that a reply of many values is never whole in memory.
* What a reply holds on to (``release``) is let go exactly once, when its last byte was taken: sent,
  dropped or read into memory.
* Parts of several messages take turns.
* A message that cannot be finished ends with the error of its request (``data.of`` names the
  message), and what of it was sent no longer counts against the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from time import monotonic

from sidekeep.errors import InternalError
from sidekeep.jsontext import safe_cut
from sidekeep.wire.frames import PIECE_BYTES
from sidekeep.wire.messages import Cut, Pieces
from sidekeep.wire.strict import encode

INLINE_BYTES = 65_536
"""A string whose JSON text is no longer than this stays in the text."""

_TEXT_BYTES = PIECE_BYTES // 2  # quotes and backslashes double when text becomes a string
_PATHS_BYTES = 262_144
_LOOK_AHEAD = 12  # the longest that must not be cut: two escapes of a surrogate pair


class Stream:
    """One message under way in parts.

    ``name``: the JSON text of the request's id, ``None`` for a notification. ``sent`` and
    ``acknowledged`` count its parts, ``unread`` says whether a cut is still to be read, and
    ``finished`` whether its last part was sent or it was dropped. ``touched`` is the time
    (``time.monotonic``) of the last part sent or acknowledged.
    """

    __slots__ = (
        "_bodies",
        "_final",
        "_readers",
        "_release",
        "_text",
        "acknowledged",
        "finished",
        "name",
        "number",
        "sent",
        "touched",
        "unread",
    )

    def __init__(
        self,
        number: int,
        name: bytes | None,
        layout: tuple[Pieces, list[Cut], list[bytes]],
        release: Callable[[], None] | None,
    ) -> None:
        self.number = number
        self.name = name
        self.sent = 0
        self.acknowledged = 0
        self.finished = False
        self.touched = monotonic()
        self._release = release
        self._final = False
        text, cuts, paths = layout
        text.reverse()  # a stack, so that what was sent can be freed
        self._text = text
        self._readers = [_read(cut) for cut in cuts]
        self._bodies = self._make(text, paths, [cut.length for cut in cuts])
        self.unread = bool(cuts) or any(isinstance(piece, Cut) for piece in text)
        if not self.unread:
            self._let_go()

    def next_body(self) -> list[bytes]:
        """Return the buffers of the body of the next part; call ``wrote`` once they are written.

        Raises what reading a cut raises.
        """
        return next(self._bodies)

    def wrote(self) -> None:
        """Count the part last returned by ``next_body``."""
        self.sent += 1
        self.touched = monotonic()
        if self._final:
            self.drop()

    def drop(self) -> None:
        """Send nothing more of this message."""
        self.finished = True
        self._bodies.close()
        for reader in self._readers:
            reader.close()
        self._let_go()

    def materialise(self) -> None:
        """Read what is left of all cuts into memory. Raises what reading a cut raises."""
        if self.unread:
            for at, piece in enumerate(self._text):
                if isinstance(piece, Cut):
                    self._text[at] = b"".join(piece.read())
            self._readers = [_held(list(reader)) for reader in self._readers]
            self._let_go()

    def _let_go(self) -> None:
        self.unread = False
        release, self._release = self._release, None
        if release is not None:
            release()

    def _make(
        self, text: Pieces, paths: list[bytes], lengths: list[int]
    ) -> Generator[list[bytes], None, None]:
        count = 0
        texts = _pieces_of(text)
        piece: bytes | None = next(texts)
        paths.reverse()
        while piece is not None or paths:
            following = next(texts, None)
            holes = []
            size = 0
            while paths and size + len(paths[-1]) <= _PATHS_BYTES:
                size += len(paths[-1])
                holes.append(paths.pop())
            last = following is None and not paths
            self._final = last and not lengths
            yield [
                b'{"part":{"of":%d,"i":%d,"last":%b%b},"text":'
                % (
                    self.number,
                    count,
                    b"true" if last else b"false",
                    b',"holes":[%b]' % b",".join(holes) if holes else b"",
                ),
                encode((piece or b"").decode()),
                b"}",
            ]
            count += 1
            piece = following
        for hole, length in enumerate(lengths):
            left = length
            while left:
                piece = next(self._readers[hole])
                left -= len(piece)
                if not left:  # let the reader end, which also finds that it has too much
                    next(self._readers[hole], None)
                self._final = not left and hole == len(lengths) - 1
                yield [
                    b'{"part":{"of":%d,"hole":%d,"i":%d,"last":%b},"s":"'
                    % (self.number, hole, count, b"false" if left else b"true"),
                    piece,
                    b'"}',
                ]
                count += 1


def _lay_out(pieces: Pieces) -> tuple[Pieces, list[Cut], list[bytes]]:
    """Return the text of a message, the cuts that become holes, and the JSON of their paths.

    Cuts that stay in the text are not read here.
    """
    text: Pieces = []
    cuts: list[Cut] = []
    paths: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            text.append(piece)
            continue
        if piece.length > INLINE_BYTES:
            path = encode(piece.path)
            if len(path) <= _PATHS_BYTES:
                cuts.append(piece)
                paths.append(path)
                continue
        text.append(piece)
    return text, cuts, paths


def _pieces_of(text: Pieces) -> Iterator[bytes]:
    """Yield the concatenated stack ``text`` in pieces of at most ``_TEXT_BYTES``, at least one."""
    gathered: list[bytes] = []
    size = 0
    while text:
        top = text.pop()
        gathered.append(top if isinstance(top, bytes) else b"".join(top.read()))
        size += len(gathered[-1])
        if size <= _TEXT_BYTES:
            continue
        joined = b"".join(gathered)
        start = 0
        while size - start > _TEXT_BYTES:
            piece = joined[start : start + _TEXT_BYTES + _LOOK_AHEAD]
            end = safe_cut(piece, _TEXT_BYTES)
            yield piece[:end]
            start += end
        gathered = [joined[start:]]
        size -= start
    yield b"".join(gathered)


def _read(cut: Cut) -> Generator[bytes, None, None]:
    """Yield the pieces of ``cut``, exactly ``cut.length`` bytes of them."""
    left = cut.length
    for piece in cut.read():
        left -= len(piece)
        if left < 0:
            break
        start = 0
        while len(piece) - start > PIECE_BYTES:
            end = start + safe_cut(piece[start : start + PIECE_BYTES + _LOOK_AHEAD], PIECE_BYTES)
            yield piece[start:end]
            start = end
        if start < len(piece):
            yield piece[start:] if start else piece
    if left:
        raise InternalError("A stored string has not the length that was announced.")


def _held(pieces: list[bytes]) -> Generator[bytes, None, None]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()


class Outgoing:
    """All outgoing messages in parts.

    ``window``: how many parts may be unacknowledged, over all messages.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._numbered = 0
        self._streams: dict[int, Stream] = {}
        self._turns: deque[Stream] = deque()
        self._unacknowledged = 0

    def add(self, name: bytes | None, pieces: Pieces, release: Callable[[], None] | None) -> Stream:
        """Return a new stream. Nothing of it is sent before ``start``.

        Raises what reading a short cut raises, after ``release`` was called.
        """
        try:
            layout = _lay_out(pieces)
        except BaseException:
            if release is not None:
                release()
            raise
        self._numbered += 1
        stream = Stream(self._numbered, name, layout, release)
        self._streams[stream.number] = stream
        return stream

    def start(self, stream: Stream) -> None:
        """Let the parts of ``stream`` take their turns."""
        self._turns.append(stream)

    @property
    def ready(self) -> bool:
        """Whether a part may be sent now."""
        return bool(self._turns) and self._unacknowledged < self._window

    def turn(self) -> Stream:
        """Return the stream whose part is sent next."""
        return self._turns[0]

    def wrote(self, stream: Stream) -> None:
        """Count the part of ``stream`` that was just written."""
        self._unacknowledged += 1
        stream.wrote()
        self._turns.popleft()
        if not stream.finished:
            self._turns.append(stream)

    def acknowledge(self, number: int, part: int) -> None:
        """Take the acknowledgement of ``part`` and all earlier parts of message ``number``."""
        stream = self._streams.get(number)
        if stream is None or not stream.acknowledged <= part < stream.sent:
            return
        self._unacknowledged -= part + 1 - stream.acknowledged
        stream.acknowledged = part + 1
        stream.touched = monotonic()
        if stream.finished and stream.acknowledged == stream.sent:
            del self._streams[number]

    def drop(self, stream: Stream) -> None:
        """End ``stream`` unfinished."""
        self._unacknowledged -= stream.sent - stream.acknowledged
        del self._streams[stream.number]
        if stream in self._turns:
            self._turns.remove(stream)
        stream.drop()

    def drop_all(self) -> None:
        """End all streams: nobody reads them any more."""
        for stream in list(self._streams.values()):
            self.drop(stream)

    def unread(self) -> list[Stream]:
        """Return the streams that still have cuts to be read, oldest first."""
        return [stream for stream in self._streams.values() if stream.unread]
