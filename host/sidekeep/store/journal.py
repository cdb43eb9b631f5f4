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
``[1, conversation, at, removed, inserted, revision]`` for a conversation, where ``removed`` and
``inserted`` are arrays of ``[entry id, record]``.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

from sidekeep.store import records
from sidekeep.store.documents import Change
from sidekeep.store.layout import (
    CRC,
    JOURNAL,
    NUMBER,
)
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


class Splice(NamedTuple):
    """A change of a conversation: entries from index ``at`` on that went and that came.

    ``removed`` and ``inserted``: pairs of entry id and record number, in order.
    """

    conversation: int
    at: int
    removed: list[tuple[int, int]]
    inserted: list[tuple[int, int]]
    revision: int


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
    and a splice leave one for it (see ``documents.put`` and ``conversations``).
    """
    head = transaction.head
    weight = sum(
        records.weight(transaction, number) for call in calls for number in _removed(call.changes)
    )
    body = msgspec.msgpack.encode(
        (VERSION, calls[0].seq, time.time(), weight, [_pack(call) for call in calls])
    )
    transaction.put(JOURNAL, NUMBER.pack(calls[-1].seq), CRC.pack(zlib.crc32(body)) + body)
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
            for number in (*_removed(call.changes), *_inserted(call.changes)):
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
    """Return the lowest sequence number the journal still has, 0 if it is empty."""
    for _, row in transaction.rows(JOURNAL):
        return _unpack(bytes(row))[2][0].seq
    return 0


def _removed(changes: list[AnyChange]) -> list[int]:
    """Return the records that the changes took away."""
    return [
        number
        for change in changes
        for number in (
            [change.before] if isinstance(change, Change) else [pair[1] for pair in change.removed]
        )
        if number
    ]


def _inserted(changes: list[AnyChange]) -> list[int]:
    """Return the records that the changes brought."""
    return [
        number
        for change in changes
        for number in (
            [change.after] if isinstance(change, Change) else [pair[1] for pair in change.inserted]
        )
        if number
    ]


def _pack(call: Call) -> tuple[int, list[tuple[Any, ...]]]:
    return call.seq, [
        (_DOCUMENT if isinstance(change, Change) else _SPLICE, *change) for change in call.changes
    ]


def _unpack(row: bytes) -> tuple[float, int, list[Call]]:
    """Return the time, the weight and the calls of a row."""
    body = row[CRC.size :]
    if zlib.crc32(body) != CRC.unpack_from(row)[0]:
        raise damaged("A row of the journal does not fit its checksum.")
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
    conversation, at, removed, inserted, revision = packed[1:]
    return Splice(
        conversation,
        at,
        [tuple(pair) for pair in removed],
        [tuple(pair) for pair in inserted],
        revision,
    )
