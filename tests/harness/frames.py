"""Native-messaging frames: a 32-bit length in native byte order, then that many bytes.

The sizes are those of Chromium (measured; Firefox has the same limit towards the extension).
"""

from __future__ import annotations

import struct

MAX_TO_EXTENSION = 1_048_576
"""Largest body, in bytes, that a host may send; one byte more closes the port."""

MAX_TO_HOST = 67_108_864
"""Largest body, in bytes, that a browser sends."""

_LENGTH = struct.Struct("=I")


class FrameError(Exception):
    """The bytes cannot be frames: a length is beyond the limit."""


def encode_frame(body: bytes) -> bytes:
    """Return ``body`` with its length before it. The body is not looked at."""
    return _LENGTH.pack(len(body)) + body


class FrameDecoder:
    """Turns a stream of bytes, fed in pieces of any size, into frame bodies."""

    def __init__(self, limit: int = MAX_TO_EXTENSION) -> None:
        """``limit``: the largest body in bytes that is accepted."""
        self.limit = limit
        self._buffer = bytearray()

    @property
    def rest(self) -> bytes:
        """The bytes received that are not yet a whole frame."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Take ``data`` in and return the bodies that are whole now, maybe none.

        Raises ``FrameError`` when a length is beyond the limit: with it the framing is lost.
        """
        self._buffer += data
        bodies = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > self.limit:
                raise FrameError(
                    f"a frame claims {length} bytes, more than {self.limit}; "
                    f"the stream there reads {bytes(self._buffer[start : start + 60])!r}"
                )
            end = start + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            bodies.append(bytes(self._buffer[start + _LENGTH.size : end]))
            start = end
        del self._buffer[:start]
        return bodies
