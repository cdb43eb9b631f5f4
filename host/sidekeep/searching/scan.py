"""The two ways to find which lists have an entry that fits, and which entry is the first.

* *All rows at once*: one pass over the folded texts of all entries, then one over the entries of
  all lists. Nothing is done per row that can be done for many: a few rows are joined and searched
  in one go, keys are read only where something was found. So text costs what ``bytes.find`` costs,
  and a row what LMDB's cursor costs.
* *List by list*, each left at its first hit: many times faster where most texts fit, and slower
  everywhere else.

Rules for both:

* A row is one byte of flags and the folded texts, with NUL between them. Flags are below the tab
  and no folded text has such bytes, so a hit never reaches over the end of a row.
* What is looked for is folded and not empty; so are the prefixes of attachments.
* The first entry that fits and is no attachment counts before all attachments.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, repeat
from typing import NamedTuple

from sidekeep.store.layout import ENTRY_KEY, NUMBER

Buffer = bytes | memoryview


class Batch(NamedTuple):
    """Some rows that follow each other, and what reads their keys, all of one length.

    The keys may begin with their table.
    """

    rows: Sequence[Buffer]
    keys: Callable[[], Sequence[Buffer]]


USER = 1
ATTACHED = 2
"""The flags: the entry is a user's; it has an ``attachId``."""

NAME, TEXT, ATTACHMENT = range(3)
"""Where a hit is, in the order in which a session is asked."""

# Rows are joined up to this many bytes; longer ones are searched one by one.
_JOINED_BYTES = 1 << 20


class Found(NamedTuple):
    """The first hit in a list: where (``TEXT`` or ``ATTACHMENT``), the entry's id, its record."""

    where: int
    entry: int
    record: int


def matching_records(
    batches: Iterable[Batch], wanted: bytes, prefixes: Sequence[bytes] = ()
) -> dict[int, int]:
    """Return the records whose text contains ``wanted``, each with ``TEXT`` or ``ATTACHMENT``.

    ``batches``: the rows of the search table; the last 8 bytes of a key are the record's number.
    An attachment is a user's entry with an ``attachId``, or with a text that begins with one of the
    ``prefixes``.
    """
    prefixes = tuple(filter(None, prefixes))
    found: dict[int, int] = {}
    for rows, keys in batches:
        hits = hits_in(rows, wanted)
        if hits:
            numbers = _numbers(keys(), NUMBER.size)
            for index in hits:
                found[numbers[index]] = _where(rows[index], prefixes)
    return found


def hits_in(rows: Sequence[Buffer], wanted: bytes) -> list[int]:
    """Return the indices of the rows that contain ``wanted``."""
    lengths = list(map(len, rows))
    if sum(lengths) > _JOINED_BYTES:
        return [index for index, row in enumerate(rows) if wanted in bytes(row)]
    joined = b"".join(rows)
    at = joined.find(wanted)
    if at < 0:
        return []
    hits = []
    ends = list(accumulate(lengths))
    while at >= 0:
        index = bisect_right(ends, at)
        hits.append(index)
        at = joined.find(wanted, ends[index])
    return hits


def _where(row: Buffer, prefixes: tuple[bytes, ...]) -> int:
    if not row[0] & USER:
        return TEXT
    if row[0] & ATTACHED:
        return ATTACHMENT
    text = bytes(row)
    if text.startswith(prefixes, 1):
        return ATTACHMENT
    if text.find(b"\0") >= 0:  # there are several texts
        for prefix in prefixes:
            if text.find(b"\0" + prefix) >= 0:
                return ATTACHMENT
    return TEXT


def _numbers(keys: Sequence[Buffer], end: int) -> list[int]:
    """Return the number that begins ``end`` bytes before the end of each key."""
    start = len(keys[0]) - end
    packed = struct.iter_unpack(f">{start}xQ{end - NUMBER.size}x", b"".join(keys))
    return [number for (number,) in packed]


def first_hits(batches: Iterable[Batch], records: Mapping[int, int]) -> dict[int, Found]:
    """Return the first hit of each list, by its number: in a text if there is one.

    ``batches``: the rows of the entries, in order; the last 16 bytes of a key are list number and
    position, a row is entry id and record number. ``records``: what ``matching_records`` gave.
    """
    found: dict[int, Found] = {}
    if not records:
        return found
    for rows, keys in batches:
        pairs = array("Q", b"".join(rows))  # id, record, id, record, …
        if sys.byteorder == "little":
            pairs.byteswap()
        hits = bytes(map(records.get, pairs[1::2], repeat(0)))
        if not any(hits):
            continue
        numbers = _numbers(keys(), ENTRY_KEY.size)
        for where in (TEXT, ATTACHMENT):
            index = hits.find(where)
            while index >= 0:
                number = numbers[index]
                present = found.get(number)
                if present is None or where < present.where:
                    found[number] = Found(where, pairs[2 * index], pairs[2 * index + 1])
                index = hits.find(where, index + 1)
    return found


def first_hits_list_by_list(
    lists: Iterable[int],
    entries_of: Callable[[int], Iterable[tuple[int, int]]],
    row_of: Callable[[int], Buffer | None],
    wanted: bytes,
    prefixes: Sequence[bytes] = (),
) -> dict[int, Found]:
    """Return the same as ``first_hits`` of ``matching_records``, for some lists.

    ``lists``: their numbers. ``entries_of``: the entries of one, as pairs of id and record number,
    in order. ``row_of``: the row of a record in the search table, ``None`` if it has none.
    """
    prefixes = tuple(filter(None, prefixes))
    found: dict[int, Found] = {}
    for number in lists:
        for entry, record in entries_of(number):
            row = row_of(record)
            if row is None or wanted not in bytes(row):
                continue
            where = _where(row, prefixes)
            if where == TEXT:
                found[number] = Found(where, entry, record)
                break
            found.setdefault(number, Found(where, entry, record))
    return found
