"""The live conversation: the list under ``history``, changed entry by entry.

Source of the rules: the seed storage model ("Histórico global e plano") and docs/protocol.md,
"Conversations". Functions that change something take an ``Edit``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from sidekeep.errors import ConflictError, InvalidParams, NotFoundError
from sidekeep.model.edit import Edit
from sidekeep.model.ends import common_ends
from sidekeep.model.entries import ATTACHED, NewEntry, facts_of
from sidekeep.model.keys import ACTIVE, HISTORY
from sidekeep.model.updates import text_of
from sidekeep.model.views import add, open_list, opened
from sidekeep.store import documents, lists, records, rope
from sidekeep.store.founding import LIVE_KEY, live_word, new_word
from sidekeep.store.layout import META, NUMBER, SEARCH
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.transaction import Transaction

_encode = msgspec.json.encode


class Appended(NamedTuple):
    """``ids`` of what was added, and the list's length."""

    ids: list[int]
    length: int


class Removed(NamedTuple):
    """How many entries went, the index of the first, and the length that is left."""

    entries: int
    at: int
    length: int


def check(
    transaction: Transaction,
    target: StoredList | None,
    *,
    revision: int | None = None,
    conversation: str | None = None,
) -> None:
    """Compare what a caller expects with what is; ``ConflictError`` with the present state."""
    live = live_word(transaction)
    present = 0 if target is None else target.revision
    if conversation is not None and conversation != live:
        raise ConflictError(
            "Another conversation is live.",
            next="read the history again and decide where the change belongs",
            conversation=live,
            revision=present,
        )
    if revision is not None and revision != present:
        raise ConflictError(
            "The history has changed since it was read.",
            next="read it again and repeat the change",
            revision=present,
            conversation=live,
        )


def append(edit: Edit, key: str, new: Sequence[NewEntry]) -> Appended:
    """Add entries at the end of a list."""
    target, before = opened(edit, key)
    pairs = [add(edit.transaction, entry) for entry in new]
    edit.splice(target, len(target), [], pairs, before=before)
    return Appended([identity for identity, _ in pairs], len(target))


def update(edit: Edit, key: str, entry: Entry, new: NewEntry) -> None:
    """Give an entry another value; its id stays. An equal value is no change."""
    target = _there(edit.transaction, key)
    if records.holds(edit.transaction, entry.record, new.value):
        return
    number = add(edit.transaction, new)[1]
    edit.splice(target, target.index_of(entry), [entry], [(entry.id, number)])


def replace(edit: Edit, new: Sequence[tuple[int | None, NewEntry]]) -> list[int]:
    """Make the history hold these entries; return their ids.

    An id must be one of the present history; ``NotFoundError`` if not, ``InvalidParams`` if it
    stands twice. An entry without one is new.
    """
    transaction = edit.transaction
    target, before = opened(edit, HISTORY)
    old = list(target.entries())
    by_id = {entry.id: entry for entry in old}
    named = [identity for identity, _ in new if identity is not None]
    if len(set(named)) != len(named):
        raise InvalidParams("An id stands twice in entries.")
    for identity in named:
        if identity not in by_id:
            raise _no_entry(identity)

    def same(one: Entry, two: tuple[int | None, NewEntry]) -> bool:
        return one.id == two[0] and records.holds(transaction, one.record, two[1].value)

    start, end = common_ends(old, new, same)
    pairs = []
    for known, entry in new[start : len(new) - end]:
        if known is not None and records.holds(transaction, by_id[known].record, entry.value):
            number = by_id[known].record
            records.refer(transaction, number, references=2)
            pairs.append((known, number))
        else:
            made, number = add(transaction, entry)
            pairs.append((made if known is None else known, number))
    edit.splice(target, start, old[start : len(old) - end], pairs, before=before)
    _settle_emptied(edit, target)
    ids = [entry.id for entry in old[:start]] + [identity for identity, _ in pairs]
    return ids + [entry.id for entry in old[len(old) - end :]]


def remove(edit: Edit, entry: Entry) -> Removed:
    """Remove one entry of the history."""
    target = _there(edit.transaction, HISTORY)
    index = target.index_of(entry)
    edit.splice(target, index, [entry], [])
    _settle_emptied(edit, target)
    return Removed(1, index, len(target))


