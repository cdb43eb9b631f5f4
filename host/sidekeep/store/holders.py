"""Which conversations hold a picture, so that each can say what it alone takes up.

Rules:

* One row per picture and list, with a count of the entries that hold it, and one row per picture
  with the count of its lists. A list's ``own`` counts the bytes of pictures that no other list
  holds, ``shared`` those that another one holds too.
* The figures of all lists concerned change in the transaction that adds or removes an entry, so
  that listing sessions reads no entry.
"""

from __future__ import annotations

import struct
from collections import defaultdict

from sidekeep.store import blobs
from sidekeep.store.layout import HOLDERS, NUMBER
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction, damaged

_COUNT = struct.Struct(">I")


class Tally:
    """What an entry's coming or going changes, gathered over one call.

    ``text``: bytes of JSON text without pictures, of the list itself. ``own`` and ``shared``: bytes
    of pictures, by the key of a list (that of the list itself too).
    """

    __slots__ = ("_key", "_number", "_transaction", "own", "shared", "text")

    def __init__(self, transaction: Transaction, number: int, key: str) -> None:
        self._transaction = transaction
        self._number = number
        self._key = key
        self.text = 0
        self.own: defaultdict[str, int] = defaultdict(int)
        self.shared: defaultdict[str, int] = defaultdict(int)

    def add(self, record: Record) -> None:
        """Count an entry that came."""
        self.text += _text_bytes(record)
        for blob in record.pictures:
            self._add(blob.hash)

    def remove(self, record: Record) -> None:
        """Count an entry that went."""
        self.text -= _text_bytes(record)
        for blob in record.pictures:
            self._remove(blob.hash)

    def _counts(self, name: bytes) -> tuple[int, int]:
        """Return how often this list holds the picture, and how many lists do."""
        mine = self._transaction.get(HOLDERS, name + NUMBER.pack(self._number))
        lists = self._transaction.get(HOLDERS, name)
        return (
            0 if mine is None else _COUNT.unpack_from(mine)[0],
            0 if lists is None else _COUNT.unpack_from(lists)[0],
        )

    def _write(self, name: bytes, count: int, lists: int) -> None:
        transaction = self._transaction
        key = name + NUMBER.pack(self._number)
        if count:
            transaction.put(HOLDERS, key, _COUNT.pack(count) + self._key.encode())
        else:
            transaction.delete(HOLDERS, key)
        if lists:
            transaction.put(HOLDERS, name, _COUNT.pack(lists))
        else:
            transaction.delete(HOLDERS, name)

    def _other(self, name: bytes) -> str:
        """Return the key of the one other list that holds the picture."""
        for key, row in self._transaction.rows(HOLDERS, name + b"\0"):
            if NUMBER.unpack_from(key, len(name))[0] != self._number:
                return str(row[_COUNT.size :], "utf-8")
        raise damaged("A picture should be held by another list, and is not.")

    def _add(self, name: bytes) -> None:
        mine, lists = self._counts(name)
        if mine:
            self._write(name, mine + 1, lists)
            return
        self._write(name, 1, lists + 1)
        size = blobs.references_and_length(self._transaction, name)[1]
        if not lists:
            self.own[self._key] += size
            return
        self.shared[self._key] += size
        if lists == 1:
            other = self._other(name)
            self.own[other] -= size
            self.shared[other] += size

    def _remove(self, name: bytes) -> None:
        mine, lists = self._counts(name)
        if mine != 1:
            self._write(name, max(mine - 1, 0), lists)
            return
        self._write(name, 0, lists - 1)
        size = blobs.references_and_length(self._transaction, name)[1]
        if lists == 1:
            self.own[self._key] -= size
            return
        self.shared[self._key] -= size
        if lists == 2:
            other = self._other(name)
            self.own[other] += size
            self.shared[other] -= size


def _text_bytes(record: Record) -> int:
    size: int = record.size
    return size - sum(len(blob.prefix) + blob.length for blob in record.pictures)
