"""Documents: the plain items of a storage area, each a value under a key of any length.

A document's row says which record holds its value and at which sequence number it last changed
(its revision). What a change replaces is not released here: the reference goes to the journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sidekeep.store import records
from sidekeep.store.layout import (
    DOCUMENT,
    DOCUMENTS,
    is_long,
    row_key,
)
from sidekeep.store.records import Record
from sidekeep.store.rope import Value
from sidekeep.store.transaction import Transaction


class Change(NamedTuple):
    """One document that changed: its record before and after, 0 where there was or is none."""

    key: str
    before: int
    after: int


class Document(NamedTuple):
    """One document as found: its key, its record's number, its revision.

    ``size``: bytes of key and value as ``chrome.storage`` counts them.
    """

    key: str
    number: int
    revision: int
    size: int


def find(transaction: Transaction, key: str) -> Document | None:
    """Return the document of that name, or ``None``."""
    row = transaction.get(DOCUMENTS, row_key(key))
    if row is None:
        return None
    return Document(key, *DOCUMENT.unpack_from(row))


def read(transaction: Transaction, key: str) -> Record | None:
    """Return the record of the document's value, or ``None`` if there is no such document."""
    found = find(transaction, key)
    return None if found is None else records.read(transaction, found.number)


def walk(transaction: Transaction, prefix: str = "") -> Iterator[Document]:
    """Yield all documents, or those whose key begins with ``prefix`` (at most 400 bytes).

    In the byte order of their keys.
    """
    long: list[Document] = []
    start = prefix.encode()
    for row, value in transaction.rows(DOCUMENTS, start):
        if row[: len(start)] != start:
            break
        if is_long(row):
            # Long keys that begin alike lie in the order of their hashes: put them right.
            key = str(value[DOCUMENT.size :], "utf-8")
            long.append(Document(key, *DOCUMENT.unpack_from(value)))
            continue
        key = str(row, "utf-8")
        if long:
            yield from sorted(long)
            long = []
        yield Document(key, *DOCUMENT.unpack_from(value))
    yield from sorted(long)


def put(transaction: Transaction, key: str, value: Value, revision: int) -> Change | None:
    """Store a value; return what changed, or ``None`` if the same value was there.

    The new record gets two references (the document's and the journal's); the one that it replaces
    keeps its reference, which is the journal's from now on.
    """
    name = row_key(key)
    row = transaction.get(DOCUMENTS, name)
    before = 0
    head = transaction.head
    size = value.size + len(key.encode())
    if row is None:
        head.items += 1
    else:
        before, _, size_before = DOCUMENT.unpack_from(row)
        if records.holds(transaction, before, value):
            return None
        head.size -= size_before
    head.size += size
    after = records.add(transaction, value, references=2)
    place = DOCUMENT.pack(after, revision, size)
    transaction.put(DOCUMENTS, name, place + key.encode() if is_long(name) else place)
    return Change(key, before, after)


def remove(transaction: Transaction, key: str) -> Change | None:
    """Remove a document; return what changed, or ``None`` if there was none.

    The record's reference is the journal's from now on.
    """
    name = row_key(key)
    row = transaction.get(DOCUMENTS, name)
    if row is None:
        return None
    number, _, size = DOCUMENT.unpack_from(row)
    head = transaction.head
    head.items -= 1
    head.size -= size
    transaction.delete(DOCUMENTS, name)
    return Change(key, number, 0)
