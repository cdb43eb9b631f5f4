"""Sessions of the old kind: rows of ``savedSessions`` that hold the whole conversation.

Source of the rules: the seed storage model ("Snapshots de sessão") and its defect list (a mixed
index, rows without id, bodies that are there already).

* Row by row: the body and the row change together, so a kill leaves the row as it was or as it is
  to be, and a row that does not fit on a full disk holds no other row up.
* Only rows that carry a ``history`` array are touched; the rest of them stays.
* A body that is there is never overwritten; a history that differs from it goes to the trash.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import msgspec

from sidekeep.model import history, rows
from sidekeep.model.digests import digest
from sidekeep.model.edit import Edit
from sidekeep.model.entries import Facts, NewEntry, prepare
from sidekeep.model.frame import Mutation
from sidekeep.model.keys import BODY, INDEX, is_view
from sidekeep.model.updates import text_of
from sidekeep.model.views import add, facts_in, open_list, opened
from sidekeep.store import lists, records
from sidekeep.store.journal import AnyChange
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.transaction import Transaction
from sidekeep.store.trash import Gone, Part


class _Legacy(msgspec.Struct):
    history: list[msgspec.Raw]
    id: msgspec.Raw = msgspec.Raw(b"null")
    pinned: msgspec.Raw = msgspec.Raw(b"null")


def next_place(transaction: Transaction, after: int = 0) -> int:
    """Return the position of the next row of the old kind behind that one, 0 if there is none."""
    if not rows.legacy_rows(transaction):
        return 0
    index = lists.find(transaction, INDEX)
    for entry in () if index is None else index.entries(after):
        if _is_old(transaction, entry):
            return entry.position
    return 0


def _is_old(transaction: Transaction, entry: Entry) -> bool:
    row = rows.of_record(transaction, entry.id, entry.record)
    return row is not None and row.legacy


def splitting(place: int) -> Mutation:
    """Return the mutation that splits the row at a position if it (still) is of the old kind."""

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, "sessions.migrate")
        index = lists.find(transaction, INDEX)
        entry = None if index is None else next(index.entries(place - 1), None)
        if entry is not None and entry.position == place and _is_old(transaction, entry):
            _split(edit, entry)
        return edit.finish()[0], b"{}"

    return mutate


def _split(edit: Edit, entry: Entry) -> None:
    transaction = edit.transaction
    text = text_of(transaction, records.read(transaction, entry.record))
    legacy = msgspec.json.decode(text, type=_Legacy)
    session = _decoded(legacy.id)
    if not isinstance(session, str) or not is_view(BODY + session):
        session = str(uuid.uuid4())
    entries = prepare(legacy.history)
    key = BODY + session
    body = open_list(transaction, key)
    said: Iterable[Facts] = (one.facts for one in entries)
    if body is None:
        made, before = opened(edit, key)
        pairs = [add(transaction, one) for one in entries]
        edit.splice(made, 0, [], pairs, before=before)
    elif not _equal(transaction, body, entries):
        edit.discard(_discarded(transaction, body, entries))
        said = facts_in(transaction, body)
    changes: dict[str, object] = {
        "history": None,
        "id": session,
        "pinned": bool(_decoded(legacy.pinned)),
        "textDigest": digest(said),
    }
    changed = prepare([msgspec.Raw(rows.with_members(text, changes))], searched=False)[0]
    history.update(edit, INDEX, entry, changed)


def _decoded(raw: msgspec.Raw) -> object:
    return msgspec.json.decode(bytes(raw))


def _equal(transaction: Transaction, body: StoredList, entries: Sequence[NewEntry]) -> bool:
    return len(body) == len(entries) and all(
        records.read(transaction, old.record).equals(new.value)
        for old, new in zip(body.entries(), entries, strict=True)
    )


def _discarded(transaction: Transaction, body: StoredList, entries: Sequence[NewEntry]) -> Part:
    """Store what a row held beside the body that was there, for the trash only."""
    numbers = [
        records.add(transaction, one.value, references=0, searched=one.searched) for one in entries
    ]
    gone = [
        Gone(at, numbers[at - 1] if at else 0, number, number) for at, number in enumerate(numbers)
    ]
    return Part(body.key, False, body.header.word, gone)
