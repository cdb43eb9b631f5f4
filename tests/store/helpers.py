"""Small steps that many tests of the store take."""

from __future__ import annotations

from collections.abc import Callable

from sidekeep.store import blobs, documents, journal, records, rope
from sidekeep.store.environment import Store
from sidekeep.store.journal import AnyChange, Call
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction


def text_of(transaction: Transaction, record: Record) -> bytes:
    """Return the whole JSON text of a record."""
    return b"".join(
        piece if isinstance(piece, bytes) else b"".join(blobs.text(transaction, piece))
        for piece in record.pieces
    )


def change(store: Store, job: Callable[[Transaction, int], list[AnyChange]]) -> list[AnyChange]:
    """Run ``job`` as the one call of a frame, with its row in the journal."""

    def frame(transaction: Transaction) -> list[AnyChange]:
        revision = transaction.head.seq + 1
        changes = job(transaction, revision)
        if changes:
            transaction.head.seq = revision
            journal.append(transaction, [Call(revision, changes)])
        return changes

    return store.write(frame)


def put(store: Store, key: str, text: bytes) -> None:
    """Store a document."""
    value = rope.build(text)

    def job(transaction: Transaction, revision: int) -> list[AnyChange]:
        made = documents.put(transaction, key, value, revision)
        return [] if made is None else [made]

    change(store, job)


def remove(store: Store, key: str) -> None:
    """Remove a document."""

    def job(transaction: Transaction, _: int) -> list[AnyChange]:
        made = documents.remove(transaction, key)
        return [] if made is None else [made]

    change(store, job)


def get(store: Store, key: str) -> bytes | None:
    """Return a document's text, or ``None``."""
    with store.read() as transaction:
        record = documents.read(transaction, key)
        return None if record is None else text_of(transaction, record)


def everything(store: Store) -> dict[str, bytes]:
    """Return all documents in the order in which they are walked."""
    with store.read() as transaction:
        return {
            document.key: text_of(transaction, records.read(transaction, document.number))
            for document in documents.walk(transaction)
        }