def amend(
    edit: Edit, target: StoredList, values: Mapping[int, NewEntry | int], new: Sequence[NewEntry]
) -> list[int]:
    """Give entries (by id) other values and add some at the end, in one change; return new ids.

    A number stands for the value of the record that has it.
    """
    transaction = edit.transaction
    first = min(
        (entry.position for one in values if (entry := target.locate(one)) is not None),
        default=None,
    )
    old = [] if first is None else list(target.entries(first - 1))
    at = len(target) - len(old)
    pairs = []
    for entry in old:
        value = values.get(entry.id, entry.record)
        if isinstance(value, int):
            records.refer(transaction, value, references=2)
            pairs.append((entry.id, value))
        else:
            pairs.append((entry.id, add(transaction, value)[1]))
    added = [add(transaction, entry) for entry in new]
    edit.splice(target, at, old, pairs + added)
    return [identity for identity, _ in added]


def restart(edit: Edit, target: StoredList, entry: Entry, new: NewEntry) -> int:
    """Put one new entry in the place of an entry and all that follow it; return its id."""
    at = target.index_of(entry)
    gone = list(target.entries(entry.position - 1))
    pair = add(edit.transaction, new)
    edit.splice(target, at, gone, [pair])
    return pair[0]


def truncate(edit: Edit, entry: Entry) -> Removed:
    """Remove an entry and all that follow it."""
    target = _there(edit.transaction, HISTORY)
    index = target.index_of(entry)
    gone = list(target.entries(entry.position - 1))
    edit.splice(target, index, gone, [])
    _settle_emptied(edit, target)
    return Removed(len(gone), index, len(target))


def clear(edit: Edit) -> str:
    """Empty the history and begin a new conversation; return its word."""
    target = open_list(edit.transaction, HISTORY)
    if target is not None:
        edit.splice(target, 0, list(target.entries()), [])
    make_live(edit, new_word())
    set_active(edit, "")
    return live_word(edit.transaction)


def _settle_emptied(edit: Edit, target: StoredList) -> None:
    if not len(target):
        set_active(edit, "")


def make_live(edit: Edit, word: str) -> None:
    """Say which conversation the history is from now on."""
    edit.transaction.put(META, LIVE_KEY, word.encode())
    target = lists.find(edit.transaction, HISTORY)
    if target is not None and target.header.word != word:
        target.header.word = word
        target.write()


def set_active(edit: Edit, session: str) -> None:
    """Set ``activeSessionId``, if that changes anything."""
    if active(edit.transaction) != session:
        edit.put(ACTIVE, rope.build(_encode(session)))


def active(transaction: Transaction) -> str:
    """Return ``activeSessionId``, ``""`` if it is missing or no string."""
    record = documents.read(transaction, ACTIVE)
    if record is None:
        return ""
    try:
        return msgspec.json.decode(text_of(transaction, record), type=str)
    except msgspec.ValidationError:
        return ""


def entry_at(transaction: Transaction, key: str, index: int) -> Entry:
    """Return the entry at an index; ``InvalidParams`` if it is out of range."""
    target = open_list(transaction, key)
    length = 0 if target is None else len(target)
    if target is None or not 0 <= index < length:
        raise InvalidParams(
            f"The index {index} is not in the list, which has {length} entries.",
            next="use an index from 0 to the length less 1, or an id",
        )
    return target.at(index)


def entry_of(transaction: Transaction, key: str, identity: int) -> Entry:
    """Return the entry of an id; ``NotFoundError`` if the list has none."""
    target = open_list(transaction, key)
    entry = None if target is None else target.locate(identity)
    if entry is None:
        raise _no_entry(identity)
    return entry


def entry_attached(transaction: Transaction, key: str, attach_id: str) -> Entry | None:
    """Return the first user entry with that ``attachId``, or ``None``."""
    target = open_list(transaction, key)
    if target is None or not attach_id:
        return None
    for entry in target.entries():
        row = transaction.get(SEARCH, NUMBER.pack(entry.record))
        if row is None or not row[0] & ATTACHED:
            continue
        facts = facts_of(transaction, records.read(transaction, entry.record))
        if facts.role == "user" and facts.attach_id == attach_id:
            return entry
    return None


def _there(transaction: Transaction, key: str) -> StoredList:
    target = open_list(transaction, key)
    if target is None:
        raise NotFoundError(f"There is no {key!r}.")
    return target


def _no_entry(identity: int) -> NotFoundError:
    return NotFoundError(
        f"The conversation has no entry {entry_word(identity)!r}.",
        next="read the history again",
    )


def entry_word(identity: int) -> str:
    """Return how an entry's id is written outside: a string, so that it is no index."""
    return f"e{identity}"


def entry_number(word: str) -> int:
    """Return the id that a word stands for; 0, which no entry has, if it is no such word."""
    digits = word[1:]
    is_id = word[:1] == "e" and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_id else 0
