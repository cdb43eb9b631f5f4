"""A storage area: what ``chrome.storage.local`` holds, as documents and lists of the store.

Source of the rules: Chrome's ``storage`` API as it behaves in Chromium (missing keys are left out,
duplicates collapse, keys come in byte order, an unchanged value is no change). Conversion of values
and merging of defaults happen in the stub; here a value is JSON text.

Functions that change something return what changed, for the journal; they leave the references of
replaced records to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sidekeep.errors import QuotaError
from sidekeep.model.keys import is_view
from sidekeep.store import documents, records
from sidekeep.store.documents import Document
from sidekeep.store.journal import AnyChange
from sidekeep.store.records import Record
from sidekeep.store.rope import Value
from sidekeep.store.transaction import Transaction

# Lists are imported where one is met: most extensions have none.
if TYPE_CHECKING:
    from sidekeep.model.entries import NewEntry
    from sidekeep.store.lists import StoredList


def get(
    transaction: Transaction, keys: Iterable[str] | None
) -> Iterator[tuple[Document, Record | StoredList]]:
    """Yield the items of these keys (``None``: all) that exist, in byte order, with values."""
    for document in _named(transaction, keys):
        if document.number:
            yield document, records.read(transaction, document.number)
        else:
            from sidekeep.store import lists

            found = lists.find(transaction, document.key)
            assert found is not None
            yield document, found


def _named(transaction: Transaction, keys: Iterable[str] | None) -> Iterator[Document]:
    if keys is None:
        yield from documents.walk(transaction)
        return
    # The order of code points is the byte order of UTF-8.
    for key in sorted(set(keys)):
        found = documents.find(transaction, key)
        if found is not None:
            yield found


def get_keys(transaction: Transaction) -> list[str]:
    """Return all keys in byte order; no value is read."""
    return [document.key for document in documents.walk(transaction)]


def bytes_in_use(transaction: Transaction, keys: Iterable[str] | None) -> int:
    """Return the bytes of these items as Chromium counts them; of all from a kept total.

    A key that is named twice counts twice, as it does there.
    """
    if keys is None:
        return transaction.head.size
    found = (documents.find(transaction, key) for key in keys)
    return sum(document.size for document in found if document is not None)


def set_items(
    transaction: Transaction,
    items: Iterable[tuple[str, Value | list[NewEntry]]],
    revision: int,
    *,
    quota: int | None = None,
) -> list[AnyChange]:
    """Store the values; return what changed, in byte order of the keys.

    A list of entries is stored entry by entry. ``quota``: the most bytes that the area may hold
    afterwards (as Chromium checks it: after the whole call); beyond it ``QuotaError``, and the
    caller gives up what was done.
    """
    given = list(items)
    if any(is_view(key) for key, _ in given):
        from sidekeep.model import views

        return views.set_items(transaction, given, revision)
    made: list[AnyChange] = []
    for key, value in given:
        assert isinstance(value, Value)
        change = documents.put(transaction, key, value, revision)
        if change is not None:
            made.append(change)
    made.sort(key=lambda change: change.key)
    if quota is not None and made and transaction.head.size > quota:
        raise QuotaError(
            "Session storage quota bytes exceeded. Values were not stored.",
            next="remove something, or keep it in the local area",
            max=quota,
        )
    return made


def remove(
    transaction: Transaction, keys: Iterable[str], revision: int, what: str = "storage.remove"
) -> list[AnyChange]:
    """Remove the items of these keys; return those that were there, in byte order.

    ``what``: how the trash is to call it, where it keeps what was removed.
    """
    ordered = sorted(set(keys))
    if any(map(is_view, ordered)):
        from sidekeep.model import views

        return views.remove_items(transaction, ordered, revision, what)
    changes = (documents.remove(transaction, key) for key in ordered)
    return [change for change in changes if change is not None]


def clear(transaction: Transaction, revision: int) -> list[AnyChange]:
    """Remove everything; return what was there, in byte order."""
    return remove(transaction, get_keys(transaction), revision, "storage.clear")
