"""Standard output: whole frames, written by the main thread alone.

Rules of this module:

* Writes block and short writes are continued. A write that may block happens while the input is
  lent out (see ``input``).
* A reader that is gone is no fault: ``gone`` is set and everything later is dropped in silence.
* No body is longer than a browser accepts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from sidekeep.errors import InternalError
from sidekeep.wire.frames import LARGEST_OUTGOING, header
from sidekeep.wire.input import Input

_NEVER_BLOCKS_BYTES = 4_096 if sys.platform == "linux" else 512
"""PIPE_BUF: a writable pipe takes this much at once."""


class Output:
    """The frames of one output descriptor. ``gone``: nobody reads them any more."""

    def __init__(self, descriptor: int, source: Input) -> None:
        self._descriptor = descriptor
        self._input = source
        self._poll: Callable[[int], list[tuple[int, int]]] | None = None
        self.gone = False
        os.set_blocking(descriptor, True)

    def write_frames(self, bodies: list[bytes]) -> None:
        """Write each of ``bodies`` as a frame, with one call to the system if they are small."""
        if len(bodies) == 1:
            self._write([_checked_header(len(bodies[0])) + bodies[0]])
            return
        gathered: list[bytes] = []
        size = 0
        for body in bodies:
            if size + len(body) > LARGEST_OUTGOING:
                self._write([b"".join(gathered)])
                gathered = []
                size = 0
            gathered += (_checked_header(len(body)), body)
            size += len(body)
        self._write([b"".join(gathered)])

    def write_part(self, body: list[bytes]) -> None:
        """Write one frame whose body is the concatenation of ``body``, without joining it."""
        size = sum(map(len, body))
        body[0] = _checked_header(size) + body[0]
        self._input.tidier.passed(size)
        self._write(body)

    def _write(self, buffers: list[bytes]) -> None:
        if self.gone:
            return
        left = sum(map(len, buffers))
        try:
            if left <= _NEVER_BLOCKS_BYTES and self._writable(0):
                written = self._write_some(buffers)
                left -= written
                if not left:
                    return
                buffers = _after(buffers, written)
            self._input.lend()
            try:
                while left:
                    written = self._write_some(buffers)
                    left -= written
                    if left:
                        buffers = _after(buffers, written)
            finally:
                self._input.take_back()
        except ConnectionError:
            self.gone = True

    def _write_some(self, buffers: list[bytes]) -> int:
        try:
            return os.writev(self._descriptor, buffers)
        except BlockingIOError:  # somebody who shares the descriptor changed its mode
            self._writable(1_000)
            return 0

    def _writable(self, milliseconds: int) -> bool:
        if self._poll is None:
            from select import POLLOUT, poll

            poller = poll()
            poller.register(self._descriptor, POLLOUT)
            self._poll = poller.poll
        return bool(self._poll(milliseconds))


def _checked_header(length: int) -> bytes:
    if length > LARGEST_OUTGOING:
        raise InternalError(f"A frame of {length} bytes would close the port.")
    return header(length)


def _after(buffers: list[bytes], written: int) -> list[bytes]:
    """Return what of ``buffers`` is left when their first ``written`` bytes are gone."""
    for at, buffer in enumerate(buffers):
        if written < len(buffer):
            return [buffer[written:], *buffers[at + 1 :]]
        written -= len(buffer)
    return []
