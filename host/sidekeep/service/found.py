"""``sessions.list`` with a query: the helper finds, the host sorts and pages, the helper shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from sidekeep.model import listing
from sidekeep.model.history import entry_word
from sidekeep.model.rows import Row
from sidekeep.searching import job as search
from sidekeep.searching.job import Excerpts, Find, Place
from sidekeep.searching.sessions import Hit
from sidekeep.slow import Slow
from sidekeep.store.environment import Store
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode


class Query(Protocol):
    """What is wanted: a query, and which rows of what it finds."""

    query: str
    offset: int
    limit: int | None


def work(wanted: Query, prefixes: Sequence[str]) -> Slow:
    """Return the work of answering the call. ``prefixes``: how the text of an attachment begins."""

    def finish(store: Store, answer: bytes) -> Pieces | Slow:
        hits = {hit.session: hit for hit in search.hits(answer)}
        with store.read() as transaction:
            fitting = [row for row in listing.all_rows(transaction) if row.id in hits]
            page = listing.part(fitting, wanted)
            rows = [(row, listing.described(transaction, row)) for row in page]
        chosen = [hits[row.id] for row in page]
        if not any(hit.record for hit in chosen):
            return _answer(rows, chosen, {}, len(fitting))
        return _excerpts(wanted.query, rows, chosen, len(fitting))

    def job(store: Store) -> bytes:
        return search.job(Find(_place(store), wanted.query, list(prefixes)))

    return Slow("search", object(), job, finish)


def _place(store: Store) -> Place:
    return Place(store.folder, store.about.extension, store.about.profile)


Rows = Sequence[tuple[Row, dict[str, Any]]]


def _excerpts(query: str, rows: Rows, chosen: Sequence[Hit], total: int) -> Slow:
    """Return the work of reading what is shown of the hits on the page."""
    numbers = [hit.record for hit in chosen if hit.record]

    def finish(_: Store, answer: bytes) -> Pieces:
        shown = dict(zip(numbers, search.shown(answer), strict=True))
        return _answer(rows, chosen, shown, total)

    def job(store: Store) -> bytes:
        return search.job(Excerpts(_place(store), query, numbers))

    return Slow("search", object(), job, finish)


def _answer(rows: Rows, chosen: Sequence[Hit], shown: dict[int, str | None], total: int) -> Pieces:
    for (row, described), hit in zip(rows, chosen, strict=True):
        described["hit"] = {
            "in": hit.where,
            "entryId": entry_word(hit.entry) if hit.entry else None,
            "excerpt": shown.get(hit.record) if hit.record else row.name,
        }
    return [_encode({"rows": [described for _, described in rows], "total": total})]
