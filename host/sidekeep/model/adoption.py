"""Data outlives the extension: other stores of it are found, and one can be taken over.

Rules (docs/protocol.md, "Finding data again"):

* Only stores of the same extension are looked at; which one that is the browser says.
* Taking over copies every row of the other store, which stays as it is, in one transaction. What
  was here is copied to a dated file before, and can be put back.
* Sequence numbers go on rising and the epoch changes, so every listener hears of a gap.
"""

from __future__ import annotations

import os
import time

import msgspec

from sidekeep.errors import ConflictError, NotFoundError, SidekeepError
from sidekeep.model.keys import INDEX
from sidekeep.store import backup, documents, journal, lists
from sidekeep.store.environment import DATA_FILE, Store
from sidekeep.store.founding import ABOUT_FILE, About, new_about, write_about
from sidekeep.store.layout import META
from sidekeep.store.transaction import Transaction

_BEFORE = "before-adopt-"
_ASKED = b"asked"


class Found(msgspec.Struct):
    """Another store of the extension. ``lastUsed``: milliseconds since 1970."""

    profile: str
    browser: str | None
    lastUsed: int  # noqa: N815 - the protocol's name
    entries: int
    bytes: int


class Adopted(msgspec.Struct):
    """What came: items and sessions; ``undo``: the word that puts back what was here."""

    entries: int
    sessions: int
    undo: str | None


def others(store: Store) -> list[tuple[str, About]]:
    """Return folder and owner of the other stores of this extension, the last used first."""
    found = []
    parent = os.path.dirname(store.folder)
    for name in sorted(os.listdir(parent)):
        folder = os.path.join(parent, name)
        if folder == store.folder or not os.path.exists(os.path.join(folder, DATA_FILE)):
            continue
        about = _about(folder)
        if about is not None:
            found.append((folder, about))
    return sorted(found, key=lambda one: -_last_used(one[0]))


def _about(folder: str) -> About | None:
    try:
        with open(os.path.join(folder, ABOUT_FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=About)
    except (OSError, msgspec.DecodeError):  # being made, or no store of ours
        return None


def _last_used(folder: str) -> float:
    return os.stat(os.path.join(folder, DATA_FILE)).st_mtime


def described(store: Store) -> list[Found]:
    """Return the other stores as a person can tell them apart, but for those that are damaged."""
    found = []
    for folder, about in others(store):
        try:
            other = _opened(folder, about)
        except SidekeepError:
            continue
        try:
            with other.read() as transaction:
                entries = transaction.head.items
        finally:
            other.close()
        used = int(_last_used(folder) * 1000)
        size = os.path.getsize(os.path.join(folder, DATA_FILE))
        found.append(Found(about.profile, about.browser, used, entries, size))
    return found


def _opened(folder: str, about: About) -> Store:
    return Store(folder, extension=about.extension, profile=about.profile)


def adopt(store: Store, profile: str, *, replace: bool) -> Adopted:
    """Take over the store of another profile of this extension.

    ``NotFoundError`` if there is none. ``ConflictError`` if there are conversations here already,
    unless ``replace``.
    """
    folder, about = next((one for one in others(store) if one[1].profile == profile), (None, None))
    if folder is None or about is None:
        raise NotFoundError(
            f"There is no store of the profile {profile[:64]!r}.",
            next="host.profiles tells which there are",
        )
    with store.read() as transaction:
        if not replace and _has_conversations(transaction):
            raise ConflictError(
                "There are conversations in this profile already; they would make room.",
                next="adopt with replace: true; what is here can be put back with undo",
            )
    stamp = time.strftime("%Y%m%d%H%M%S")
    backup.create(store, os.path.join(store.folder, f"{_BEFORE}{stamp}.mdb"))
    other = _opened(folder, about)
    try:
        with other.read() as source:
            return _taken(store, source, stamp)
    finally:
        other.close()


def put_back(store: Store, undo: str) -> Adopted:
    """Put back what was here before an adoption; ``NotFoundError`` if that is not kept."""
    path = os.path.join(store.folder, f"{_BEFORE}{undo}.mdb")
    if not undo.isdigit() or not os.path.exists(path):
        raise NotFoundError("What was here before is not kept under that word.")
    backup.check(path)
    with backup.opened_copy(path) as source:
        return _taken(store, source, None)


def _taken(store: Store, source: Transaction, undo: str | None) -> Adopted:
    about = msgspec.structs.replace(
        store.about, epoch=new_about(store.about.extension, store.about.profile).epoch
    )

    def job(transaction: Transaction) -> Adopted:
        newest = max(transaction.head.seq, source.head.seq)
        transaction.take_over(source)
        write_about(transaction, about)
        answered(transaction)
        journal.trim(transaction, keep=0)
        transaction.head.seq = newest + 1
        index = lists.find(transaction, INDEX)
        return Adopted(transaction.head.items, 0 if index is None else index.header.length, undo)

    adopted = store.write(job)
    store.about = about
    return adopted


def _has_conversations(transaction: Transaction) -> bool:
    return any(
        not document.number and (found := lists.find(transaction, document.key)) and len(found)
        for document in documents.walk(transaction)
    )


def notice(store: Store, transaction: Transaction) -> dict[str, object] | None:
    """Return what is to be told of older stores, until somebody answered, or ``None``."""
    if transaction.get(META, _ASKED) is not None:
        return None
    older = [about for _, about in others(store) if about.created < store.about.created]
    if not older:
        return None
    return {
        "id": "otherStores",
        "kind": "otherStores",
        "text": "There is data of this extension from another profile or an earlier install.",
        "profiles": [about.profile for about in older],
    }


def answered(transaction: Transaction) -> None:
    """Do not tell of older stores again."""
    transaction.put(META, _ASKED, b"")
