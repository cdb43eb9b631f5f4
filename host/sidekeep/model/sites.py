"""Site caches: what a page told about itself, one record per tab, in the session area.

Source of the rules: the seed storage model's last paragraph, and its defect list (a record names
its page and its time, and is verified when read).

* A record is the item ``sc_<tabId>`` of the session area:
  ``{"data": …, "source": …, "time": milliseconds since 1970, "url": …}``.
* A tab that is not among the live ones has no record: ``get`` with ``live`` removes what is left of
  dead tabs.
* Data of another page is never handed out. A record of a dead tab with the wanted URL moves to the
  asking tab: that is a tab which the browser discarded and gave a new id.
* Bounded: at most ``MOST_RECORDS`` records of at most ``MOST_BYTES`` bytes together. The oldest go
  first, and ``put`` tells which. A record older than ``MOST_SECONDS`` is not handed out.
* Records are read only when one of them is asked for or has to go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sidekeep.errors import TooLargeError
from sidekeep.model.updates import text_of
from sidekeep.store import documents, records, rope
from sidekeep.store.documents import Change, Document
from sidekeep.store.transaction import Transaction

PREFIX = "sc_"
MOST_RECORDS = 300
MOST_BYTES = 5_000_000
MOST_SECONDS = 24 * 3600

_encode = msgspec.json.encode


class SiteRecord(msgspec.Struct):
    """One stored record; ``data`` is JSON text, ``time`` milliseconds since 1970."""

    data: msgspec.Raw
    source: str
    time: float
    url: str

    def text(self) -> bytes:
        """Return the JSON text, keys in order."""
        return b'{"data":%b,"source":%b,"time":%d,"url":%b}' % (
            bytes(self.data),
            _encode(self.source),
            int(self.time),
            _encode(self.url),
        )


class Found(NamedTuple):
    """What ``get`` found: a record, or the reason why there is none."""

    record: SiteRecord | None
    reason: str | None
    changes: list[Change]


def put(
    transaction: Transaction, tab: int, record: SiteRecord, revision: int
) -> tuple[list[Change], list[int]]:
    """Store the record of a tab; return what changed and the tabs whose records had to go."""
    value = rope.build(record.text())
    if value.size > MOST_BYTES:
        raise TooLargeError(
            f"The data has {value.size} bytes; all site caches together may have {MOST_BYTES}.",
            next="keep less of the page, or keep it in the local area",
        )
    made = documents.put(transaction, _key(tab), value, revision)
    changes = [made] if made is not None else []
    kept = by_tab(transaction)
    size = sum(document.size for document in kept.values())
    gone: list[int] = []
    if len(kept) > MOST_RECORDS or size > MOST_BYTES:
        del kept[tab]
        for old in sorted(kept, key=lambda one: _time(transaction, kept[one])):
            if len(kept) - len(gone) < MOST_RECORDS and size <= MOST_BYTES:
                break
            gone.append(old)
            size -= kept[old].size
        changes += purge(transaction, gone)
    return sorted(changes), gone


def get(
    transaction: Transaction,
    tab: int,
    url: str | None,
    live: Sequence[int] | None,
    revision: int,
) -> Found:
    """Return the record of a tab.

    ``url``: the page that the tab shows; data of another one is refused (``otherPage``). ``live``:
    all tabs that exist; the records of others are removed, and a tab that is not among them gets
    nothing (``closed``).
    """
    changes: list[Change] = []
    left: list[SiteRecord] = []
    if live is not None:
        alive = set(live)
        dead = {one: found for one, found in by_tab(transaction).items() if one not in alive}
        if url is not None:
            left = [record for found in dead.values() if (record := _decoded(transaction, found))]
        changes = purge(transaction, list(dead))
        if tab not in alive:
            return Found(None, "closed", changes)
    document = documents.find(transaction, _key(tab))
    mine = None if document is None else _decoded(transaction, document)
    if mine is not None and mine.time < (time.time() - MOST_SECONDS) * 1000:
        changes += purge(transaction, [tab])
        mine = None
    if mine is not None and (url is None or mine.url == url):
        return Found(mine, None, sorted(changes))
    moved = _of_page(left, url)
    if moved is not None:
        made = documents.put(transaction, _key(tab), rope.build(moved.text()), revision)
        return Found(moved, None, sorted(changes + ([made] if made is not None else [])))
    return Found(None, "none" if mine is None else "otherPage", sorted(changes))


def _of_page(left: list[SiteRecord], url: str | None) -> SiteRecord | None:
    """Return the newest record of the page among those of tabs that are gone."""
    fitting = [record for record in left if record.url == url]
    return max(fitting, key=lambda record: record.time, default=None)


def purge(transaction: Transaction, tabs: Sequence[int]) -> list[Change]:
    """Remove the records of these tabs; return what was there, in byte order of the keys."""
    changes = (documents.remove(transaction, _key(tab)) for tab in tabs)
    return sorted(change for change in changes if change is not None)


def by_tab(transaction: Transaction) -> dict[int, Document]:
    """Return the items that are named like records, by tab; none of them is read."""
    found = {}
    for document in documents.walk(transaction, PREFIX):
        tab = _tab(document.key)
        if tab is not None:
            found[tab] = document
    return found


def _time(transaction: Transaction, document: Document) -> float:
    record = _decoded(transaction, document)
    return 0 if record is None else record.time


def _decoded(transaction: Transaction, document: Document) -> SiteRecord | None:
    """Return the record, or ``None`` for an item that is none."""
    record = records.read_if_good(transaction, document.number)
    if record is None:
        return None
    try:
        return msgspec.json.decode(text_of(transaction, record), type=SiteRecord)
    except msgspec.ValidationError:
        return None


def _key(tab: int) -> str:
    return f"{PREFIX}{tab}"


def _tab(key: str) -> int | None:
    digits = key[len(PREFIX) :]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
