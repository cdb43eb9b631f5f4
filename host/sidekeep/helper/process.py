"""One helper process as its parent sees it: started, fed, read, killed.

Rules of this module:

* Nothing here blocks, however big a job is and whatever the child does.
* A job is written by a thread of its own that lives as long as the writing. The main loop can wait
  only for descriptors that become readable, and a pipe holds 64 KB where a picture may have 12 MB.
  The other way, a file in memory or an unlinked one handed over, would cost the host 12 MB of
  copying in its main thread, exists on Linux only or puts the picture on a disk.
* The child is started with ``posix_spawn``: no import, and no copy of the host's page tables. It
  keeps only standard error of the host's descriptors.
* The child runs the interpreter that runs the host, with the flags of the host's launcher and with
  the host's own search path: nothing in the environment changes what it imports.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

from sidekeep.errors import UnavailableError
from sidekeep.helper.frames import Answer, AnswerReader, job_header

READ_BYTES = 65_536
READS_AT_ONCE = 16
WRITE_BYTES = 1_048_576
"""How much of a job is handed to one ``write``, which copies it bit by bit as the child reads."""

_START = """\
import sys
sys.path[:] = {path}
from sidekeep.helper.child import main
main(sys.argv[1:])
"""


def command(table: str, kind: str, seconds: float, memory: int | None) -> list[str]:
    """Return the command line of a helper, to be run with ``sys.executable``.

    Relative entries of the search path are left out: the child runs in another folder.
    """
    path = [entry for entry in sys.path if os.path.isabs(entry)]
    start = _START.format(path=ascii(path))
    limits = [str(seconds), "-" if memory is None else str(memory)]
    return [sys.executable, "-I", "-S", "-X", "utf8", "-c", start, table, kind, *limits]


class Process:
    """A running child. ``descriptor`` is readable when it has answered or ended.

    Raises ``UnavailableError`` if it cannot be started. On Linux the child also dies with the
    thread that created this object, so that must be one that lives as long as the host.
    """

    def __init__(self, table: str, kind: str, seconds: float, memory: int | None) -> None:
        if not sys.executable:
            raise UnavailableError("A helper cannot be started: Python does not know its own path.")
        jobs, self._jobs = os.pipe()
        self.descriptor, answers = os.pipe()
        try:
            os.set_blocking(self.descriptor, False)
            self.pid = os.posix_spawn(
                sys.executable,
                command(table, kind, seconds, memory),
                # One arena: glibc would reserve 64 MB of address space for each thread, which
                # counts against the limit of memory.
                {**os.environ, "MALLOC_ARENA_MAX": "1"},
                file_actions=[(os.POSIX_SPAWN_DUP2, jobs, 0), (os.POSIX_SPAWN_DUP2, answers, 1)],
                setsigmask=(),
            )
        except OSError as error:
            os.close(self._jobs)
            os.close(self.descriptor)
            raise UnavailableError(f"A helper cannot be started: {error.strerror}.") from error
        finally:
            os.close(jobs)
            os.close(answers)
        self._reader = AnswerReader()
        self._lock = allocate_lock()
        self._writers = 0
        self._closed = False
        self._status: int | None = None
        self._ended = False

    def send(self, number: int, job: bytes) -> None:
        """Give a job to the child. The one before must have been answered."""
        with self._lock:
            self._writers += 1  # the one before may be on its way out still
        start_new_thread(self._write, (number, job))

    def _write(self, number: int, job: bytes) -> None:
        try:
            # Header and beginning in one write: a small job wakes the child once.
            self._write_all(job_header(number, len(job)) + job[:READ_BYTES])
            view = memoryview(job)
            for start in range(READ_BYTES, len(job), WRITE_BYTES):
                self._write_all(view[start : start + WRITE_BYTES])
        except OSError:
            pass  # the child has ended: whoever reads its answers learns it
        finally:
            with self._lock:
                self._writers -= 1
                if self._closed and not self._writers:
                    os.close(self._jobs)

    def _write_all(self, data: bytes | memoryview) -> None:
        while data:
            data = data[os.write(self._jobs, data) :]

    def receive(self) -> tuple[list[Answer], bool]:
        """Return the answers that have arrived, and whether the child has ended."""
        answers: list[Answer] = []
        try:
            for _ in range(READS_AT_ONCE):
                data = os.read(self.descriptor, READ_BYTES)
                if not data:
                    return answers, True
                answers += self._reader.feed(data)
        except BlockingIOError:
            pass
        return answers, False

    @property
    def alive(self) -> bool:
        """Whether the process has not ended, as far as the system has told."""
        if not self._ended:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # whoever started the host had SIGCHLD ignored: it is gone
                self._ended = True
            else:
                if pid:
                    self._ended, self._status = True, status
        return not self._ended

    def wait(self, seconds: float) -> None:
        """Wait for the end of a child that was killed."""
        deadline = monotonic() + seconds
        while self.alive and monotonic() < deadline:
            sleep(0.001)

    def kill(self) -> None:
        """End the child and let go of its pipes; nothing is read any more."""
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
        with self._lock:
            self._closed = True
            if not self._writers:
                os.close(self._jobs)
        os.close(self.descriptor)

    @property
    def how_it_ended(self) -> str:
        """Words for how the child came to its end: "was killed, …"."""
        if self.alive:
            return "closed its output"
        if self._status is None:
            return "ended"
        code = os.waitstatus_to_exitcode(self._status)
        if code == -signal.SIGXCPU:
            return "used up its processor time"
        if code == -signal.SIGKILL:
            return "was killed, perhaps because memory ran short"
        return f"crashed (signal {-code})" if code < 0 else f"ended by itself (exit code {code})"
