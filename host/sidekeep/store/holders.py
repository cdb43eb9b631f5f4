"""Which conversations hold a picture, so that each can say what it alone takes up.

Rules:

* One row per picture and list, with a count of the entries that hold it. A list's ``own`` counts
  the bytes of pictures that no other list holds, ``shared`` those that another one holds too.
* The figures of all lists concerned change in the transaction that adds or removes an entry, so
  that listing sessions reads no entry.
"""

from __future__ import annotations

import struct
from collections import defaultdict

from sidekeep.store import blobs
from sidekeep.store.layout import HOLDERS, NUMBER
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction

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

    def _others(self, name: bytes) -> tuple[int, list[str]]:
        """Return how often this list holds the picture, and up to two other lists that do."""
        mine = 0
        others: list[str] = []
        for key, row in self._transaction.rows(HOLDERS, name):
            if key[: len(name)] != name:
                break
            if NUMBER.unpack_from(key, len(name))[0] == self._number:
                (mine,) = _COUNT.unpack_from(row)
            elif len(others) < 2:
                others.append(str(row[_COUNT.size :], "utf-8"))
        return mine, others

    def _write(self, name: bytes, count: int) -> None:
        key = name + NUMBER.pack(self._number)
        if count:
            self._transaction.put(HOLDERS, key, _COUNT.pack(count) + self._key.encode())
        else:
            self._transaction.delete(HOLDERS, key)

    def _add(self, name: bytes) -> None:
        mine, others = self._others(name)
        self._write(name, mine + 1)
        if mine:
            return
        size = blobs.references_and_length(self._transaction, name)[1]
        if not others:
            self.own[self._key] += size
            return
        self.shared[self._key] += size
        if len(others) == 1:
            self.own[others[0]] -= size
            self.shared[others[0]] += size

    def _remove(self, name: bytes) -> None:
        mine, others = self._others(name)
        self._write(name, max(mine - 1, 0))
        if mine != 1:
            return
        size = blobs.references_and_length(self._transaction, name)[1]
        if not others:
            self.own[self._key] -= size
            return
        self.shared[self._key] -= size
        if len(others) == 1:
            self.own[others[0]] += size
            self.shared[others[0]] -= size


def _text_bytes(record: Record) -> int:
    size: int = record.size
    return size - sum(len(blob.prefix) + blob.length for blob in record.pictures)
