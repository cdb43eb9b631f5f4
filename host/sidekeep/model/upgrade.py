"""Bring a store of an older format into the present one, after a backup.

Format 1 kept ``history``, ``savedSessions`` and ``session_<id>`` as plain items.
"""

from __future__ import annotations

import os
import time

import msgspec

from sidekeep.model.frame import Frame
from sidekeep.model.keys import is_view
from sidekeep.model.updates import text_of
from sidekeep.model.views import assign, prepare_array
from sidekeep.store import backup, documents, records
from sidekeep.store.environment import Store
from sidekeep.store.founding import write_about
from sidekeep.store.journal import AnyChange
from sidekeep.store.layout import FORMAT
from sidekeep.store.transaction import Transaction

_OLD_CONVERSATIONS = b"v"


def needed(store: Store) -> bool:
    """Whether the store was made by an older version."""
    return store.about.format < FORMAT


def run(store: Store) -> None:
    """Write a dated copy beside the data file, then change it in one transaction.

    Raises what ``Store.copy`` and ``Store.write`` raise; then nothing has changed.
    """
    # Another host may be at it in the same second, or have died in it.
    stamp = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}"
    backup.create(store, os.path.join(store.folder, f"before-format-{FORMAT}-{stamp}.mdb"))

    def upgrade(transaction: Transaction) -> None:
        frame = Frame(transaction, None)
        frame.mutate(_split_arrays, None)
        for key in [bytes(key) for key, _ in transaction.rows(_OLD_CONVERSATIONS)]:
            transaction.delete(_OLD_CONVERSATIONS, key)
        write_about(transaction, msgspec.structs.replace(store.about, format=FORMAT))
        frame.finish(watched=False)

    store.write(upgrade)
    store.about = msgspec.structs.replace(store.about, format=FORMAT)


def _split_arrays(transaction: Transaction, revision: int) -> tuple[list[AnyChange], bytes]:
    from sidekeep.model.edit import Edit

    edit = Edit(transaction, revision, "upgrade")
    found = [one for one in documents.walk(transaction) if one.number and is_view(one.key)]
    for document in found:
        text = text_of(transaction, records.read(transaction, document.number))
        entries = prepare_array(document.key, text, ())
        if entries is not None:
            assign(edit, document.key, entries)
    return edit.finish()[0], b"{}"
