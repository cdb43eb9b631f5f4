"""Gives memory back to the system after big messages.

The C library keeps what is freed for later use: after one message of 64 MB a host would hold on to
64 MB for as long as the browser runs. So when much has passed and a second has been quiet, a thread
asks the C library to let go. Where it cannot be asked (it is not glibc) nothing is done.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from time import sleep

MUCH_BYTES = 4_194_304
QUIET_SECONDS = 1.0


class Tidier:
    """Counts the bytes that pass and gives memory back when it is quiet again."""

    def __init__(self) -> None:
        self._passed = 0
        self._at_work = allocate_lock()

    def passed(self, size: int) -> None:
        """Count ``size`` bytes that were read or written."""
        self._passed += size
        if self._passed >= MUCH_BYTES and self._at_work.acquire(blocking=False):
            start_new_thread(self._wait_and_give_back, ())

    def _wait_and_give_back(self) -> None:
        before = -1
        while before != self._passed:
            before = self._passed
            sleep(QUIET_SECONDS)
        self._passed = 0
        give_back = _trimmer()
        if give_back is None:
            return  # never asked again: the lock stays taken
        give_back(0)
        self._at_work.release()


def _trimmer() -> Callable[[int], int] | None:
    """Return glibc's ``malloc_trim``, if this is glibc."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError):
        return None
    return trim
