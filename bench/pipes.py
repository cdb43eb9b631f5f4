"""A blocking client over plain pipes, as thin as can be, so that the host is what is measured.

It knows frames and just enough of ``docs/protocol.md`` to acknowledge parts; it never parses JSON
while the clock runs.
"""

from __future__ import annotations

import re
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness.frames import encode_frame
from tests.harness.measure import memory

_PART = re.compile(rb'^\{"part":\{[^}]*?"of":(\d+)[^}]*?"i":(\d+)')
_MIB = 1 << 20


class Pipe:
    """A host that was started, spoken to with blocking reads and writes."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        self._buffer = bytearray(_MIB + 4)

    @property
    def pid(self) -> int:
        """The id of the host's process."""
        return self._process.pid

    def send(self, body: bytes) -> None:
        """Send one frame."""
        view = memoryview(encode_frame(body))
        while view:
            view = view[self._stdin.write(view) or 0 :]

    def receive(self) -> memoryview:
        """Return the body of the next frame; it is valid until the next call."""
        self._fill(4, 0)
        (length,) = struct.unpack_from("=I", self._buffer)
        self._fill(length, 4)
        return memoryview(self._buffer)[4 : 4 + length]

    def _fill(self, length: int, at: int) -> None:
        view = memoryview(self._buffer)[at : at + length]
        while view:
            count = self._stdout.readinto(view)  # type: ignore[attr-defined]
            if not count:
                raise SystemExit(f"The host {self._process.args!r} ended.")
            view = view[count:]

    def ask(self, body: bytes) -> bytes:
        """Send one frame and return the next one."""
        self.send(body)
        return bytes(self.receive())

    def receive_acknowledging(self) -> int:
        """Take in one message that travels in parts, acknowledge each; return the bytes received.

        The message is complete with the last part of its last string: here all messages have one.
        """
        total = 0
        while True:
            body = self.receive()
            total += len(body)
            match = _PART.match(body[:120])
            if match is None:
                raise SystemExit(f"A part was expected, not {bytes(body[:200])!r}.")
            self.send(b'{"ack":{"of":%s,"i":%s}}' % (match[1], match[2]))
            head = bytes(body[:120])
            if b'"hole"' in head and b'"last":true' in head:
                return total

    def close(self) -> None:
        """End the host and wait for it."""
        self._stdin.close()
        self._process.wait()
        self._stdout.close()


class PeakSampler:
    """The highest RssAnon of a process while it is watched, in MiB."""

    def __init__(self) -> None:
        self.mebibytes = 0.0


@contextmanager
def peak_of(pid: int, interval: float = 0.002) -> Iterator[PeakSampler]:
    """Sample the anonymous memory of a process in a thread while the block runs."""
    sampler = PeakSampler()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            sampler.mebibytes = max(sampler.mebibytes, memory(pid).anonymous / _MIB)
            time.sleep(interval)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sampler
    finally:
        ended.set()
        thread.join()
