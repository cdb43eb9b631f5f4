"""File locks between processes, with a bounded wait.

LMDB's own writer lock cannot be waited for with a limit, so writers take one of these first: a
writer that was stopped must not hang every other process for ever. Locks vanish with the process
that holds them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from sidekeep.errors import BusyError

WAIT_SECONDS = 1.0

if sys.platform == "win32":  # written from the documentation of msvcrt, not run
    import msvcrt

    def _try(descriptor: int, shared: bool) -> bool:
        # msvcrt knows no shared locks: each shared holder locks a byte of its own.
        offset = 1 + os.getpid() % 4096 if shared else 0
        os.lseek(descriptor, offset, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1 if shared else 4097)
        except OSError:
            return False
        return True

    def _drop(descriptor: int, shared: bool) -> None:
        os.lseek(descriptor, 1 + os.getpid() % 4096 if shared else 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1 if shared else 4097)

else:
    import fcntl

    def _try(descriptor: int, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _drop(descriptor: int, shared: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """A lock on a file of its own; taken for one process at a time, or shared by several."""

    __slots__ = ("_descriptor", "_purpose", "_shared")

    def __init__(self, path: str, purpose: str, *, shared: bool = False) -> None:
        """Open (and if need be make) the file. ``purpose`` ends "another process is …"."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._purpose = purpose
        self._shared = shared

    def acquire(
        self, wait: float = WAIT_SECONDS, progress: Callable[[], object] | None = None
    ) -> None:
        """Take the lock, waiting at most ``wait`` seconds; ``BusyError`` when it stays taken.

        ``progress``: as long as what it returns changes, others do not hang but work, and the
        waiting goes on, for at most ten times ``wait``.
        """
        if _try(self._descriptor, self._shared):
            return
        start = time.monotonic()
        deadline = start + wait
        seen = progress() if progress is not None else None
        pause = 0.0005
        while not _try(self._descriptor, self._shared):
            now = time.monotonic()
            if progress is not None and now < start + 9 * wait and progress() != seen:
                seen = progress()
                deadline = now + wait
            left = deadline - now
            if left <= 0:
                raise BusyError(
                    f"Another process is {self._purpose} and did not finish within {wait:g} s.",
                    next="try again; if it lasts, end the sidekeep process that hangs",
                )
            time.sleep(min(pause, left))
            pause = min(pause * 2, 0.01)

    def try_acquire(self) -> bool:
        """Take the lock if nobody else has it, without waiting; whether that was so."""
        return _try(self._descriptor, self._shared)

    def release(self) -> None:
        """Give the lock back."""
        _drop(self._descriptor, self._shared)

    def close(self) -> None:
        """Close the file, which also gives the lock back."""
        os.close(self._descriptor)
