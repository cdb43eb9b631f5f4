"""Frames of native messaging: a 32-bit length in native byte order, then that many bytes.

Rules of this module:

* Pure functions over bytes; nothing here reads or writes a descriptor.
* Memory grows with what has arrived, never with what a length promises.
* An input that ends between frames and one that dies inside a frame are told apart.

The limits come from what the browsers allow (docs/protocol.md, "Frames").
"""

from __future__ import annotations

from sys import byteorder

HEADER_BYTES = 4
LARGEST_INCOMING = 67_108_864
"""Bytes of the largest body an extension may send; beyond it the framing is taken for lost."""
LARGEST_OUTGOING = 1_048_576
"""Bytes of the largest body a browser accepts; one byte more closes the port."""
PIECE_BYTES = 262_144
"""The most JSON text in one piece of a part. Frames of about this size are the fastest."""


def header(length: int) -> bytes:
    """Return the four bytes that announce a body of ``length`` bytes."""
    return length.to_bytes(HEADER_BYTES, byteorder)


class FrameReader:
    """Cuts a stream of bytes into the bodies of its frames.

    ``lost`` is ``None`` or the length that no sender of frames can have meant; from then on
    nothing more is read, since nobody knows where the next frame starts.
    """

    __slots__ = ("_buffer", "_needed", "lost")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = HEADER_BYTES
        self.lost: int | None = None

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and has not ended: an end of input now cuts it."""
        return bool(self._buffer)

    @property
    def missing(self) -> int:
        """How many bytes the frame that has begun still lacks, as far as that is known."""
        return self._needed - len(self._buffer) if self._buffer else 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream and return the bodies that are now complete."""
        if self.lost is not None:
            return []
        buffer = self._buffer
        if not buffer:
            bodies, used = self._cut(data)
        else:
            buffer += data
            if len(buffer) < self._needed:
                return []
            self._buffer = bytearray()
            with memoryview(buffer) as view:
                bodies, used = self._cut(view)
            data = bytes(buffer[used:])
            used = 0
        if used < len(data):
            self._buffer += data[used:] if used else data
        return bodies

    def _cut(self, data: bytes | memoryview) -> tuple[list[bytes], int]:
        """Return the complete bodies at the beginning of ``data`` and how much they take."""
        bodies: list[bytes] = []
        start = 0
        size = len(data)
        while True:
            body = start + HEADER_BYTES
            if body > size:
                self._needed = HEADER_BYTES
                return bodies, start
            length = int.from_bytes(data[start:body], byteorder)
            if length > LARGEST_INCOMING:
                self.lost = length
                return bodies, size
            end = body + length
            if end > size:
                self._needed = HEADER_BYTES + length
                return bodies, start
            bodies.append(bytes(data[body:end]))
            start = end
