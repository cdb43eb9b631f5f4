"""Records: stored values under a number, counted by reference.

A record never changes; a new value is a new record. Documents, conversations and the journal refer
to records by number, so that keeping an old value costs a reference and not a copy. Each row
carries a checksum over everything but its count, compared when the record is read.
"""

from __future__ import annotations

import msgspec

from sidekeep.errors import DamagedError
from sidekeep.store import blobs, rope
from sidekeep.store.layout import (
    FORM_ROPE,
    FORM_TEXT,
    NUMBER,
    RECORD_HEADER,
    RECORD_SEARCHED,
    RECORD_VERSION,
    RECORDS,
    SEARCH,
)
from sidekeep.store.rope import Blob, Value
from sidekeep.store.transaction import Transaction, damaged


class Record:
    """A record as it lies in the file.

    ``size``: bytes of its text as ``chrome.storage`` counts them. ``body``: memory of the
    transaction, either the JSON text or the encoded rope.
    """

    __slots__ = ("_pieces", "body", "flags", "form", "references", "size")

    def __init__(self, row: memoryview) -> None:
        version, self.form, self.flags, self.references, expected, self.size = (
            RECORD_HEADER.unpack_from(row)
        )
        self.body = row[RECORD_HEADER.size :]
        self._pieces: list[bytes | Blob] | None = None
        if version != RECORD_VERSION or expected != _checksum(self.form, self.size, self.body):
            raise damaged("A stored value does not fit its checksum.")

    @property
    def pieces(self) -> list[bytes | Blob]:
        """The value's rope; texts are copied, blobs are references."""
        found = self._pieces
        if found is None:
            text = self.form == FORM_TEXT
            found = self._pieces = [bytes(self.body)] if text else rope.decode(self.body)
        return found

    @property
    def pictures(self) -> list[Blob]:
        """The blobs that are pictures."""
        if self.form == FORM_TEXT:
            return []
        return [piece for piece in self.pieces if isinstance(piece, Blob) and piece.is_picture]

    def equals(self, value: Value) -> bool:
        """Whether the record holds this value: the order of keys in objects does not matter.

        Values with long strings are compared as texts; the stub sorts keys, so that is the same.
        """
        form = FORM_TEXT if value.is_text else FORM_ROPE
        if form != self.form:
            return False
        if self.body == value.body:
            return True
        # Another order of keys keeps the size.
        if form != FORM_TEXT or self.size != value.size or b"{" not in value.body:
            return False
        return _sorted(self.body) == _sorted(value.body)


def _sorted(text: bytes | memoryview) -> bytes:
    """Return the text with the keys of its objects in order."""
    return msgspec.json.encode(msgspec.json.decode(text), order="deterministic")


def _checksum(form: int, size: int, body: bytes | memoryview) -> int:
    return rope.checksum(NUMBER.pack(size << 8 | form), body)


def _row(form: int, flags: int, references: int, size: int, body: bytes | memoryview) -> bytes:
    sum_ = _checksum(form, size, body)
    return RECORD_HEADER.pack(RECORD_VERSION, form, flags, references, sum_, size) + body


def _counted(transaction: Transaction, number: int, record: Record, references: int) -> None:
    """Write the record's row with another count."""
    row = _row(record.form, record.flags, references, record.size, record.body)
    transaction.put(RECORDS, NUMBER.pack(number), row)


def add(
    transaction: Transaction, value: Value, references: int = 1, searched: bytes | None = None
) -> int:
    """Store a value with that many references and return its record's number (1 or more).

    ``searched``: the row by which a search finds it, if it should.
    """
    form = FORM_TEXT
    if not value.is_text:
        form = FORM_ROPE
        for blob in value.blobs:
            blobs.add(transaction, blob)
    head = transaction.head
    head.records += 1
    flags = 0
    if searched is not None:
        flags = RECORD_SEARCHED
        transaction.put(SEARCH, NUMBER.pack(head.records), searched)
    row = _row(form, flags, references, value.size, value.body)
    transaction.put(RECORDS, NUMBER.pack(head.records), row)
    return head.records


def read(transaction: Transaction, number: int) -> Record:
    """Return the record; ``DamagedError`` if it is missing or does not fit its checksum."""
    row = transaction.get(RECORDS, NUMBER.pack(number))
    if row is None or len(row) < RECORD_HEADER.size:
        raise damaged("A stored value is missing.")
    return Record(row)


def read_if_good(transaction: Transaction, number: int) -> Record | None:
    """Return the record, or ``None`` if it is missing or does not fit its checksum.

    For changes, which must not fail for ever because something old is damaged.
    """
    try:
        return read(transaction, number)
    except DamagedError:
        return None


def are_equal(transaction: Transaction, one: int, two: int) -> bool:
    """Whether two records hold the same text; not if one of them is damaged."""
    first, second = read_if_good(transaction, one), read_if_good(transaction, two)
    if first is None or second is None:
        return False
    return first.form == second.form and first.body == second.body


def holds(transaction: Transaction, number: int, value: Value) -> bool:
    """Whether the record is good and holds this value (see ``Record.equals``)."""
    record = read_if_good(transaction, number)
    return record is not None and record.equals(value)


def refer(transaction: Transaction, number: int, references: int = 1) -> Record:
    """Add references to a record; return it, of which ``pieces`` and ``size`` stay valid."""
    record = read(transaction, number)
    _ = record.pieces  # copied out of the file's memory, which the write below takes away
    _counted(transaction, number, record, record.references + references)
    return record


def release(transaction: Transaction, number: int) -> None:
    """Take a reference off; without any left the record and its blobs' references go.

    A damaged record stays where it is: what it refers to cannot be trusted.
    """
    record = read_if_good(transaction, number)
    if record is None:
        return
    if record.references > 1:
        _counted(transaction, number, record, record.references - 1)
        return
    if record.form == FORM_ROPE:
        for piece in record.pieces:
            if isinstance(piece, Blob):
                blobs.drop(transaction, piece.hash)
    if record.flags & RECORD_SEARCHED:
        transaction.delete(SEARCH, NUMBER.pack(number))
    transaction.delete(RECORDS, NUMBER.pack(number))


def weight(transaction: Transaction, number: int) -> int:
    """Return about how many bytes would become free if nothing else held this record."""
    record = read_if_good(transaction, number)
    if record is None:
        return 0
    total = len(record.body)
    if record.form == FORM_ROPE:
        for piece in record.pieces:
            if isinstance(piece, Blob):
                references, length = blobs.references_and_length(transaction, piece.hash)
                if references <= 1:
                    total += length
    return total
