"""Figures about a store, for people and for ``host.status``."""

from __future__ import annotations

import lmdb

from sidekeep.store import journal
from sidekeep.store.environment import Store
from sidekeep.store.layout import CONVERSATIONS, FORMAT


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
            "conversations": transaction.count(CONVERSATIONS),
            "journal": {
                "first": journal.first(transaction),
                "last": head.seq,
                "rows": head.journal_rows,
            },
            "readers": store.readers(),
            "lastBackup": None,
        }


def versions() -> dict[str, object]:
    """Return the versions of the file format and of LMDB."""
    return {"format": FORMAT, "lmdb": ".".join(map(str, lmdb.version()))}
