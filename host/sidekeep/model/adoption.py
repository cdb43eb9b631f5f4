"""Data outlives the extension: other stores of it are found, and one can be taken over.

Rules (docs/protocol.md, "Finding data again"):

* Only stores of the same extension are looked at; which one that is the browser says.
* Taking over copies every row of the other store, which stays as it is, in one transaction. What
  was here is copied to a dated file before, and can be put back. Nobody writes between that copy
  and the replacement: each acknowledged change is in the one or the other.
* What is put back takes the place of the present content in the same way, with a copy of its own.
* The results of operations belong to the callers of this store and stay (docs/protocol.md,
  "Retries"). That of the adoption is kept among them.
* Sequence numbers go on rising and the epoch changes, so every listener hears of a gap.
"""

from __future__ import annotations

import contextlib
import os
import re
import time

import msgspec

from sidekeep.errors import ConflictError, NotFoundError, SidekeepError
from sidekeep.model.keys import INDEX
from sidekeep.store import backup, documents, journal, lists, operations
from sidekeep.store.environment import DATA_FILE, Store
from sidekeep.store.founding import ABOUT_FILE, About, new_about, write_about
from sidekeep.store.layout import CLIENTS, META, OPERATIONS
from sidekeep.store.operations import Number
from sidekeep.store.transaction import Transaction

_BEFORE = "before-adopt-"
_WORD = re.compile("[0-9]+[a-z]*")  # the time, and letters that make it one of its kind
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
    undo: str


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


def adopt(store: Store, profile: str, *, replace: bool, number: Number | None = None) -> bytes:
    """Take over the store of another profile of this extension; return ``Adopted`` as JSON text.

    ``number``: under which the result is kept; if there is one already, that is returned and
    nothing is done. ``NotFoundError`` if there is no such store. ``ConflictError`` if there are
    conversations here already, unless ``replace``.
    """
    known = _known(store, number)
    if known is not None:
        return known
    folder, about = next((one for one in others(store) if one[1].profile == profile), (None, None))
    if folder is None or about is None:
        raise NotFoundError(
            f"There is no store of the profile {profile[:64]!r}.",
            next="host.profiles tells which there are",
        )
    other = _opened(folder, about)
    try:
        with other.read() as source:
            return _taken(store, source, number, replace=replace)
    finally:
        other.close()


def put_back(store: Store, undo: str, *, number: Number | None = None) -> bytes:
    """Put back what was here before an adoption or another undo; otherwise as ``adopt``.

    ``NotFoundError`` if that is not kept.
    """
    known = _known(store, number)
    if known is not None:
        return known
    path = _kept_path(store, undo)
    if not _WORD.fullmatch(undo) or not os.path.exists(path):
        raise NotFoundError("What was here before is not kept under that word.")
    backup.check(path)
    with backup.opened_copy(path) as source:
        return _taken(store, source, number, replace=True)


def _known(store: Store, number: Number | None) -> bytes | None:
    """Return the kept result of that operation, or ``None`` if it was not carried out yet."""
    if number is None:
        return None
    with store.read() as transaction:
        return operations.find(transaction, *number)


def _kept_path(store: Store, undo: str) -> str:
    return os.path.join(store.folder, f"{_BEFORE}{undo}.mdb")


def _keep(store: Store) -> str:
    """Copy what is here beside the file; return the word under which it can be put back."""
    letters = "".join(chr(ord("a") + byte % 26) for byte in os.urandom(6))
    undo = time.strftime("%Y%m%d%H%M%S") + letters
    backup.create(store, _kept_path(store, undo))
    return undo


def _taken(store: Store, source: Transaction, number: Number | None, *, replace: bool) -> bytes:
    """Copy what is here, replace it by ``source`` and keep the result, as if at one moment.

    The copy, which may take long, is made while others may write. Only if somebody did, it is made
    again while they have to wait.
    """
    _allow(store, replace=replace)
    with contextlib.ExitStack() as unneeded:
        commits = store.commits()  # before the copy: it is at least as new as that
        undo = _keep(store)
        unneeded.callback(os.unlink, _kept_path(store, undo))
        with store.alone():
            known = _known(store, number)  # another host may just have done it
            if known is not None:
                return known
            _allow(store, replace=replace)
            if store.commits() != commits:
                unneeded.close()
                undo = _keep(store)
                unneeded.callback(os.unlink, _kept_path(store, undo))
            unneeded.pop_all()  # whatever becomes of the commit
            return _replaced(store, source, number, undo)


def _allow(store: Store, *, replace: bool) -> None:
    """Raise ``ConflictError`` if there are conversations here, unless ``replace``."""
    if replace:
        return
    with store.read() as transaction:
        if _has_conversations(transaction):
            raise ConflictError(
                "There are conversations in this profile already; they would make room.",
                next="adopt with replace: true; what is here can be put back with undo",
            )


def _replaced(store: Store, source: Transaction, number: Number | None, undo: str) -> bytes:
    about = msgspec.structs.replace(
        store.about, epoch=new_about(store.about.extension, store.about.profile).epoch
    )

    def job(transaction: Transaction) -> bytes:
        newest = max(transaction.head.seq, source.head.seq)
        transaction.take_over(source, staying=(OPERATIONS, CLIENTS))
        write_about(transaction, about)
        answered(transaction)
        journal.trim(transaction, keep=0)
        transaction.head.seq = newest + 1
        index = lists.find(transaction, INDEX)
        sessions = 0 if index is None else index.header.length
        result = msgspec.json.encode(Adopted(transaction.head.items, sessions, undo))
        if number is not None:
            kept = [operations.Result(number.operation, result)]
            operations.keep(transaction, number.client, kept)
        return result

    result = store.write(job)
    store.about = about
    return result


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
