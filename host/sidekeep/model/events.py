"""Change events of an area, told from the journal.

Rules:

* A listener has heard everything up to a sequence number. What comes after it is told call by call,
  in order, with old and new values if it wants them.
* If the journal no longer has all of that, the listener is told of a gap and goes on from now.
* The journal says of a list which entries went and came. Old and new arrays are rebuilt from what
  the list holds now, backwards, and only for a listener who wants them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from sidekeep.store import journal, lists, records
from sidekeep.store.journal import LIST, Call, Splice
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction

Side = Record | list[Record] | None
"""A value before or after: a plain one, an array's entries, or none."""


class ChangedItem(NamedTuple):
    """One item of an event; ``None`` where there was or is no value (or none is wanted)."""

    key: str
    before: Side
    after: Side


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
    calls = [
        Call(
            call.seq,
            [change for change in call.changes if keys is None or change.key in keys],
        )
        for call in journal.since(transaction, heard)
    ]
    sides = _arrays(transaction, calls) if values else {}
    for call in calls:
        items = []
        # A call may change a list in several steps: one item, from the first to the last.
        for key, steps in groupby(call.changes, lambda change: change.key):
            found = list(steps)
            if values:
                before = _side(transaction, found[0].before, sides.get((call.seq, key, False)))
                after = _side(transaction, found[-1].after, sides.get((call.seq, key, True)))
                items.append(ChangedItem(key, before, after))
            else:
                items.append(ChangedItem(key, None, None))
        yield Event(call.seq, items)


def _side(transaction: Transaction, held: int, array: list[int] | None) -> Side:
    if held == LIST:
        assert array is not None
        return [records.read(transaction, number) for number in array]
    return records.read(transaction, held) if held else None


def _arrays(
    transaction: Transaction, calls: Sequence[Call]
) -> dict[tuple[int, str, bool], list[int]]:
    """Return the records of each list before and after each call that changed it.

    Under the call's sequence number, the key, and whether it is the state after.
    """
    now: dict[str, list[int]] = {}
    sides: dict[tuple[int, str, bool], list[int]] = {}
    for call in reversed(calls):
        for change in reversed(call.changes):
            if not isinstance(change, Splice):
                continue
            key = change.key
            if change.after == LIST:
                after = now.get(key)
                if after is None:
                    found = lists.find(transaction, key)
                    assert found is not None
                    after = [entry.record for entry in found.entries()]
                sides.setdefault((call.seq, key, True), after)
            else:
                after = []
            if change.before == LIST:
                end = change.at + len(change.inserted)
                removed = [record for _, record in change.removed]
                before = after[: change.at] + removed + after[end:]
                sides[call.seq, key, False] = now[key] = before
    return sides
