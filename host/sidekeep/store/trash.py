"""The trash: what calls removed from lists, kept so that it can be brought back.

Rules:

* One row per call that removed something, under the sequence number of the call. It refers to the
  records that went (counted like any other reference), never copies them.
* A row is kept for ``KEPT_SECONDS`` or until the trash is emptied.

A row is a CRC-32 and a msgpack array (``Removal``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.store import records
from sidekeep.store.layout import NUMBER, TRASH
from sidekeep.store.sealed import seal, unseal
from sidekeep.store.transaction import Transaction, damaged

VERSION = 1
KEPT_SECONDS = 30 * 24 * 3600


class Gone(msgspec.Struct, array_like=True):
    """An entry that was removed: its index, the id of the entry before it (0: none), id, record."""

    index: int
    previous: int
    id: int
    record: int


class Part(msgspec.Struct, array_like=True):
    """What one call removed from one list.

    ``whole``: everything was removed. ``word``: the conversation that it was.
    """

    key: str
    whole: bool
    word: str
    entries: list[Gone]


class Removal(msgspec.Struct, array_like=True):
    """A row of the trash. ``what``: the method that removed; ``time``: seconds since 1970."""

    version: int
    what: str
    time: float
    parts: list[Part]

    @property
    def records(self) -> list[int]:
        """The records that the row refers to."""
        return [gone.record for part in self.parts for gone in part.entries]


def keep(transaction: Transaction, what: str, parts: list[Part], revision: int) -> None:
    """Keep what the call ``revision`` removed. Adds a reference to each record."""
    _write(transaction, revision, Removal(VERSION, what, time.time(), parts))


def keep_only(transaction: Transaction, number: int, removal: Removal, parts: list[Part]) -> None:
    """Keep these parts of a removal, of which the others were brought back; none: forget it."""
    if not parts:
        drop(transaction, number)
        return
    # What is left is referred to again first: the trash may be all that holds it.
    _write(transaction, number, Removal(VERSION, removal.what, removal.time, parts))
    for record in removal.records:
        records.release(transaction, record)


def _write(transaction: Transaction, revision: int, removal: Removal) -> None:
    for number in removal.records:
        records.refer(transaction, number)
    transaction.put(TRASH, NUMBER.pack(revision), seal(msgspec.msgpack.encode(removal)))


def find(transaction: Transaction, number: int) -> Removal:
    """Return what the call ``number`` removed; ``NotFoundError`` if it is not in the trash."""
    row = transaction.get(TRASH, NUMBER.pack(number)) if 0 <= number < 2**64 else None
    if row is None:
        raise NotFoundError(
            "What is to be brought back is not in the trash (any more).",
            next="trash.list tells what is",
        )
    return _decode(row)


def newest_first(transaction: Transaction) -> Iterator[tuple[int, Removal]]:
    """Yield what is in the trash, under the sequence numbers of the calls, newest first."""
    for key, row in transaction.rows_back(TRASH, b"\xff" * 9):
        yield NUMBER.unpack(key)[0], _decode(row)


def drop(transaction: Transaction, number: int) -> None:
    """Forget what the call ``number`` removed."""
    for record in find(transaction, number).records:
        records.release(transaction, record)
    transaction.delete(TRASH, NUMBER.pack(number))


def expire(transaction: Transaction, now: float | None = None) -> int:
    """Forget what is older than ``KEPT_SECONDS``; return how many rows went."""
    moment = time.time() if now is None else now
    old = []
    for key, row in transaction.rows(TRASH):
        if _decode(row).time > moment - KEPT_SECONDS:
            break
        old.append(NUMBER.unpack(key)[0])
    for number in old:
        drop(transaction, number)
    return len(old)


def _decode(row: memoryview) -> Removal:
    removal = msgspec.msgpack.decode(unseal(row, "A row of the trash"), type=Removal)
    if removal.version != VERSION:
        raise damaged(f"A row of the trash has the unknown version {removal.version}.")
    return removal
