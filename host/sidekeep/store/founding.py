"""Make a new store, and read what an existing one says of itself.

Rule: a data file is made under another name and renamed, so that a file of length zero is never a
new store. ``about.json`` is written last; from then on a missing data file is a loss.
"""

from __future__ import annotations

import contextlib
import os
import time

import lmdb
import msgspec

from sidekeep.errors import UnavailableError
from sidekeep.store.files import sync_folder, write_private_file
from sidekeep.store.layout import FORMAT, META
from sidekeep.store.transaction import HEAD_KEY, Head, Transaction, damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ABOUT_FILE = "about.json"
# Under this key lies the word of the conversation that is live.
LIVE_KEY = b"live"
# A row under this key says that there are turns which a new caller has to hear of (see ``turns``).
WAITING_KEY = b"waiting"


class About(msgspec.Struct, omit_defaults=True):
    """Who a store belongs to; the content of ``about.json`` and of ``meta``/``store``.

    ``epoch`` is a random word that changes when the file is replaced by a restore.
    """

    format: int
    epoch: str
    extension: str
    profile: str
    created: float
    browser: str | None = None


def found(
    path: str,
    about: About,
    open_environment: Callable[[str], lmdb.Environment],
) -> None:
    """Make the data file ``path``, in the folder of which the caller holds the writer's lock.

    Does nothing if it is there. ``DamagedError`` if it was there once and is gone.
    """
    if os.path.exists(path):  # another process was faster
        return
    folder = os.path.dirname(path)
    if os.path.exists(os.path.join(folder, ABOUT_FILE)):
        raise damaged(f"The data file {path} is gone.")
    unfinished = path + ".new"
    for leftover in (unfinished, unfinished + "-lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(leftover)
    environment = open_environment(unfinished)
    try:
        transaction = Transaction(environment, writable=True)
        write_about(transaction, about)
        transaction.put(META, HEAD_KEY, Head().pack())
        transaction.put(META, LIVE_KEY, new_word().encode())
        transaction.finish()
        transaction.txn.commit()
    finally:
        environment.close()
    os.unlink(unfinished + "-lock")
    os.rename(unfinished, path)
    note(folder, about)
    sync_folder(folder)


def note(folder: str, about: About) -> None:
    """Write ``about.json`` if it is not there."""
    path = os.path.join(folder, ABOUT_FILE)
    if not os.path.exists(path):
        write_private_file(path, msgspec.json.encode(about))


def new_about(extension: str, profile: str) -> About:
    """Return what a new store says of itself."""
    return About(FORMAT, os.urandom(8).hex(), extension, profile, time.time())


def write_about(transaction: Transaction, about: About) -> None:
    """Write what the store says of itself into the store."""
    transaction.put(META, b"store", msgspec.json.encode(about))


def new_word() -> str:
    """Return a random word for a conversation."""
    return os.urandom(8).hex()


def live_word(transaction: Transaction) -> str:
    """Return the word of the conversation that is live."""
    row = transaction.get(META, LIVE_KEY)
    if row is None:
        raise damaged("The store does not say which conversation is live.")
    return str(row, "utf-8")


def turns_wait(transaction: Transaction) -> bool:
    """Whether there are turns that run, or were cut off and nobody was told.

    Asked by every hello: it looks at no other page of the file than the counters are on, and what
    turns are need not be imported.
    """
    return transaction.get(META, WAITING_KEY) is not None


def read_about(path: str, transaction: Transaction) -> About:
    """Return what the store says of itself; ``DamagedError`` if it is none of Sidekeep.

    ``UnavailableError`` if a newer version wrote it.
    """
    row = transaction.get(META, b"store")
    if row is None:
        raise damaged(f"The file {path} is no store of Sidekeep.")
    try:
        about = msgspec.json.decode(row, type=About)
    except msgspec.DecodeError as error:
        raise damaged(f"The file {path} does not say what it is.") from error
    if about.format > FORMAT:
        raise UnavailableError(
            f"The store has format {about.format}; this version reads up to {FORMAT}.",
            next="install the newer version of Sidekeep that wrote it",
        )
    return about
