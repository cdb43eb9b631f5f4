"""Open a store's file, and run read and write transactions on it.

Rules:

* The file is looked at before it is mapped (``damage``); a store that once was there is never
  replaced by an empty one.
* Never the writable map: a full disk would kill the process, a stray write would hit the file.
* A commit is synced before ``write`` returns.
* Writers take ``write.lock`` with a bounded wait before LMDB's own lock. Everybody holds
  ``use.lock`` shared while the file is open, so that a restore can have it alone.
* A full map aborts, grows and runs the job again; a map that another process grew is adopted.

Files in the folder: ``store.mdb`` and LMDB's ``store.mdb-lock``, ``about.json`` (who the store
belongs to; it is written last, and from then on a missing data file is a loss and no new start),
``write.lock`` and ``use.lock``.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import lmdb

from sidekeep.errors import (
    DamagedError,
    DiskFullError,
    QuotaError,
    SidekeepError,
)
from sidekeep.store.bell import Bell
from sidekeep.store.damage import completed, problem_of
from sidekeep.store.files import make_private_folder, unusable_folder
from sidekeep.store.founding import found, new_about, note, read_about
from sidekeep.store.layout import META
from sidekeep.store.locks import FileLock
from sidekeep.store.mapping import Mapping
from sidekeep.store.transaction import HEAD_KEY, Transaction, damaged
from sidekeep.store.translation import translated

T = TypeVar("T")

# What LMDB raises: for callers that must let it pass.
LmdbError = lmdb.Error

DATA_FILE = "store.mdb"
# At the end of the file; see ``Store._complete``.
_HOLE = 131_072
_READER_CHECK_SECONDS = 60.0


class Store:
    """An open store. One per process and file (LMDB's locks do not bear two)."""

    def __init__(
        self,
        folder: str,
        *,
        extension: str,
        profile: str,
        map_size: int | None = None,
        max_size: int | None = None,
        durable: bool = True,
        readahead: bool = False,
    ) -> None:
        """Open the store in ``folder`` (absolute), making it if it was never there.

        ``map_size``: first size of the map in bytes instead of the largest that the system gives.
        ``max_size``: the file may not grow beyond that many bytes (``QuotaError``). ``durable``:
        sync every commit; without, for files in memory. ``readahead``: let the system read ahead,
        which helps who looks at all of a big file. Errors: ``DamagedError`` (the file was left
        untouched), ``BusyError``, ``DiskFullError``, ``UnavailableError`` when the folder cannot be
        used.
        """
        self.folder = folder
        self.path = os.path.join(folder, DATA_FILE)
        self.max_size = max_size
        # Called before the map moves: every other transaction of this process must be closed.
        self.before_growth: list[Callable[[], None]] = []
        self._mapping = Mapping(map_size, max_size, durable=durable, readahead=readahead)
        self._last_reader_check = time.monotonic()
        self._is_alone = False
        self.bell = Bell(folder)
        self._is_open = False
        with contextlib.ExitStack() as opened:
            try:
                make_private_folder(folder)
                self._use_lock = FileLock(
                    os.path.join(folder, "use.lock"), "restoring this store", shared=True
                )
                opened.callback(self._use_lock.close)
                self._write_lock = FileLock(
                    os.path.join(folder, "write.lock"), "writing to this store"
                )
                opened.callback(self._write_lock.close)
                self._use_lock.acquire()
                if not os.path.exists(self.path):
                    with self._locked():
                        found(self.path, new_about(extension, profile), self._open)
                problem = problem_of(self.path)
                shorter = None
                if problem is not None:
                    with self._locked():
                        problem, shorter = completed(self.path)
                if shorter is not None:  # whatever is found wrong, the file is left as it was
                    opened.callback(os.truncate, self.path, shorter)
            except OSError as error:
                raise unusable_folder(folder, error) from error
            except lmdb.Error as error:
                raise self._translated(error) from error
            if problem is not None:
                raise damaged(f"The data file {self.path} {problem}.")
            self._environment = self._open(self.path)
            opened.callback(self._environment.close)
            self._environment.reader_check()
            with self.read() as transaction:
                self.about = read_about(self.path, transaction)
                if shorter is not None:
                    self._check_content(transaction)
            note(folder, self.about)
            opened.pop_all()
        found_file = os.stat(self.path)
        self._place = (found_file.st_dev, found_file.st_ino)
        self._is_open = True

    def _check_content(self, transaction: Transaction) -> None:
        """Raise ``DamagedError`` if anything in the file is not what was written."""
        from sidekeep.store.verify import problems

        found = problems(transaction)
        if found:
            raise damaged(f"The data file {self.path} is cut short: {found[0]}.")

    def _complete(self) -> None:
        """Make the file as long as its tree says (see ``damage.completed``), and some more.

        A page that was overwritten with garbage may point up to 64 KB behind itself. Where the file
        ends before that, reading it would end the process; a hole at the end gives zeros instead,
        and takes no room.
        """
        needed = self.used_bytes() + _HOLE
        if os.stat(self.path).st_size < needed:
            os.truncate(self.path, needed + _HOLE)

    def _open(self, path: str) -> lmdb.Environment:
        try:
            return self._mapping.open(path)
        except (lmdb.Error, OSError) as error:
            raise self._translated(error) from error

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """Give a read transaction: one moment of the store, whatever is written meanwhile."""
        transaction = self.snapshot()
        try:
            yield transaction
        finally:
            transaction.txn.abort()

    def snapshot(self) -> Transaction:
        """Begin a read transaction that the caller ends with ``.txn.abort()``.

        It pins old pages, so it must not live longer than a few seconds.
        """
        self._check_place()
        try:
            return Transaction(self._environment, writable=False)
        except lmdb.MapResizedError:
            self._adopt_map()
            return self.snapshot()
        except lmdb.ReadersFullError:
            self._environment.reader_check()
            return Transaction(self._environment, writable=False)
        except lmdb.Error as error:
            raise self._translated(error) from error

    def write(self, job: Callable[[Transaction], T]) -> T:
        """Run ``job`` in a write transaction and return its result once that is on the disk.

        ``job`` may run several times (a full map), so it must not change anything but the
        transaction. If it raises, nothing is changed. ``BusyError`` after about a second of
        waiting, ``DiskFullError``, ``QuotaError``.
        """
        with self._locked():
            self._check_place()
            try:
                return self._attempts(job)
            except (DiskFullError, QuotaError):
                # What may be forgotten goes first. Then the job gets a second chance, with chunks
                # that fit into the small gaps that a full file has.
                self._forget()
                return self._attempts(job, small_chunks=True)

    def _attempts(self, job: Callable[[Transaction], T], *, small_chunks: bool = False) -> T:
        while True:
            try:
                transaction = Transaction(
                    self._environment, writable=True, small_chunks=small_chunks
                )
            except lmdb.MapResizedError:
                self._adopt_map()
                continue
            except lmdb.Error as error:
                raise self._translated(error) from error
            outer = transaction.txn
            try:
                result = job(transaction)
                transaction.finish()
            except lmdb.MapFullError:
                outer.abort()
                self._grow()
                continue
            except lmdb.Error as error:
                outer.abort()
                raise self._translated(error) from error
            except BaseException:
                outer.abort()
                raise
            try:
                outer.commit()
            except lmdb.MapFullError:
                self._grow()
                continue
            except lmdb.Error as error:
                raise self._translated(error) from error
            self._complete()
            self._check_readers()
            if self.bell.heard():
                self.bell.ring()
            return result

    def _forget(self) -> None:
        """Free what may be forgotten when there is no room: old results and the journal."""
        from sidekeep.store import journal, operations, trash

        def forget(transaction: Transaction) -> None:
            trash.expire(transaction)
            operations.expire(transaction, everything=True)
            journal.trim(transaction, keep=0)

        def settle(transaction: Transaction) -> None:
            # LMDB gives pages away only in the second transaction after the one that freed them.
            transaction.put(META, HEAD_KEY, transaction.head.pack())

        with contextlib.suppress(DiskFullError, QuotaError):
            self._attempts(forget)
            self._attempts(settle)

    def _check_place(self) -> None:
        """Refuse to go on if the data file was removed or replaced by hand.

        What is written then would be acknowledged and go to a file that nobody finds again.
        """
        try:
            found = os.stat(self.path)
            place = (found.st_dev, found.st_ino)
        except FileNotFoundError:
            place = (0, 0)
        if self._is_open and place != self._place:
            raise DamagedError(
                f"The data file {self.path} was removed or replaced while it was in use.",
                next="put it back and close the browser; copies go in with sidekeep restore",
            )

    def _adopt_map(self) -> None:
        for close in self.before_growth:
            close()
        self._environment.set_mapsize(0)

    def _grow(self) -> None:
        larger = self._mapping.larger(self.map_bytes(), used=self.used_bytes())
        for close in self.before_growth:
            close()
        self._mapping.resize(self._environment, larger)

    def used_bytes(self) -> int:
        """Return how many bytes of the file are in use or free for reuse."""
        info = self._environment.info()
        return (info["last_pgno"] + 1) * self._environment.stat()["psize"]

    def map_bytes(self) -> int:
        """Return the size of the map, the most that the file can hold before the map grows."""
        return self._environment.info()["map_size"]

    def readers(self) -> int:
        """Return how many reader slots are in use, over all processes."""
        return self._environment.info()["num_readers"]

    def _check_readers(self) -> None:
        now = time.monotonic()
        if now - self._last_reader_check > _READER_CHECK_SECONDS:
            self._last_reader_check = now
            self._environment.reader_check()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only writer over several steps; ``write`` may be called within.

        ``BusyError`` as in ``write``; others get it who wait longer than about a second.
        """
        with self._locked():
            self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if self._is_alone:
            yield
            return
        self._write_lock.acquire(progress=self.commits)
        try:
            yield
        finally:
            self._write_lock.release()

    def commits(self) -> int:
        """Return the number of the last commit, by which one sees that other writers work."""
        return self._environment.info()["last_txnid"] if self._is_open else 0

    def _translated(self, error: lmdb.Error | OSError, folder: str | None = None) -> SidekeepError:
        """Return the error that a caller understands. ``folder``: what was written to."""
        return translated(error, self.path, folder or self.folder)

    def copy(self, target: str) -> None:
        """Write a compacted copy of this moment to the new file ``target``."""
        try:
            self._environment.copy(target, compact=True)
        except lmdb.Error as error:
            raise self._translated(error, os.path.dirname(os.path.abspath(target))) from error

    def close(self) -> None:
        """Close the file and give back the locks."""
        self._environment.close()
        self.bell.close()
        self._use_lock.close()
        self._write_lock.close()
