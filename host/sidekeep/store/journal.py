"""The journal: what each commit changed, under a rising sequence number.

Rules:

* One row per frame of a caller, written in the transaction that makes the changes. Its key is the
  last sequence number in it; every call that changed something has a number of its own.
* A row refers to the records before and after each change; these references are counted like any
  other, so that events can be told, and a change taken back, without a copy.
* The journal is bounded: the oldest rows go once there are more than ``MOST_ROWS``, or once values
  that nothing else holds weigh more than ``MOST_WEIGHT``. While somebody listens, rows of the last
  ``RECENT_SECONDS`` may weigh up to ``MOST_RECENT_WEIGHT``. The newest row always stays.

A row is a CRC-32 and a msgpack array ``[version, first, time, weight, calls]``; a call is
``[seq, changes]``, a change ``[0, key, before, after]`` for a document or
``[1, key, before, after, at, removed, inserted, length]`` for a list, where ``removed`` and
``inserted`` are arrays of ``[entry id, record]``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from sidekeep.store import records
from sidekeep.store.documents import Change
from sidekeep.store.layout import (
    JOURNAL,
    NUMBER,
)
from sidekeep.store.sealed import seal, unseal
from sidekeep.store.transaction import Head, Transaction, damaged

VERSION = 1
MOST_ROWS = 4096
MOST_WEIGHT = 2 * 1024 * 1024
MOST_RECENT_WEIGHT = 256 * 1024 * 1024
RECENT_SECONDS = 10.0
# So that a commit that frees space stays short, at most this many old rows go with one commit.
TRIM_AT_ONCE = 16

_DOCUMENT = 0
_SPLICE = 1


# What a key held or holds, where it is no record: nothing, or a list.
ABSENT = 0
LIST = -1


class Splice(NamedTuple):
    """A change of a list: entries from index ``at`` on that went and that came.

    ``before`` and ``after``: what the key held and holds: ``LIST``, ``ABSENT`` or the number of the
    record of a plain value. ``removed`` and ``inserted``: pairs of entry id and record number, in
    order. ``length``: that of the list afterwards.
    """

    key: str
    before: int
    after: int
    at: int
    removed: list[tuple[int, int]]
    inserted: list[tuple[int, int]]
    length: int


AnyChange: TypeAlias = "Change | Splice"


class Call(NamedTuple):
    """What one call changed, under its sequence number."""

    seq: int
    changes: list[AnyChange]


def next_seq(transaction: Transaction) -> int:
    """Take the sequence number of the next change."""
    transaction.head.seq += 1
    return transaction.head.seq


def append(transaction: Transaction, calls: list[Call], *, watched: bool = False) -> None:
    """Write the row of a frame and drop old rows that are over the bound.

    ``watched``: somebody listens, so what was written just now is kept for them.

    The references from the row to the records are the caller's to have made: a document's change
    and a splice leave one for it (see ``documents.put`` and ``lists``).
    """
    head = transaction.head
    weight = sum(
        records.weight(transaction, number) for call in calls for number in _removed(call.changes)
    )
    body = msgspec.msgpack.encode(
        (VERSION, calls[0].seq, time.time(), weight, [_pack(call) for call in calls])
    )
    transaction.put(JOURNAL, NUMBER.pack(calls[-1].seq), seal(body))
    head.journal_rows += 1
    head.journal_weight += weight
    trim(transaction, watched=watched)


def trim(transaction: Transaction, *, keep: int | None = None, watched: bool = False) -> int:
    """Drop old rows until the bound is met, or ``keep`` rows are left; return how many went."""
    head = transaction.head
    gone = 0
    while _over_bound(head, gone) if keep is None else head.journal_rows > keep:
        oldest = transaction.first_row(JOURNAL, b"")
        if oldest is None:
            raise damaged("The journal has fewer rows than the store counts.")
        key, row = bytes(oldest[0]), bytes(oldest[1])
        moment, weight, calls = _unpack(row)
        recent = time.time() - moment < RECENT_SECONDS
        if watched and recent and head.journal_weight <= MOST_RECENT_WEIGHT:
            break
        for call in calls:
            for number in records_of(call.changes):
                records.release(transaction, number)
        transaction.delete(JOURNAL, key)
        head.journal_rows -= 1
        head.journal_weight -= weight
        gone += 1
    return gone


def _over_bound(head: Head, gone: int) -> bool:
    if head.journal_rows <= 1 or gone >= TRIM_AT_ONCE:
        return False
    return head.journal_rows > MOST_ROWS or head.journal_weight > MOST_WEIGHT


def since(transaction: Transaction, seq: int) -> Iterator[Call]:
    """Yield the calls with a sequence number above ``seq``, in order.

    Compare ``first`` with ``seq + 1`` to see whether something is no longer there.
    """
    for _, row in transaction.rows(JOURNAL, NUMBER.pack(seq + 1)):
        for call in _unpack(bytes(row))[2]:
            if call.seq > seq:
                yield call


def first(transaction: Transaction) -> int:
    """Return the lowest sequence number that the journal still has, the next one if it is empty."""
    for _, row in transaction.rows(JOURNAL):
        return _unpack(bytes(row))[2][0].seq
    return transaction.head.seq + 1


def _removed(changes: list[AnyChange]) -> list[int]:
    """Return the records that the changes took away."""
    found = [change.before for change in changes]
    for change in changes:
        if isinstance(change, Splice):
            found += [number for _, number in change.removed]
    return [number for number in found if number > 0]


def _inserted(changes: list[AnyChange]) -> list[int]:
    """Return the records that the changes brought."""
    found = [change.after for change in changes]
    for change in changes:
        if isinstance(change, Splice):
            found += [number for _, number in change.inserted]
    return [number for number in found if number > 0]


def records_of(changes: list[AnyChange]) -> list[int]:
    """Return the records that a row refers to for these changes, each as often as it does."""
    return _removed(changes) + _inserted(changes)


def _pack(call: Call) -> tuple[int, list[tuple[Any, ...]]]:
    return call.seq, [
        (_DOCUMENT if isinstance(change, Change) else _SPLICE, *change) for change in call.changes
    ]


def _unpack(row: bytes) -> tuple[float, int, list[Call]]:
    """Return the time, the weight and the calls of a row."""
    body = unseal(row, "A row of the journal")
    version, _, moment, weight, calls = msgspec.msgpack.decode(body)
    if version != VERSION:
        raise damaged(f"A row of the journal has the unknown version {version}.")
    return (
        moment,
        weight,
        [Call(seq, [_change(change) for change in changes]) for seq, changes in calls],
    )


def _change(packed: list[Any]) -> AnyChange:
    if packed[0] == _DOCUMENT:
        return Change(*packed[1:])
    key, before, after, at, removed, inserted, length = packed[1:]
    return Splice(
        key,
        before,
        after,
        at,
        [(a, b) for a, b in removed],
        [(a, b) for a, b in inserted],
        length,
    )
