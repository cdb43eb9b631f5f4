"""The bell: how a host that listens hears that another process has committed.

Rules:

* A listener holds ``watch.lock`` shared. A committer looks whether anybody does, and only then
  writes one byte to the file ``bell``. So a store that nobody watches costs nothing for events.
* A listener takes the lock first and reads the journal afterwards; a committer commits first and
  looks at the lock afterwards. So no commit falls in between.
* On Linux a listener waits with inotify (0.2 ms from commit to wake-up, no work while idle). Where
  the system has none it looks at the journal every ``LOOK_SECONDS``.

ctypes is imported with the first watch, not before.
"""

from __future__ import annotations

import contextlib
import os
import sys

from sidekeep.store.locks import FileLock

LOOK_SECONDS = 0.1
_IN_MODIFY = 0x2


class Bell:
    """Rings for the listeners of one store."""

    __slots__ = ("_descriptor", "_folder", "_lock")

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._descriptor = -1
        self._lock: FileLock | None = None

    def heard(self) -> bool:
        """Whether some process listens (or might)."""
        if self._lock is None:
            path = os.path.join(self._folder, "watch.lock")
            self._lock = FileLock(path, "listening to this store")
        if self._lock.try_acquire():
            self._lock.release()
            return False
        return True

    def ring(self) -> None:
        """Wake the listeners."""
        if self._descriptor < 0:
            self._descriptor = open_bell(self._folder)
        # On a full disk the byte is there already; a failure could only delay an event.
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, b"!", 0)

    def close(self) -> None:
        """Close the files."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        if self._lock is not None:
            self._lock.close()


class Listener:
    """Listens to the bell of one store.

    ``descriptor``: becomes readable when the bell rings; -1 where the system cannot do that, and
    the journal must be looked at every ``LOOK_SECONDS``.
    """

    __slots__ = ("_bell", "_lock", "descriptor")

    def __init__(self, folder: str) -> None:
        self._lock = FileLock(
            os.path.join(folder, "watch.lock"), "looking for listeners", shared=True
        )
        self._lock.acquire()
        self._bell = open_bell(folder)
        self.descriptor = _inotify(os.path.join(folder, "bell"))

    def drain(self) -> None:
        """Forget the rings so far."""
        if self.descriptor >= 0:
            with contextlib.suppress(BlockingIOError):
                while os.read(self.descriptor, 65_536):
                    pass

    def close(self) -> None:
        """Stop listening."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        os.close(self._bell)
        self._lock.close()


def open_bell(folder: str) -> int:
    """Open (and if need be make) the bell file; return its descriptor."""
    path = os.path.join(folder, "bell")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _inotify(path: str) -> int:
    """Return a descriptor that becomes readable when the file is written; -1 if there is none."""
    if sys.platform != "linux":
        return -1
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:  # the user's limit of inotify instances is reached
        return -1
    if library.inotify_add_watch(descriptor, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(descriptor)
        return -1
    return descriptor
