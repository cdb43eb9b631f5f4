"""The process of a host: its start, its signals, its end, and what it uses.

Rules of this module:

* It is started as a browser does it: a bare environment, the folder ``/``, and (so that children
  it leaves behind can be found) a session of its own.
* It is waited for with ``wait4`` in a thread, because only that tells the processor time of an
  ended process. The peak of memory that ``wait4`` tells is of no use: it begins with that of the
  harness itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import IO

from .measure import Memory, Peak, cpu_seconds, memory, sampled_peak

BARE_ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
"""What a browser started from a desktop is sure to hand down."""


@dataclass(frozen=True)
class Exit:
    """How a host ended.

    ``code``: exit code, ``None`` if a signal ended it; ``signal``: its number or ``None``;
    ``cpu``: seconds of processor time, children that were waited for included; ``after_input``:
    seconds from the end of input to the end of the process, ``None`` if input was not closed.
    """

    code: int | None
    signal: int | None
    cpu: float
    after_input: float | None


class ChildProcess:
    """A process with pipes; ``NativeHost`` speaks through them.

    ``command``: program and all arguments; ``environment``: ``None`` for a bare one.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None, folder: str
    ) -> None:
        self.command = list(command)
        self.environment = dict(BARE_ENVIRONMENT if environment is None else environment)
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._exit: Exit | None = None
        self._output_may_be_cut = False
        self._stopped = False
        self._input_closed_at: float | None = None

    def launch(self, loop: asyncio.AbstractEventLoop) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Start the process and return this side's ends of its input, output and error pipes."""
        self._exited = asyncio.Event()
        process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder,
            bufsize=0,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        threading.Thread(target=self._reap, args=(loop,), daemon=True).start()
        return process.stdin, process.stdout, process.stderr

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the process in a thread of its own, so that its resource use is seen."""
        assert self._process is not None
        _, status, usage = os.wait4(self._process.pid, 0)
        ended = time.monotonic()
        code = os.waitstatus_to_exitcode(status)
        self._process.returncode = code
        closed = self._input_closed_at
        outcome = Exit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            cpu=usage.ru_utime + usage.ru_stime,
            after_input=None if closed is None or closed > ended else ended - closed,
        )

        def publish() -> None:
            self._exit = outcome
            self._exited.set()

        with suppress(RuntimeError):  # the loop of a test that failed may be closed already
            loop.call_soon_threadsafe(publish)

    async def wait(self, timeout: float = 10) -> Exit:
        """Wait until the process has ended. ``asyncio.TimeoutError`` after ``timeout`` seconds."""
        await asyncio.wait_for(self._exited.wait(), timeout)
        assert self._exit is not None
        return self._exit

    @property
    def exit(self) -> Exit | None:
        """How the host ended, or ``None`` while it runs."""
        return self._exit

    @property
    def pid(self) -> int:
        """The id of the process."""
        assert self._process is not None, "the host was not started"
        return self._process.pid

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, SIGKILL unless told otherwise. A host that has ended is left alone."""
        if self._exit is None:
            if number in {signal.SIGKILL, signal.SIGTERM}:
                self._output_may_be_cut = True
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def stop(self) -> None:
        """Stop the process where it stands (SIGSTOP)."""
        self._stopped = True
        self.kill(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a stopped process run on (SIGCONT)."""
        self._stopped = False
        self.kill(signal.SIGCONT)

    def memory(self) -> Memory:
        """Return the present memory of the process."""
        return memory(self.pid)

    def cpu_seconds(self) -> float:
        """Return the processor time the process has used so far."""
        return cpu_seconds(self.pid)

    def sampled_peak(self, interval: float = 0.005) -> AbstractAsyncContextManager[Peak]:
        """Sample the anonymous memory during a block; see ``measure.sampled_peak``."""
        return sampled_peak(self.pid, interval)
