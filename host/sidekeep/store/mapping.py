"""How large a part of the address space a store's file is mapped into.

Rules:

* The map is as large as the system gives, so that it seldom has to grow: it is address space, not
  memory or disk (LMDB's documentation of ``mdb_env_set_mapsize``). ``max_size`` bounds it.
* A map grows by doubling, and only while no transaction of the process is open; who calls sees to
  that.
"""

from __future__ import annotations

import lmdb

from sidekeep.errors import QuotaError, UnavailableError
from sidekeep.store.files import reserve

# The smaller ones are for systems that do not give that much.
_SIZES = (1 << 40, 1 << 36, 1 << 33, 1 << 31, 1 << 28)
_SMALLEST = 256 * 1024
_READERS = 1024
# Of LMDB's lock file with that many readers; a page that the disk has no room for would kill the
# process when LMDB writes into its map.
_LOCK_FILE_BYTES = (_READERS - 1) * 64 + 192


class Mapping:
    """How a file is mapped.

    ``size``: bytes of the first map instead of the largest that the system gives. ``most``: bytes
    that the map may never exceed. ``durable`` and ``readahead``: as for ``Store``.
    """

    def __init__(
        self, size: int | None, most: int | None, *, durable: bool, readahead: bool
    ) -> None:
        sizes: tuple[int, ...] = _SIZES if size is None else (max(size, _SMALLEST),)
        if most is not None:
            sizes = tuple(min(size, max(most, _SMALLEST)) for size in sizes)
        self._sizes = sizes
        self._most = most
        self._durable = durable
        self._readahead = readahead

    def open(self, path: str) -> lmdb.Environment:
        """Map the file ``path``, which LMDB makes if it is not there.

        Raises ``lmdb.Error`` and ``OSError``; ``UnavailableError`` if the system gives no map.
        """
        reserve(path + "-lock", _LOCK_FILE_BYTES)
        for size in self._sizes:
            try:
                return lmdb.open(
                    path,
                    map_size=size,
                    subdir=False,
                    mode=0o600,
                    max_readers=_READERS,
                    readahead=self._readahead,
                    sync=self._durable,
                    metasync=self._durable,
                )
            except (lmdb.MemoryError, OverflowError) as error:
                refused = error
        raise UnavailableError("The system gives no address space for the data file.") from refused

    def larger(self, size: int, *, used: int) -> int:
        """Return the size that follows a full map of ``size`` bytes, of which ``used`` are used.

        Raises ``QuotaError`` if the map may not grow.
        """
        if self._most is None:
            return size * 2
        if size >= self._most:
            raise QuotaError(
                f"The store may use {self._most} bytes and has no room for this change.",
                next="empty the trash, remove something, or raise max_size in Sidekeep's config",
                max=self._most,
                used=used,
            )
        return min(size * 2, self._most)

    @staticmethod
    def resize(environment: lmdb.Environment, size: int) -> None:
        """Make the map ``size`` bytes large. Raises ``QuotaError`` if the system refuses."""
        try:
            environment.set_mapsize(size)
        except (lmdb.MemoryError, OverflowError) as error:
            now = environment.info()["map_size"]
            raise QuotaError(
                f"The system gives this process no map larger than {now} bytes.",
                next="raise the limit on address space (ulimit -v) for the browser",
            ) from error
