"""Which saved sessions fit a query, and what they show of it, at one moment of a store.

Source of the rules: docs/protocol.md, "Sessions": the name is looked at first, then the text of
entries, then attachments; the query is literal and white space around it does not matter. Only what
stands in the index is found: names come from its rows, bodies count if a row names them. No body is
read but the records that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice

import msgspec

from sidekeep.errors import DamagedError
from sidekeep.model import listing, rows
from sidekeep.model.entries import facts_of
from sidekeep.model.keys import BODY
from sidekeep.searching.scan import (
    ATTACHMENT,
    TEXT,
    Batch,
    Found,
    first_hits,
    first_hits_list_by_list,
    hits_in,
    matching_records,
)
from sidekeep.store import records
from sidekeep.store.layout import CRC, DOCUMENT, DOCUMENTS, ENTRIES, ENTRY, NUMBER, SEARCH
from sidekeep.store.transaction import BROKEN, Transaction, damaged
from sidekeep.text.excerpts import excerpt
from sidekeep.text.fold import folded

# Texts fill the processor's cache when they are joined, entries do not.
_TEXT_BATCH = 64
_ENTRY_BATCH = 256
# From this share of texts that fit on, each list is looked at by itself; told from a sample.
_MANY = 0.3
_SAMPLES = 16
_SAMPLE_ROWS = 32
_WORDS = {TEXT: "text", ATTACHMENT: "attachment"}


class Hit(msgspec.Struct, array_like=True, frozen=True):
    """A session that fits.

    ``where``: ``"name"``, ``"text"`` or ``"attachment"``. ``entry`` and ``record``: the first entry
    that fits, in the order of the conversation, and the record that holds it; 0 for a name.
    """

    session: str
    where: str
    entry: int = 0
    record: int = 0


class Shown(msgspec.Struct, array_like=True, frozen=True):
    """A hit with the place that fits, as it is written there.

    ``excerpt`` is ``None`` where a record cannot be read.
    """

    hit: Hit
    excerpt: str | None


class Page(msgspec.Struct, array_like=True, frozen=True):
    """Some of the hits, in the order of the list. ``total``: how many there are in all."""

    total: int
    shown: list[Shown]


class _Place(msgspec.Struct, array_like=True):
    """The beginning of a list's header; what follows is left unread."""

    version: int
    number: int


def find(transaction: Transaction, query: str, prefixes: Sequence[str]) -> list[Hit]:
    """Return all sessions that fit ``query``, in the order of the list. A blank query fits none.

    ``prefixes``: how the text of an attachment begins.
    """
    wanted = folded(query.strip())
    if not wanted:
        return []
    numbers, found = _first_hits(
        transaction, wanted.encode(), [folded(prefix).encode() for prefix in prefixes]
    )
    hits = []
    for row in listing.all_rows(transaction):
        if wanted in folded(row.name):
            hits.append(Hit(row.id, "name"))
        elif (first := found.get(numbers.get(row.id, 0))) is not None:
            hits.append(Hit(row.id, _WORDS[first.where], first.entry, first.record))
    return hits


def _first_hits(
    transaction: Transaction, wanted: bytes, prefixes: Sequence[bytes]
) -> tuple[dict[str, int], dict[int, Found]]:
    """Return the numbers of the bodies, by session, and the first hits, by number."""
    if _share_of_hits(transaction, wanted) < _MANY:
        matching = matching_records(_batches(transaction, SEARCH, _TEXT_BATCH), wanted, prefixes)
        found = first_hits(_batches(transaction, ENTRIES, _ENTRY_BATCH), matching)
        return (_body_numbers(transaction) if found else {}), found
    numbers = _body_numbers(transaction)
    with _broken_told(), transaction.txn.cursor() as cursor:

        def entries_of(number: int) -> Iterator[tuple[int, int]]:
            prefix = ENTRIES + NUMBER.pack(number)
            if cursor.set_range(prefix):
                for key, row in cursor.iternext(keys=True, values=True):
                    if key[: len(prefix)] != prefix:
                        return
                    yield ENTRY.unpack(row)

        def row_of(record: int) -> memoryview | None:
            return transaction.get(SEARCH, NUMBER.pack(record))

        found = first_hits_list_by_list(numbers.values(), entries_of, row_of, wanted, prefixes)
    return numbers, found


