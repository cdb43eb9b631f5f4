"""Figures about a store, for people and for ``host.status``."""

from __future__ import annotations

import lmdb

from sidekeep.store import blobs, documents, journal, lists, trash
from sidekeep.store.environment import Store
from sidekeep.store.layout import FORMAT, HASH_BYTES, HOLDERS
from sidekeep.store.transaction import Transaction


def figures(store: Store) -> dict[str, object]:
    """Return sizes (bytes), counts and versions of an open store, as ``host.status`` names them."""
    with store.read() as transaction:
        head = transaction.head
        return {
            "file": store.path,
            "bytes": store.used_bytes(),
            "mapBytes": store.map_bytes(),
            "maxBytes": store.max_size,
            "entries": head.items,
            "valueBytes": head.size,
            "blobs": head.blobs,
            "blobBytes": head.blob_bytes,
            "conversations": _conversations(transaction),
            "trash": _trash(transaction),
            "journal": {
                "first": journal.first(transaction),
                "last": head.seq,
                "rows": head.journal_rows,
            },
            "readers": store.readers(),
            "lastBackup": None,
        }


def _conversations(transaction: Transaction) -> dict[str, int]:
    """Return how many there are, the history included, and what they take up (bytes).

    ``text``: JSON text without pictures. ``own`` and ``shared``: pictures that one, or several
    conversations hold, each counted once.
    """
    total = {"count": 0, "entries": 0, "text": 0, "own": 0, "shared": 0}
    for document in documents.walk(transaction):
        found = None if document.number else lists.find(transaction, document.key)
        if found is None or not found.header.counted:
            continue
        total["count"] += 1
        total["entries"] += found.header.length
        total["text"] += found.header.text
        total["own"] += found.header.own
    shared = [
        bytes(key)
        for key, row in transaction.rows(HOLDERS)
        if len(key) == HASH_BYTES and int.from_bytes(row, "big") > 1
    ]
    total["shared"] = sum(blobs.references_and_length(transaction, name)[1] for name in shared)
    return total


def _trash(transaction: Transaction) -> dict[str, int]:
    removals = [removal for _, removal in trash.newest_first(transaction)]
    return {"items": len(removals), "entries": sum(len(one.records) for one in removals)}


def versions() -> dict[str, object]:
    """Return the versions of the file format and of LMDB."""
    return {"format": FORMAT, "lmdb": ".".join(map(str, lmdb.version()))}
