"""What listeners of conversations are told: ids, not arrays.

Source of the rules: docs/protocol.md, "Notifications". Told from the same journal as the events of
the plain keys, so it does not matter which way a change was made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sidekeep.model import rows
from sidekeep.model.history import entry_word
from sidekeep.model.keys import BODY, HISTORY, INDEX
from sidekeep.store import journal
from sidekeep.store.journal import LIST, Call, Splice
from sidekeep.store.transaction import Transaction


class Told(NamedTuple):
    """One notification: about the history, or about sessions; ``ids`` of entries or sessions."""

    method: str
    what: str
    ids: list[str]
    revision: int


def since(transaction: Transaction, heard: int) -> Iterator[Told]:
    """Yield what is to be told of the calls after ``heard``, in order."""
    for call in journal.since(transaction, heard):
        yield from _of_call(transaction, call)


def _of_call(transaction: Transaction, call: Call) -> Iterator[Told]:
    sessions: dict[str, str] = {}
    for change in call.changes:
        if not isinstance(change, Splice):
            if change.key in {HISTORY, INDEX}:  # a plain value came, went or changed
                about = "history" if change.key == HISTORY else "sessions"
                yield Told(f"{about}.changed", "replace", [], call.seq)
            continue
        if change.key == HISTORY:
            what, ids = _of_history(change)
            if what:
                yield Told("history.changed", what, ids, call.seq)
        elif change.key == INDEX:
            sessions |= _of_index(transaction, change)
        elif change.key.startswith(BODY):
            sessions.setdefault(change.key.removeprefix(BODY), "update")
    for what in ("save", "update", "delete"):
        found = [session for session, one in sessions.items() if one == what]
        if found:
            yield Told("sessions.changed", what, found, call.seq)


def _of_history(splice: Splice) -> tuple[str, list[str]]:
    came = [entry_word(identity) for identity, _ in splice.inserted]
    went = [entry_word(identity) for identity, _ in splice.removed]
    if not splice.length:
        told = went or splice.after != LIST or splice.before != LIST
        return ("clear", went) if told else ("", [])
    if not went and splice.at + len(came) == splice.length:
        return "append", came
    if not came:
        return "remove", went
    if came == went:
        changed = zip(splice.inserted, splice.removed, strict=True)
        return "update", [entry_word(new[0]) for new, old in changed if new != old]
    return "replace", came


def _of_index(transaction: Transaction, splice: Splice) -> dict[str, str]:
    kept = set(splice.inserted) & set(splice.removed)
    names: list[set[str]] = []
    for pairs in (splice.removed, splice.inserted):
        found = set()
        for entry, number in pairs:
            if (entry, number) not in kept:
                row = rows.of_record(transaction, entry, number)
                if row is not None and row.id:
                    found.add(row.id)
        names.append(found)
    went, came = names
    told = dict.fromkeys(came - went, "save")
    told |= dict.fromkeys(came & went, "update")
    return told | dict.fromkeys(went - came, "delete")