def _share_of_hits(transaction: Transaction, wanted: bytes) -> float:
    """Return in how much of a sample of all texts ``wanted`` is, from 0 to 1."""
    newest = transaction.head.records
    looked_at = hits = 0
    with _broken_told(), transaction.txn.cursor() as cursor:
        for start in range(0, newest, newest // _SAMPLES + 1):
            if not cursor.set_range(SEARCH + NUMBER.pack(start)):
                break
            pairs = list(islice(cursor.iternext(keys=True, values=True), _SAMPLE_ROWS))
            texts = [row for key, row in pairs if key[0] == SEARCH[0]]
            looked_at += len(texts)
            hits += len(hits_in(texts, wanted))
    return hits / looked_at if looked_at else 0.0


def page(
    transaction: Transaction, query: str, prefixes: Sequence[str], offset: int, limit: int | None
) -> Page:
    """Return the hits of a page with their excerpts; ``offset`` and ``limit`` are 0 or more."""
    hits = find(transaction, query, prefixes)
    end = None if limit is None else offset + limit
    shown = []
    for hit in hits[offset:end]:
        if hit.record:
            shown.append(Shown(hit, _excerpt(transaction, query, hit.record)))
        else:
            row = rows.find(transaction, hit.session)
            shown.append(Shown(hit, None if row is None else excerpt(row.name, query)))
    return Page(len(hits), shown)


def excerpts(transaction: Transaction, query: str, numbers: Sequence[int]) -> list[str | None]:
    """Return what is shown of each record: the place that fits ``query``.

    ``None`` for a record that is gone or damaged, or has no such place any more.
    """
    return [_excerpt(transaction, query, number) for number in numbers]


def _excerpt(transaction: Transaction, query: str, number: int) -> str | None:
    record = records.read_if_good(transaction, number)
    if record is None:
        return None
    try:
        texts = facts_of(transaction, record).texts
    except DamagedError:
        return None
    return next(filter(None, (excerpt(text, query) for text in texts)), None)


def _body_numbers(transaction: Transaction) -> dict[str, int]:
    """Return the numbers of all lists that are bodies of sessions, by the session's id."""
    decode = msgspec.msgpack.Decoder(_Place).decode
    start = BODY.encode()
    numbers = {}
    for key, row in transaction.rows(DOCUMENTS, start):
        if key[: len(start)] != start:
            break
        if not DOCUMENT.unpack_from(row)[0]:  # a list
            place = decode(row[DOCUMENT.size + CRC.size :])
            numbers[str(key[len(start) :], "utf-8")] = place.number
    return numbers


def _batches(transaction: Transaction, table: bytes, count: int) -> Iterator[Batch]:
    """Yield the rows of a table, ``count`` at a time, without their keys."""

    def keys_of(size: int, previous: bytes) -> list[memoryview]:
        with transaction.txn.cursor() as reader:
            reader.set_range(previous)
            keys = reader.iternext(keys=True, values=False)
            return (
                list(islice(keys, size + 1))[1:] if previous != table else list(islice(keys, size))
            )

    previous = table
    with _broken_told(), transaction.txn.cursor() as cursor:
        if not cursor.set_range(table):
            return
        rest = cursor.iternext(keys=False, values=True)
        while rows := list(islice(rest, count)):
            last = bytes(cursor.key())
            if last[:1] != table:  # it went on into the next table
                size = sum(key[0] == table[0] for key in keys_of(len(rows), previous))
                if size:
                    yield Batch(rows[:size], partial(keys_of, size, previous))
                return
            yield Batch(rows, partial(keys_of, len(rows), previous))
            previous = last


@contextmanager
def _broken_told() -> Iterator[None]:
    """Tell a broken tree of the file as the damage that it is."""
    try:
        yield
    except BROKEN as error:
        raise damaged(f"The data file is damaged ({error}).") from error
