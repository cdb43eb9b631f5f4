"""Who calls: the word of its hello, and a lock by which others see that its host lives.

Rule: the lock is taken by the first turn that this connection begins, and not before. It vanishes
with the process, however that ends.
"""

from __future__ import annotations

import contextlib
import os

from sidekeep.store.locks import FileLock

_PURPOSE = "running a turn"


class Caller:
    """The caller of one connection. ``client``: the word of its hello, ``""`` if it gave none."""

    def __init__(self, client: str, folder: str) -> None:
        self.client = client
        self._folder = folder
        self._lock: FileLock | None = None
        self._word = ""

    def owner(self) -> str:
        """Return the word of this host, under which it can be seen to live."""
        if self._lock is None:
            word = os.urandom(8).hex()
            self._lock = FileLock(self._path(word), _PURPOSE)
            self._lock.acquire()
            self._word = word
        return self._word

    def lives(self, word: str) -> bool:
        """Whether the host of that word (of this or another connection) still runs."""
        if word == self._word:
            return True
        path = self._path(word)
        if not word.isalnum() or not os.path.exists(path):
            return False
        lock = FileLock(path, _PURPOSE)
        try:
            if not lock.try_acquire():
                return True
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return False
        finally:
            lock.close()

    def _path(self, word: str) -> str:
        return os.path.join(self._folder, f"turn-{word}.lock")

    def close(self) -> None:
        """Let go of the lock and its file."""
        if self._lock is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(self._word))
            self._lock.close()
            self._lock = None
            self._word = ""
