"""What waits to be written, and in which order it leaves.

Rules of this module:

* Messages leave in the order in which they were given, except that a reply in parts lets later ones
  pass. Nothing passes a notification in parts: a reply never overtakes an event that it caused.
* Small responses to the requests of a batch leave in arrays, all others as objects of their own.
* Acknowledgements wait for nothing.
* ``release`` of a reply is called exactly once, whatever becomes of the reply.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from sidekeep.errors import InternalError, SidekeepError, TooLargeError
from sidekeep.wire import rpc
from sidekeep.wire.frames import LARGEST_OUTGOING
from sidekeep.wire.input import Input
from sidekeep.wire.messages import Pieces
from sidekeep.wire.output import Output
from sidekeep.wire.strict import encode

if TYPE_CHECKING:
    from sidekeep.wire.parts_out import Outgoing, Stream

SMALL_BYTES = 262_144
"""With parts granted, a message whose JSON text is no longer than this travels in one frame."""
ARRAY_BYTES = 262_144
"""An array of responses that has reached this size leaves; browsers are slow above it."""
_BRACKETS = 2
_SURELY_SMALL = SMALL_BYTES - 2_048  # an id has at most 1,024 bytes


class Outbox:
    """The outgoing direction of a channel.

    ``window``: how many parts may be unacknowledged; 0 as long as parts are not granted.
    """

    def __init__(self, output: Output, source: Input) -> None:
        self._output = output
        self._input = source
        self.window = 0
        self._streams: Outgoing | None = None  # made when the first big message comes
        self._queue: deque[bytes | Stream] = deque()
        self._array: list[bytes] = []
        self._array_bytes = 0
        self._acknowledgements: dict[int, int] = {}
        self._barrier: Stream | None = None

    # Giving messages

    def respond(
        self,
        name: bytes | None,
        result: Pieces | bytes,
        release: Callable[[], None] | None,
        *,
        batch: bool,
    ) -> None:
        """Queue the response with this result to the request whose id is ``name``."""
        if name is None or self._output.gone:
            if release is not None:
                release()
            return
        pieces: Pieces = [result] if isinstance(result, bytes) else result
        if len(pieces) == 1 and isinstance(pieces[0], bytes) and len(pieces[0]) <= _SURELY_SMALL:
            self._put(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (name, pieces[0]), batch=batch)
            if release is not None:
                release()
            return
        pieces = [b'{"jsonrpc":"2.0","id":%b,"result":' % name, *pieces, b"}"]
        try:
            message = self._compose(name, pieces, release, batch=batch)
        except SidekeepError as error:
            self.refuse(name, error, batch=batch)
            return
        if isinstance(message, bytes):
            self._put(message, batch=batch)
        else:
            self._put_stream(message)

    def refuse(
        self, name: bytes | None, error: SidekeepError, *, batch: bool, of: int | None = None
    ) -> None:
        """Queue the response with this error, unless ``name`` says that none is expected."""
        if name is not None and not self._output.gone:
            self._put(rpc.failure(name, error, of=of), batch=batch)

    def notify(
        self, method: str, params: Pieces | bytes, release: Callable[[], None] | None
    ) -> None:
        """Queue a notification. Raises ``TooLargeError`` if it cannot be carried."""
        if self._output.gone:
            if release is not None:
                release()
            return
        pieces: Pieces = [params] if isinstance(params, bytes) else params
        head = b'{"jsonrpc":"2.0","method":%b,"params":' % encode(method)
        message = self._compose(None, [head, *pieces, b"}"], release, batch=False)
        if isinstance(message, bytes):
            self._put(message, batch=False)
        else:
            self._put_stream(message)

    def acknowledge(self, of: int, part: int) -> None:
        """Acknowledge an incoming part; a later part of the same message includes it."""
        self._acknowledgements[of] = part

    def _compose(
        self,
        name: bytes | None,
        pieces: Pieces,
        release: Callable[[], None] | None,
        *,
        batch: bool,
    ) -> bytes | Stream:
        """Return a message in one piece if it is small, else in parts.

        ``brackets``: bytes that an array around it will add. ``release`` is taken care of also
        where this raises.
        """
        size = sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)
        if self.window and size > SMALL_BYTES:
            if self._streams is None:
                from sidekeep.wire.parts_out import Outgoing

                self._streams = Outgoing(self.window)
            return self._streams.add(name, pieces, release)
        try:
            if size > LARGEST_OUTGOING - (_BRACKETS if batch else 0):
                raise TooLargeError(
                    f"The answer has {size} bytes; a frame can carry {LARGEST_OUTGOING}.",
                    next="Ask for parts in host.hello, or for less at a time.",
                )
            return b"".join(
                piece if isinstance(piece, bytes) else b"".join(piece.read()) for piece in pieces
            )
        finally:
            if release is not None:
                release()

    def _put(self, message: bytes, *, batch: bool) -> None:
        if not batch:
            self._close_array()
            self._queue.append(message)
            return
        if self._array and self._array_bytes + len(message) > ARRAY_BYTES - _BRACKETS:
            self._close_array()
        self._array.append(message)
        self._array_bytes += len(message) + 1

    def _put_stream(self, stream: Stream) -> None:
        self._close_array()
        self._queue.append(stream)

    def _close_array(self) -> None:
        if self._array:
            self._queue.append(b"[%b]" % b",".join(self._array))
            self._array = []
            self._array_bytes = 0

    # Writing

    def flush(self) -> None:
        """Write what can be written now.

        Between two parts it looks whether something has come in, and leaves the other parts for
        later if so.
        """
        if self._acknowledgements:
            self._write_acknowledgements()
        if self._array:
            self._close_array()
        if self._queue:
            self._write_queue()
        streams = self._streams
        while streams is not None and streams.ready:
            self._write_part(streams)
            if self._barrier is not None and self._barrier.finished:
                self._barrier = None
            if self._queue:
                self._write_queue()
            if self._input.frames or self._input.wait(0):
                break
        if self._output.gone:
            self._drop()

    def _write_acknowledgements(self) -> None:
        frames = [b'{"ack":{"of":%d,"i":%d}}' % place for place in self._acknowledgements.items()]
        self._acknowledgements.clear()
        self._output.write_frames(frames)

    def _write_queue(self) -> None:
        frames = []
        while self._queue and self._barrier is None:
            message = self._queue.popleft()
            if isinstance(message, bytes):
                frames.append(message)
            elif self._streams is not None and not message.finished:
                self._streams.start(message)
                if message.name is None:
                    self._barrier = message
        if frames:
            self._output.write_frames(frames)

    def _write_part(self, streams: Outgoing) -> None:
        stream = streams.turn()
        try:
            body = stream.next_body()
        except SidekeepError as error:
            self._give_up(streams, stream, error)
            return
        except BaseException:
            self._give_up(streams, stream, InternalError("A stored string could not be read."))
            raise
        self._output.write_part(body)
        streams.wrote(stream)

    def _give_up(self, streams: Outgoing, stream: Stream, error: SidekeepError) -> None:
        """End a message whose cuts cannot be read with the error of its request."""
        streams.drop(stream)
        self._queue.appendleft(rpc.failure(stream.name or b"null", error, of=stream.number))
        if self._barrier is stream:
            self._barrier = None

    def _drop(self) -> None:
        """Forget everything: nobody reads it any more."""
        self._queue.clear()
        self._array = []
        self._barrier = None
        if self._streams is not None:
            self._streams.drop_all()

    # Messages in parts that are under way

    def acknowledged(self, of: int, part: int) -> None:
        """Take the other side's acknowledgement of a part and all before it."""
        if self._streams is not None:
            self._streams.acknowledge(of, part)

    @property
    def streaming(self) -> bool:
        """Whether some message still has cuts to be read."""
        return self._streams is not None and bool(self._streams.unread())

    @property
    def oldest_stream_age(self) -> float:
        """Seconds for which the stream that waits the longest has made no progress, else 0.0."""
        unread = [] if self._streams is None else self._streams.unread()
        if not unread:
            return 0.0
        return monotonic() - min(stream.touched for stream in unread)

    def materialise(self) -> None:
        """Read all pending cuts into memory and let go what they hold on to."""
        if self._streams is None:
            return
        for stream in self._streams.unread():
            try:
                stream.materialise()
            except SidekeepError as error:
                self._give_up(self._streams, stream, error)
