"""Copies of a store: made while it is in use, checked, and put in its place again.

Rules:

* A backup is one moment of the store, compacted, verified before it gets its name, and a plain
  LMDB file.
* A restore needs the store for itself (``use.lock``), checks the copy first, keeps what it
  replaces under a dated name, and gives the file a new epoch, so that nobody compares sequence
  numbers across the two.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Iterator

import lmdb
import msgspec

from sidekeep.errors import ConflictError, DamagedError, NotFoundError
from sidekeep.store import verify
from sidekeep.store.damage import problem_of
from sidekeep.store.environment import DATA_FILE, Store
from sidekeep.store.files import make_private_folder, sync_folder
from sidekeep.store.founding import About, read_about
from sidekeep.store.layout import META
from sidekeep.store.locks import FileLock
from sidekeep.store.transaction import Transaction


def create(store: Store, target: str) -> int:
    """Write a checked copy of an open store to the file ``target``; return its size in bytes.

    ``ConflictError`` if ``target`` exists, ``NotFoundError`` if its folder does not,
    ``DiskFullError``, ``DamagedError`` if the copy does not pass the check. In all these cases
    nothing is left behind.
    """
    if os.path.exists(target):
        raise ConflictError(f"The file {target} exists already.", next="choose another name")
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise NotFoundError(f"The folder {folder} does not exist.", next="make it first")
    unfinished = f"{target}.{os.getpid()}.new"
    mask = os.umask(0o077)
    try:
        store.copy(unfinished)
        check(unfinished)
        os.link(unfinished, target)  # unlike a rename, this never replaces a file
    finally:
        os.umask(mask)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
    sync_folder(folder)
    return os.path.getsize(target)


def check(path: str) -> About:
    """Check a copy completely and return what it says of itself; ``DamagedError`` if it is bad."""
    problem = problem_of(path)
    if problem is not None:
        raise DamagedError(f"The file {path} {problem}.")
    with opened_copy(path) as transaction:
        about = read_about(path, transaction)
        found = verify.problems(transaction)
    if found:
        raise DamagedError(f"The file {path} is damaged: {found[0]} ({len(found)} problems).")
    return about


@contextlib.contextmanager
def opened_copy(path: str) -> Iterator[Transaction]:
    """Give a read transaction on a copy that nobody writes to (see ``check``)."""
    environment = lmdb.open(path, subdir=False, readonly=True, lock=False, create=False)
    try:
        transaction = Transaction(environment, writable=False)
        try:
            yield transaction
        finally:
            transaction.txn.abort()
    finally:
        environment.close()


def restore(folder: str, source: str) -> str | None:
    """Put the copy ``source`` in the place of the store in ``folder``.

    Returns where the file that was there lies now, or ``None`` if there was none. ``BusyError`` if
    a host has the store open (close the browser first), ``DamagedError`` if the copy is bad; then
    nothing was changed.
    """
    check(source)
    make_private_folder(folder)
    lock = FileLock(os.path.join(folder, "use.lock"), "using this store (close the browser)")
    try:
        lock.acquire()
        path = os.path.join(folder, DATA_FILE)
        unfinished = path + ".new"
        shutil.copyfile(source, unfinished)
        os.chmod(unfinished, 0o600)
        _renew_epoch(unfinished)
        aside = None
        if os.path.exists(path):
            aside = _kept_aside(path)
        os.replace(unfinished, path)
        if os.path.exists(path + "-lock"):
            os.unlink(path + "-lock")
        sync_folder(folder)
        return aside
    finally:
        lock.close()


def _kept_aside(path: str) -> str:
    """Give a file a dated name beside its own, which no other file has; return it.

    The file keeps its own name as well, where the disk can do that: so there is one at any moment.
    """
    stamp = time.strftime("%Y-%m-%dT%H%M%S")
    for number in itertools.count(1):
        aside = f"{path}.{stamp}" if number == 1 else f"{path}.{stamp}-{number}"
        if os.path.exists(aside):
            continue
        try:
            os.link(path, aside)
        except OSError:  # FAT has no second names
            os.rename(path, aside)
        return aside
    raise AssertionError("unreachable")


def _renew_epoch(path: str) -> None:
    environment = lmdb.open(path, subdir=False, create=False, lock=False, map_size=1 << 40)
    try:
        transaction = Transaction(environment, writable=True)
        about = read_about(path, transaction)
        about.epoch = os.urandom(8).hex()
        transaction.put(META, b"store", msgspec.json.encode(about))
        transaction.txn.commit()
    finally:
        environment.close()
