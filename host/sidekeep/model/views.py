"""The plain keys ``history``, ``savedSessions`` and ``session_<id>``: arrays kept entry by entry.

Source of the rules: docs/protocol.md, "Conversations". What was set is what is read; an array that
is written whole keeps the ids of the entries it did not change.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from sidekeep.errors import ConflictError
from sidekeep.model.edit import Edit
from sidekeep.model.ends import common_ends
from sidekeep.model.entries import Facts, NewEntry, facts_of, prepare
from sidekeep.model.keys import HISTORY, INDEX, is_view
from sidekeep.store import documents, lists, records
from sidekeep.store.founding import live_word, new_word
from sidekeep.store.journal import LIST, AnyChange
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.rope import LongString, Value
from sidekeep.store.transaction import Transaction

_array = msgspec.json.Decoder(list[msgspec.Raw])


def prepare_array(key: str, raw: bytes, holes: Sequence[LongString]) -> list[NewEntry] | None:
    """Make entries of an array's JSON text; ``None`` if it is no array. See ``entries.prepare``."""
    if not raw.lstrip().startswith(b"["):
        return None
    return prepare(_array.decode(raw), holes, searched=key != INDEX)


def open_list(transaction: Transaction, key: str) -> StoredList | None:
    """Return the list of a key, ``None`` if there is none; ``ConflictError`` for another value."""
    found = lists.find(transaction, key)
    if found is None and documents.find(transaction, key) is not None:
        raise ConflictError(
            f"The value of {key[:64]!r} is no array.", next="remove it or set an array first"
        )
    return found


def opened(edit: Edit, key: str) -> tuple[StoredList, int]:
    """Return the list of a key for a change, and what the key held before it (for the splice).

    A list is made if there is nothing; ``ConflictError`` if there is another value.
    """
    found = open_list(edit.transaction, key)
    if found is not None:
        return found, LIST
    return edit.create(key, word_for(edit.transaction, key))


def word_for(transaction: Transaction, key: str) -> str:
    """Return the word of a conversation that begins under this key."""
    return live_word(transaction) if key == HISTORY else new_word()


def assign(edit: Edit, key: str, new: Sequence[NewEntry]) -> None:
    """Make the list of a key hold these entries, with the ids of those that are still the same."""
    transaction = edit.transaction
    target = lists.find(transaction, key)
    if target is None:
        target, before = edit.create(key, word_for(transaction, key))
        pairs = [add(transaction, entry) for entry in new]
        edit.splice(target, 0, [], pairs, before=before)
        return
    old = list(target.entries())
    start, end = common_ends(
        old, new, lambda one, two: records.holds(transaction, one.record, two.value)
    )
    removed = old[start : len(old) - end]
    middle = new[start : len(new) - end]
    chosen = _matched(transaction, key, removed, middle)
    pairs = []
    for entry, match in zip(middle, chosen, strict=True):
        if match is None:
            pairs.append(add(transaction, entry))
            continue
        same, position = match
        one = removed[position]
        if same:
            records.refer(transaction, one.record, references=2)
            pairs.append((one.id, one.record))
        else:
            pairs.append((one.id, add(transaction, entry)[1]))
    edit.splice(target, start, removed, pairs)


def facts_in(transaction: Transaction, target: StoredList) -> Iterator[Facts]:
    """Yield what the entries of a list say, in order."""
    for entry in target.entries():
        yield facts_of(transaction, records.read(transaction, entry.record))


def add(transaction: Transaction, entry: NewEntry) -> tuple[int, int]:
    """Store an entry; return its id and its record, with references for list and journal."""
    number = records.add(transaction, entry.value, references=2, searched=entry.searched)
    return number, number


