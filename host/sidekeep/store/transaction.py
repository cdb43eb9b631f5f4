"""One LMDB transaction as the rest of the store sees it: rows of tables, and the head.

Rules:

* Everything that changes in one frame of a caller goes through one write transaction; each of its
  calls runs in a nested one (``with transaction.nested()``), so that a call that fails leaves no
  trace and the others stand.
* The *head* is one small row of counters. It is read once per write transaction, changed in memory
  and written once, by ``finish``.
* Memory of rows read (``memoryview`` into the map) is valid only while the transaction lives and,
  in a write transaction, only until the next write. Copy what must live longer.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import lmdb

from sidekeep.errors import DamagedError
from sidekeep.store.layout import (
    CRC,
    META,
)

if TYPE_CHECKING:
    from sidekeep.store.lists import StoredList

_HEAD = struct.Struct(">QQQQQQQQQ")
HEAD_KEY = b"head"

# What LMDB raises where its pages are not what it wrote.
BROKEN = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.IncompatibleError,
    lmdb.PanicError,
    lmdb.CursorFullError,
)


class Head:
    """The counters of the last commit."""

    __slots__ = (
        "blob_bytes",
        "blobs",
        "items",
        "journal_rows",
        "journal_weight",
        "lists",
        "records",
        "seq",
        "size",
    )

    def __init__(self, numbers: tuple[int, ...] = (0,) * 9) -> None:
        (
            self.seq,  # sequence number of the last change
            self.records,  # number of the newest record
            self.lists,  # number of the newest list
            self.items,  # documents
            self.size,  # bytes of the documents as chrome.storage counts them
            self.blobs,  # pieces of content, and their bytes
            self.blob_bytes,
            self.journal_rows,
            self.journal_weight,  # bytes that only the journal still holds
        ) = numbers

    def numbers(self) -> tuple[int, ...]:
        """Return all counters, in the order in which they are stored."""
        return (
            self.seq,
            self.records,
            self.lists,
            self.items,
            self.size,
            self.blobs,
            self.blob_bytes,
            self.journal_rows,
            self.journal_weight,
        )

    def pack(self) -> bytes:
        """Return the row: the counters and their checksum."""
        packed = _HEAD.pack(*self.numbers())
        return packed + CRC.pack(zlib.crc32(packed))

    @classmethod
    def unpack(cls, row: bytes | memoryview) -> Head:
        """Read the row; ``DamagedError`` if its checksum does not fit."""
        if len(row) != _HEAD.size + 4 or zlib.crc32(row[:-4]) != CRC.unpack(row[-4:])[0]:
            raise damaged("The counters of the store do not fit their checksum.")
        return cls(_HEAD.unpack(row[:-4]))


def damaged(message: str) -> DamagedError:
    """Return a ``DamagedError`` with the way out that fits all of them."""
    return DamagedError(
        message, next="keep a copy of the folder and restore a backup of store.mdb into it"
    )


class Transaction:
    """A read or write transaction. Made by ``Store.read`` and ``Store.write``.

    ``small_chunks``: content is written in smaller chunks than usual, because the free space of the
    file lies in small pieces. ``lists``: the lists that a write transaction has open, by their keys
    (see ``lists.find``).
    """

    __slots__ = ("_environment", "_head", "_stored", "lists", "small_chunks", "txn", "writable")

    def __init__(
        self, environment: lmdb.Environment, *, writable: bool, small_chunks: bool = False
    ) -> None:
        self._environment = environment
        self.txn = environment.begin(write=writable, buffers=True)
        self.writable = writable
        self.small_chunks = small_chunks
        self.lists: dict[str, StoredList] = {}
        self._head: Head | None = None
        self._stored: tuple[int, ...] = ()

    @property
    def head(self) -> Head:
        """The counters as this transaction sees them."""
        if self._head is None:
            row = self.get(META, HEAD_KEY)
            if row is None:
                raise damaged("The store has no counters.")
            self._head = Head.unpack(row)
            self._stored = self._head.numbers()
        return self._head

    def take_over(self, source: Transaction, *, staying: tuple[bytes, ...] = ()) -> None:
        """Put all rows of another store in the place of those that are here, counters too.

        ``staying``: the tables that are not replaced.
        """
        first_bytes = {table[0] for table in staying}
        kept = [
            (table, bytes(key), bytes(row)) for table in staying for key, row in self.rows(table)
        ]
        with self.txn.cursor() as cursor:
            if cursor.first():
                while cursor.delete():
                    pass
        with source.txn.cursor() as cursor:
            for key, row in cursor:
                if key[0] not in first_bytes:
                    self.txn.put(bytes(key), bytes(row), append=True)
        for table, place, content in kept:
            self.put(table, place, content)
        self.lists.clear()
        self._head = None
        self._stored = ()

    def finish(self) -> None:
        """Write the head if it changed; to be called once, before the commit."""
        if self._head is not None and self._head.numbers() != self._stored:
            self.put(META, HEAD_KEY, self._head.pack())

    def get(self, table: bytes, key: bytes) -> memoryview | None:
        """Return the row, or ``None``; ``DamagedError`` if the tree of the file is broken."""
        try:
            return self.txn.get(table + key)
        except BROKEN as error:
            raise damaged(f"The data file is damaged ({error}).") from error

    def put(self, table: bytes, key: bytes, row: bytes | memoryview) -> None:
        """Write a row, replacing one that has this key."""
        self.txn.put(table + key, row)

    def delete(self, table: bytes, key: bytes) -> bool:
        """Remove a row; whether there was one."""
        return self.txn.delete(table + key)

    def rows(self, table: bytes, start: bytes = b"") -> Iterator[tuple[memoryview, memoryview]]:
        """Yield ``(key, row)`` of a table in key order from ``start`` on.

        Nothing may be written meanwhile.
        """
        first = table[0]
        try:
            with self.txn.cursor() as cursor:
                if cursor.set_range(table + start):
                    for key, row in cursor.iternext(keys=True, values=True):
                        if key[0] != first:
                            break
                        yield key[1:], row
        except BROKEN as error:
            raise damaged(f"The data file is damaged ({error}).") from error

    def rows_back(self, table: bytes, before: bytes) -> Iterator[tuple[memoryview, memoryview]]:
        """Yield ``(key, row)`` of a table in falling key order, keys below ``before`` only."""
        first = table[0]
        try:
            with self.txn.cursor() as cursor:
                there = cursor.set_range(table + before)
                if cursor.prev() if there else cursor.last():
                    for key, row in cursor.iterprev(keys=True, values=True):
                        if key[0] != first:
                            break
                        yield key[1:], row
        except BROKEN as error:
            raise damaged(f"The data file is damaged ({error}).") from error

    def first_row(self, table: bytes, start: bytes) -> tuple[memoryview, memoryview] | None:
        """Return the first ``(key, row)`` of a table from ``start`` on, or ``None``."""
        return next(self.rows(table, start), None)

    def count(self, table: bytes) -> int:
        """Return the number of rows of a table, which looks at each of them."""
        return sum(1 for _ in self.rows(table))

    def nested(self) -> _Nested:
        """Return a context in which all changes are kept, or none if it is left by an error."""
        return _Nested(self)


class _Nested:
    """A nested LMDB transaction that also restores what is in memory when it is given up."""

    __slots__ = ("_numbers", "_parent", "_transaction")

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def __enter__(self) -> Transaction:
        transaction = self._transaction
        self._numbers = transaction.head.numbers()
        self._parent = transaction.txn
        transaction.txn = transaction._environment.begin(
            parent=self._parent, write=True, buffers=True
        )
        return transaction

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        transaction = self._transaction
        child, transaction.txn = transaction.txn, self._parent
        if kind is None:
            child.commit()
        else:
            child.abort()
            transaction.lists.clear()  # what they say of themselves was given up too
            transaction._head = Head(self._numbers)
