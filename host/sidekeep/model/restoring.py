"""Bring back what the trash holds.

Rules (docs/protocol.md, "Conversations"): an entry comes back behind the one that was before it; if
that is gone, at the index it had, or at the end. One that is there already is not doubled, nor is
the row of a session that has one. A history that was emptied and is still empty is the same
conversation again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sidekeep.errors import NotFoundError
from sidekeep.model import history, rows
from sidekeep.model.edit import Edit
from sidekeep.model.ends import common_ends
from sidekeep.model.keys import BODY, HISTORY, INDEX
from sidekeep.model.views import open_list
from sidekeep.store import records, trash
from sidekeep.store.founding import live_word
from sidekeep.store.transaction import Transaction
from sidekeep.store.trash import Gone, Part, Removal


def newest(transaction: Transaction, fits: Callable[[Removal], bool]) -> tuple[int, Removal]:
    """Return the newest removal that fits; ``NotFoundError`` if none does."""
    for number, removal in trash.newest_first(transaction):
        if fits(removal):
            return number, removal
    raise NotFoundError(
        "There is nothing in the trash that could be brought back.",
        next="trash.list tells what there is",
    )


def found(transaction: Transaction, number: int) -> Removal:
    """Return what the call ``number`` removed; ``NotFoundError`` if it is not in the trash."""
    return trash.find(transaction, number)


def restore(edit: Edit, number: int, chosen: Sequence[Part]) -> dict[str, list[int]]:
    """Bring back some parts of a removal; return the ids that came back, by key.

    What is left of the removal stays in the trash.
    """
    transaction = edit.transaction
    removal = trash.find(transaction, number)
    restored = {part.key: _restore(edit, part) for part in chosen}
    trash.keep_only(transaction, number, removal, _without(removal.parts, chosen))
    return restored


def _restore(edit: Edit, part: Part) -> list[int]:
    transaction = edit.transaction
    target = open_list(transaction, part.key)
    before = None
    if target is None:
        word = part.word if part.key != HISTORY else live_word(transaction)
        target, before = edit.create(part.key, word)
    was_empty = not len(target)
    old = list(target.entries())
    order = [(entry.id, entry.record) for entry in old]
    restored = _merged(order, _lacking(transaction, part))
    ids = {gone.id for gone in restored}
    start, end = common_ends(old, order, lambda one, two: one.id == two[0])
    middle = order[start : len(order) - end]
    for _, record in middle:
        records.refer(transaction, record, references=2)
    if before is None:
        edit.splice(target, start, old[start : len(old) - end], middle)
    else:
        edit.splice(target, 0, [], middle, before=before)
    if part.key == HISTORY and part.whole and was_empty:
        history.make_live(edit, part.word)
    return [identity for identity, _ in order if identity in ids]


def _lacking(transaction: Transaction, part: Part) -> list[Gone]:
    """Return the entries without the rows of sessions that have a row."""
    if part.key != INDEX:
        return part.entries
    lacking = []
    for gone in part.entries:
        row = rows.of_record(transaction, gone.id, gone.record)
        if row is None or not row.id or rows.find(transaction, row.id) is None:
            lacking.append(gone)
    return lacking


def _merged(order: list[tuple[int, int]], entries: Sequence[Gone]) -> list[Gone]:
    """Put entries into ``order`` where they were; return those that were not there."""
    there = {identity for identity, _ in order}
    restored = []
    for gone in entries:
        if gone.id in there:
            continue
        place = min(gone.index, len(order))
        if gone.previous in there:
            place = next(at for at, one in enumerate(order, 1) if one[0] == gone.previous)
        elif not gone.previous:
            place = 0
        order.insert(place, (gone.id, gone.record))
        there.add(gone.id)
        restored.append(gone)
    return restored


def _without(parts: Sequence[Part], chosen: Sequence[Part]) -> list[Part]:
    taken = {(part.key, gone.id) for part in chosen for gone in part.entries}
    keys = {part.key for part in chosen if not part.entries}
    left = []
    for part in parts:
        entries = [gone for gone in part.entries if (part.key, gone.id) not in taken]
        if entries or (not part.entries and part.key not in keys):
            left.append(Part(part.key, part.whole, part.word, entries))
    return left


def session_parts(transaction: Transaction, removal: Removal, session: str) -> list[Part]:
    """Return what a removal holds of one session: its body and its row."""
    chosen = [part for part in removal.parts if part.key == BODY + session]
    for part in removal.parts:
        if part.key != INDEX:
            continue
        entries = [
            gone
            for gone in part.entries
            if (row := rows.of_record(transaction, gone.id, gone.record)) and row.id == session
        ]
        if entries:
            chosen.append(Part(INDEX, False, part.word, entries))
    return chosen


def sessions_in(transaction: Transaction, removal: Removal) -> list[tuple[str, str]]:
    """Return id and name of the sessions of which a removal holds something."""
    found: dict[str, str] = {}
    for part in removal.parts:
        if part.key.startswith(BODY):
            session = part.key.removeprefix(BODY)
            row = rows.find(transaction, session)
            found.setdefault(session, "" if row is None else row.name)
        elif part.key == INDEX:
            for gone in part.entries:
                row = rows.of_record(transaction, gone.id, gone.record)
                if row is not None and row.id:
                    found[row.id] = row.name
    return list(found.items())


def is_of_live(transaction: Transaction, removal: Removal) -> bool:
    """Whether a removal holds entries of the conversation that is live, or that was emptied.

    Another conversation's entries do not belong among these.
    """
    target = open_list(transaction, HISTORY)
    live = live_word(transaction)
    return any(
        part.key == HISTORY and (part.word == live or (part.whole and not target))
        for part in removal.parts
    )