def _matched(
    transaction: Transaction, key: str, old: Sequence[Entry], new: Sequence[NewEntry]
) -> list[tuple[bool, int] | None]:
    """Return for each new entry whether and at which place it is among the old ones.

    ``(True, place)``: the same value. ``(False, place)``: a change of that entry.
    """
    by_body: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for place, entry in enumerate(old):
        record = records.read_if_good(transaction, entry.record)
        if record is not None:
            by_body[bytes(record.body)].append(place)
    chosen: list[tuple[bool, int] | None] = []
    for one in new:
        places = by_body.get(one.value.body)
        chosen.append((True, places.popleft()) if places else None)
    left = sorted(place for places in by_body.values() for place in places)
    if left and None in chosen:
        _match_changes(transaction, key, old, new, chosen, left)
    return chosen


def _match_changes(
    transaction: Transaction,
    key: str,
    old: Sequence[Entry],
    new: Sequence[NewEntry],
    chosen: list[tuple[bool, int] | None],
    left: list[int],
) -> None:
    """Find which of the ``left`` places the entries that are not matched yet are changes of.

    By what names them, wherever they stand; text that grew is looked for among the first
    ``_LOOK_AHEAD`` that are left, so that this stays linear.
    """
    facts: dict[int, Facts] = {
        place: facts_of(transaction, records.read(transaction, old[place].record)) for place in left
    }
    by_sign: defaultdict[tuple[object, ...], deque[int]] = defaultdict(deque)
    for place in left:
        for sign in _signs(key, facts[place]):
            by_sign[sign].append(place)
    taken: set[int] = set()
    for index, match in enumerate(chosen):
        if match is not None:
            continue
        place = _named_place(by_sign, _signs(key, new[index].facts), taken)
        if place < 0 and key != INDEX:
            first = (one for one in left[:_LOOK_AHEAD] if new[index].facts.continues(facts[one]))
            place = next(first, -1)
        if place >= 0:
            chosen[index] = (False, place)
            taken.add(place)
            left.remove(place)


_LOOK_AHEAD = 16


def _named_place(
    by_sign: Mapping[tuple[object, ...], deque[int]],
    signs: Iterable[tuple[object, ...]],
    taken: set[int],
) -> int:
    """Return the first place with one of these signs that is not taken, -1 if there is none."""
    for sign in signs:
        places = by_sign.get(sign, deque())
        while places:
            place = places.popleft()
            if place not in taken:
                return place
    return -1


def _signs(key: str, facts: Facts) -> list[tuple[object, ...]]:
    """Return by what an entry of a list is known although it was changed."""
    if key != INDEX:
        return facts.signs()
    named = facts.fields.get("id")
    return [("id", named)] if isinstance(named, str) and named else []


def set_items(
    transaction: Transaction,
    items: Iterable[tuple[str, Value | list[NewEntry]]],
    revision: int,
) -> list[AnyChange]:
    """Store items of which some lie under keys of lists; see ``areas.set_items``."""
    edit = Edit(transaction, revision, "storage.set")
    for key, value in items:
        if isinstance(value, list):
            assign(edit, key, value)
            continue
        target = lists.find(transaction, key) if is_view(key) else None
        if target is None:
            edit.put(key, value)
        else:
            edit.replaced_by_plain(target, value)
    return edit.finish()[0]


def push(transaction: Transaction, key: str, operand: bytes, revision: int) -> list[AnyChange]:
    """Add an entry, given as JSON text, to the array of a key."""
    edit = Edit(transaction, revision, "storage.update")
    target, before = opened(edit, key)
    new = prepare([msgspec.Raw(operand)], searched=key != INDEX)
    edit.splice(target, len(target), [], [add(transaction, new[0])], before=before)
    return edit.finish()[0]


def remove_items(
    transaction: Transaction, keys: Iterable[str], revision: int, what: str
) -> list[AnyChange]:
    """Remove items of which some may be lists; see ``areas.remove``."""
    edit = Edit(transaction, revision, what)
    for key in keys:
        remove(edit, key)
    return edit.finish()[0]


def remove(edit: Edit, key: str) -> None:
    """Remove what lies under a key."""
    found = lists.find(edit.transaction, key) if is_view(key) else None
    if found is not None:
        edit.drop(found)
    else:
        edit.remove(key)
