"""Start a native-messaging host as a browser would, and watch everything it does.

Rules of this module:

* It knows frames, pipes and processes, and nothing of what the messages mean.
* What comes out on standard output is checked from byte 0 to the end: whole frames, none above the
  browser's limit, each strict JSON. What breaks a rule is kept in ``violations`` and raised by the
  next call that waits, and at the latest when the host is closed.
* A host that outlives the end of its input by ``EXIT_LIMIT`` is a violation too: there the browser
  sends SIGKILL, or (when the browser itself has gone) nobody does and an orphan stays.
* Descriptors are driven directly instead of through asyncio's subprocess classes, because a test
  must be able not to read, so that the pipe fills.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .frames import MAX_TO_EXTENSION, FrameDecoder, FrameError, encode_frame
from .measure import session_members
from .process import ChildProcess, Exit
from .strict_json import StrictJsonError, parse_strict

if TYPE_CHECKING:
    from typing_extensions import Self

EXIT_LIMIT = 2.0
"""Seconds after the end of input at which Chromium kills a host (measured)."""

MOST_SHOWN = 10
"""How many violations a failure message lists."""


class ViolationError(AssertionError):
    """The host did what no host may do; the message lists every instance seen."""


class HostGoneError(Exception):
    """The host ended, or closed its output, while an answer was awaited."""


class NativeHost(ChildProcess):
    """One running host. Use ``async with NativeHost(command) as host`` or ``NativeHost.start``.

    ``command``: program and its fixed arguments, with an absolute path, as in a host manifest.
    ``arguments``: what the browser appends; Chromium passes the caller's origin with its closing
    slash, Firefox the manifest's path and the add-on's id. ``environment`` and ``folder`` default
    to a bare environment and ``/``.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        folder: str = "/",
    ) -> None:
        super().__init__([*command, *arguments], environment, folder)
        self.violations: list[str] = []
        self.largest_frame = 0
        self.bytes_received = 0
        self.frames: asyncio.Queue[Any] = asyncio.Queue()
        self._decoder = FrameDecoder(MAX_TO_EXTENSION)
        self._stderr = bytearray()
        self._write_lock = asyncio.Lock()
        self._chunk = 1 << 16
        self._reading = False

    # Start and end

    @classmethod
    async def start(cls, command: Sequence[str], **options: Any) -> Self:
        """Start a host and return it; the caller must ``await host.close()``."""
        host = cls(command, **options)
        return await host.__aenter__()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._writable = asyncio.Event()
        self._output_ended = asyncio.Event()
        self._stderr_ended = asyncio.Event()
        self._stdin, self._stdout, self._errors = self.launch(loop)
        for stream in (self._stdin, self._stdout, self._errors):
            os.set_blocking(stream.fileno(), False)
        self.resume_reading()
        loop.add_reader(self._errors.fileno(), self._on_stderr)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close(check=error is None)

    async def close(self, *, check: bool = True) -> Exit:
        """End the host as a browser does and return how it ended.

        Closes input, waits ``EXIT_LIMIT`` seconds, then kills what is left. With ``check`` raises
        ``ViolationError`` if anything was wrong during the whole life of the host.
        """
        await self.close_input()
        if self._stopped:
            self.resume()
        if not self._reading and not self._output_ended.is_set():
            self.resume_reading()
        try:
            await self.wait(EXIT_LIMIT)
        except asyncio.TimeoutError:
            self.violated(f"the host still runs {EXIT_LIMIT} s after the end of input")
            self.kill()
            await self.wait(10)
        for survivor in session_members(self.pid):
            self.violated(f"process {survivor} outlives the host that started it")
            with suppress(ProcessLookupError):
                os.kill(survivor, signal.SIGKILL)
        await asyncio.wait_for(self._output_ended.wait(), 10)
        await asyncio.wait_for(self._stderr_ended.wait(), 10)
        if check:
            self.check()
        assert self._exit is not None
        return self._exit

    async def wait_output_end(self, timeout: float = 10) -> None:
        """Wait until everything the host wrote to standard output has been taken in."""
        await asyncio.wait_for(self._output_ended.wait(), timeout)

    # Input

    async def send_bytes(self, data: bytes) -> None:
        """Write raw bytes to the host's input and return when the pipe has taken them all.

        Raises ``HostGoneError`` if the host does not read. Concurrent calls do not mix their bytes.
        """
        async with self._write_lock:
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        view = memoryview(data)
        while view:
            if self._input_closed_at is not None:
                raise HostGoneError("the input of the host is closed")
            descriptor = self._stdin.fileno()
            try:
                view = view[os.write(descriptor, view) :]
            except BlockingIOError:
                self._writable.clear()
                loop.add_writer(descriptor, self._writable.set)
                try:
                    await self._writable.wait()
                finally:
                    if self._input_closed_at is None:
                        loop.remove_writer(descriptor)
            except BrokenPipeError as error:
                raise HostGoneError(f"the host does not read any more; {self._how()}") from error

    async def send_frame(self, body: bytes) -> None:
        """Send ``body``, whatever it holds, as one frame."""
        await self.send_bytes(encode_frame(body))

    async def send_split(self, data: bytes, cuts: Iterable[int], delay: float = 0.005) -> None:
        """Send ``data`` in pieces that end at the offsets ``cuts``, ``delay`` seconds apart."""
        async with self._write_lock:
            start = 0
            for cut in [*cuts, len(data)]:
                await self._write(data[start:cut])
                start = cut
                await asyncio.sleep(delay)

    async def close_input(self) -> None:
        """Close the host's standard input, as a browser does when the port is disconnected."""
        if self._input_closed_at is None:
            self._input_closed_at = time.monotonic()
            # A write that waits for room must hear of it, and must not fall on a reused descriptor.
            asyncio.get_running_loop().remove_writer(self._stdin.fileno())
            self._stdin.close()
            self._writable.set()

    def expect_cut_output(self) -> None:
        """Accept that output ends inside a frame, as when the reader does not read any more."""
        self._output_may_be_cut = True

    async def disconnect(self) -> None:
        """Close both pipes at once, as when the port is closed or the browser has crashed.

        A frame the host was writing is cut off by that, which is no fault of the host.
        """
        self._output_may_be_cut = True
        if not self._output_ended.is_set():
            self._end_output()
        await self.close_input()

    # Output

    def pause_reading(self) -> None:
        """Read no more from the host, so that its pipe fills."""
        if self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(self._stdout.fileno())

    def resume_reading(self, chunk: int = 1 << 16) -> None:
        """Read again, at most ``chunk`` bytes at a time."""
        self._chunk = chunk
        if not self._reading and not self._stdout.closed:
            self._reading = True
            asyncio.get_running_loop().add_reader(self._stdout.fileno(), self._on_stdout)

    def _on_stdout(self) -> None:
        try:
            data = os.read(self._stdout.fileno(), self._chunk)
        except BlockingIOError:
            return
        if not data:
            # A host that was killed may well stop inside a frame; one that ends by itself may not.
            if self._decoder.rest and not self._output_may_be_cut:
                self.violated(
                    f"output ends inside a frame: {len(self._decoder.rest)} bytes are left, "
                    f"beginning {self._decoder.rest[:60]!r}"
                )
            self._end_output()
            return
        self.bytes_received += len(data)
        try:
            bodies = self._decoder.feed(data)
        except FrameError as error:
            self.violated(str(error))
            self._end_output()
            return
        for body in bodies:
            self.largest_frame = max(self.largest_frame, len(body))
            try:
                value = parse_strict(body)
            except StrictJsonError as error:
                self.violated(f"a frame is {error}")
                continue
            self.on_frame(value, body)

    def _end_output(self) -> None:
        self.pause_reading()
        self._stdout.close()
        self._output_ended.set()
        self.on_output_end()

    def on_frame(self, value: Any, body: bytes) -> None:
        """Take in one frame that was received: its value and its text. Subclasses override it."""
        self.frames.put_nowait(value)

    def on_output_end(self) -> None:
        """Hear that no frame will follow. Subclasses override it."""
        self.frames.put_nowait(HostGoneError("the host closed its output"))

    async def receive(self, timeout: float = 30) -> Any:
        """Return the value of the next frame.

        Raises ``HostGoneError`` at the end of output, ``asyncio.TimeoutError`` after ``timeout``
        seconds, ``ViolationError`` if what came was no proper frame.
        """
        value = await asyncio.wait_for(self.frames.get(), timeout)
        if isinstance(value, HostGoneError):
            self.frames.put_nowait(value)
            self.check()
            raise HostGoneError(f"{value}; {self._how()}")
        return value

    def _on_stderr(self) -> None:
        try:
            data = os.read(self._errors.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if data:
            self._stderr += data
        else:
            asyncio.get_running_loop().remove_reader(self._errors.fileno())
            self._errors.close()
            self._stderr_ended.set()

    @property
    def stderr(self) -> str:
        """What the host has written to standard error so far."""
        return self._stderr.decode("utf-8", errors="replace")

    # Judgement

    def violated(self, what: str) -> None:
        """Keep something the host did wrong, to be raised by ``check``."""
        self.violations.append(what)

    def check(self) -> None:
        """Raise ``ViolationError`` if anything wrong was seen so far."""
        if self.violations:
            shown = self.violations[:MOST_SHOWN]
            if len(self.violations) > MOST_SHOWN:
                shown.append(f"and {len(self.violations) - MOST_SHOWN} more")
            raise ViolationError("\n".join([*shown, f"standard error: {self.stderr}"]))

    def _how(self) -> str:
        state = "it runs" if self._exit is None else f"it ended with {self._exit}"
        return f"{state}; standard error: {self.stderr[-2000:]!r}"


@asynccontextmanager
async def many(hosts: Sequence[NativeHost]) -> AsyncIterator[Sequence[NativeHost]]:
    """Start all ``hosts`` at once and close them all at the end of the block."""
    started = await asyncio.gather(*(host.__aenter__() for host in hosts), return_exceptions=True)
    try:
        for outcome in started:
            if isinstance(outcome, BaseException):
                raise outcome
        yield hosts
    finally:
        await asyncio.gather(
            *(
                host.close(check=False)
                for host, outcome in zip(hosts, started, strict=True)
                if not isinstance(outcome, BaseException)
            )
        )
    for host in hosts:
        host.check()
