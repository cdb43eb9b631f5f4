"""Stored values as pieces of a reply: long strings are read from the store when they are sent."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator

from sidekeep.store import blobs
from sidekeep.store.layout import KIND_FRAGMENT
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.held import LongText
from sidekeep.wire.messages import Cut, Pieces


class StoredText(Cut):
    """A string of a reply that is read from the store only when it is sent."""

    __slots__ = ("_blob", "_transaction")

    def __init__(self, path: tuple[str | int, ...], blob: Blob, transaction: Transaction) -> None:
        super().__init__(path, len(blob.prefix) + blob.length)
        self._blob = blob
        self._transaction = transaction

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text; see ``blobs.text``."""
        return blobs.text(self._transaction, self._blob)


class HeldText(Cut):
    """A string of a reply that lies in memory: its escaped text in pieces that may be cut apart."""

    __slots__ = ("_pieces",)

    def __init__(self, path: tuple[str | int, ...], pieces: list[bytes]) -> None:
        super().__init__(path, sum(map(len, pieces)))
        self._pieces = pieces

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text."""
        return iter(self._pieces)


def held(cut: Cut) -> HeldText:
    """Read a string now, because the store may change before it is sent."""
    return HeldText(cut.path, list(cut.read()))


def value_pieces(transaction: Transaction, record: Record, path: tuple[str | int, ...]) -> Pieces:
    """Return the value of a record as pieces of a message in which it stands at ``path``."""
    pieces: Pieces = []
    for piece in record.pieces:
        if isinstance(piece, bytes):
            pieces.append(piece)
        elif piece.kind == KIND_FRAGMENT:
            pieces.extend(blobs.text(transaction, piece))
        else:
            pieces.append(StoredText((*path, *(piece.path or ())), piece, transaction))
    return pieces


def array_pieces(
    transaction: Transaction, values: Iterable[Record], path: tuple[str | int, ...]
) -> Pieces:
    """Return an array of values as pieces of a message in which it stands at ``path``."""
    pieces: Pieces = [b"["]
    for index, record in enumerate(values):
        if index:
            pieces.append(b",")
        pieces += value_pieces(transaction, record, (*path, index))
    pieces.append(b"]")
    return pieces


def jpeg_pieces(data: bytes, path: tuple[str | int, ...]) -> Pieces:
    """Return a JPEG as a data URL, a string that stands at ``path`` in a message."""
    url = b"data:image/jpeg;base64," + binascii.b2a_base64(data, newline=False)
    return [b'"', LongText(path, url), b'"']
