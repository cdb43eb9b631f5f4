"""Change events of an area, told from the journal.

Rules:

* A listener has heard everything up to a sequence number. What comes after it is told call by call,
  in order, with old and new values if it wants them.
* If the journal no longer has all of that, the listener is told of a gap and goes on from now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sidekeep.store import journal, records
from sidekeep.store.documents import Change
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction


class ChangedItem(NamedTuple):
    """One item of an event; records are ``None`` where there was or is no value."""

    key: str
    before: Record | None
    after: Record | None


class Event(NamedTuple):
    """What one call changed: items in byte order of their keys."""

    seq: int
    items: list[ChangedItem]


def has_gap(transaction: Transaction, heard: int) -> bool:
    """Whether something after ``heard`` is no longer in the journal (or was never there)."""
    newest = transaction.head.seq
    if heard == newest:
        return False
    return heard > newest or journal.first(transaction) > heard + 1


def since(
    transaction: Transaction, heard: int, keys: frozenset[str] | None, *, values: bool
) -> Iterator[Event]:
    """Yield the events after ``heard``. ``keys``: only these items; ``values``: read them."""

    def read(number: int) -> Record | None:
        return records.read(transaction, number) if number and values else None

    for call in journal.since(transaction, heard):
        items = [
            ChangedItem(change.key, read(change.before), read(change.after))
            for change in call.changes
            if isinstance(change, Change) and (keys is None or change.key in keys)
        ]
        yield Event(call.seq, items)
