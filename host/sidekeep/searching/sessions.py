"""Which saved sessions fit a query, and what they show of it, at one moment of a store.

Source of the rules: docs/protocol.md, "Sessions": the name is looked at first, then the text of
entries, then attachments; the query is literal and white space around it does not matter. Only what
stands in the index is found: names come from its rows, bodies count if a row names them. No body is
read but the records that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from sidekeep.errors import DamagedError
from sidekeep.model import rows
from sidekeep.model.entries import facts_of
from sidekeep.model.keys import BODY
from sidekeep.searching.scan import ATTACHMENT, TEXT, Batch, Found, first_hits, matching_records
from sidekeep.store import records
from sidekeep.store.layout import CRC, DOCUMENT, DOCUMENTS, ENTRIES, SEARCH, row_key
from sidekeep.store.transaction import BROKEN, Transaction, damaged
from sidekeep.text.excerpts import excerpt
from sidekeep.text.fold import folded

# Texts fill the processor's cache when they are joined, entries do not.
_TEXT_BATCH = 64
_ENTRY_BATCH = 256
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


class _Place(msgspec.Struct, array_like=True):
    """The beginning of a list's header; what follows is left unread."""

    version: int
    number: int


def find(transaction: Transaction, query: str, prefixes: Sequence[str]) -> list[Hit]:
    """Return all sessions that fit ``query``, in no order worth anything. A blank query fits none.

    ``prefixes``: how the text of an attachment begins.
    """
    wanted = folded(query.strip())
    if not wanted:
        return []
    matching = matching_records(
        _batches(transaction, SEARCH, _TEXT_BATCH),
        wanted.encode(),
        [folded(prefix).encode() for prefix in prefixes],
    )
    by_list: dict[int, Found] = {}
    numbers: dict[str, int] = {}
    if matching:
        by_list = first_hits(_batches(transaction, ENTRIES, _ENTRY_BATCH), matching)
        numbers = _body_numbers(transaction)
    hits = []
    for row in rows.walk(transaction):
        if wanted in folded(row.name):
            hits.append(Hit(row.id, "name"))
            continue
        found = by_list.get(numbers.get(row.id, 0))
        if found is not None:
            hits.append(Hit(row.id, _WORDS[found.where], found.entry, found.record))
    return hits


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
    start = row_key(BODY)
    skipped = 1 + len(start)
    numbers = {}
    for batch in _batches(transaction, DOCUMENTS, _ENTRY_BATCH, start):
        for key, row in batch:
            if not DOCUMENT.unpack_from(row)[0]:  # a list
                place = decode(row[DOCUMENT.size + CRC.size :])
                numbers[str(key[skipped:], "utf-8")] = place.number
    return numbers


def _batches(
    transaction: Transaction, table: bytes, count: int, start: bytes = b""
) -> Iterator[Batch]:
    """Yield the rows of a table whose keys begin with ``start``, ``count`` at a time.

    The keys include the byte of the table. A batch and not a row is the unit, because a step of a
    Python generator costs as much as the row itself.
    """
    begin = table + start
    try:
        with transaction.txn.cursor() as cursor:
            if not cursor.set_range(begin):
                return
            rest = cursor.iternext(keys=True, values=True)
            while batch := list(islice(rest, count)):
                if batch[-1][0][: len(begin)] != begin:
                    yield [pair for pair in batch if pair[0][: len(begin)] == begin]
                    return
                yield batch
    except BROKEN as error:
        raise damaged(f"The data file is damaged ({error}).") from error
