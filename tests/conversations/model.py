"""What docs/protocol.md, "Conversations", says, done with Python lists: for ``test_model``.

Rules:

* A list is a Python list of ``(id, value)``; a new entry's id is ``NEW`` until the host has named
  it. What a change of a list took away is found by comparing ids, so the model has no idea of
  positions, records or references.
* A call that is refused raises ``Refused`` before anything changed (``Model.attempt`` sees to it).
* Where the protocol leaves the host a choice (which entries of an array are changes of former
  ones), the model holds the ``Assigned`` values and ``check_assigned`` judges the choice.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

NEW = 0
HISTORY, INDEX, BODY, ACTIVE = "history", "savedSessions", "session_", "activeSessionId"

Pair = tuple[int, Any]
M = TypeVar("M", bound="Model")


class Refused(Exception):
    """The call is refused with an error of this kind."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class Entries(list[Pair]):
    """A list as it is kept: ids and values."""

    @property
    def values(self) -> list[Any]:
        """The values alone."""
        return [value for _, value in self]


class Assigned(Entries):
    """A list that a whole array was written to: ids are the host's choice (see the module)."""

    def __init__(self, old: Entries, values: Sequence[Any]) -> None:
        super().__init__((NEW, value) for value in values)
        self.old = old


class Gone(NamedTuple):
    """An entry in the trash: its index, the id of the one before it, id and value."""

    at: int
    previous: int
    id: int
    value: Any


@dataclass
class Part:
    """What one call removed from one list."""

    key: str
    whole: bool
    word: str
    entries: list[Gone]


@dataclass
class Removal:
    """What one call removed."""

    what: str
    parts: list[Part]


def canonical(value: Any) -> str:
    """Return a text that two values share only if they are equal, ``True`` and ``1`` told apart."""
    return json.dumps(value, sort_keys=True)


def is_view(key: str) -> bool:
    """Whether arrays under this key are kept entry by entry."""
    return key in {HISTORY, INDEX} or (key.startswith(BODY) and key != BODY)


def session_of(row: Any) -> str:
    """Return the id of the session that a row names, ``""`` if it names none."""
    named = isinstance(row, dict) and isinstance(row.get("id"), str)
    return row["id"] if named else ""


def texts_of(entry: Any) -> list[str]:
    """Return the texts of an entry."""
    content = entry.get("content") if isinstance(entry, dict) else None
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [part["text"] for part in content if isinstance(part, dict) and "text" in part]


def digest(entries: Sequence[Any]) -> str:
    """Return ``textDigest`` of entries with little text."""
    return "".join("\n".join(texts_of(one)) + "\n" for one in entries).lower()


def name_of(entries: Sequence[Any]) -> str | None:
    """Return the name that a conversation gives itself, ``None`` for the date."""
    for entry in entries:
        question = " ".join(" ".join(texts_of(entry)).split())
        is_user = isinstance(entry, dict) and entry.get("role") == "user"
        if is_user and question and not isinstance(entry.get("attachId"), str):
            return question if len(question) <= 48 else question[:48] + "…"
    return None


@dataclass
class Model:
    """The state of a store, as a caller can know it. ``words``: of lists, ``live``: of the history.

    ``parts`` and ``order``: what the present call removed, and the keys in the order in which it
    goes through them. ``fresh_word``: whether it began a new conversation.
    """

    items: dict[str, Any] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    live: str = ""
    trash: dict[int, Removal] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    fresh_word: bool = False
    loaded: str = ""

    def copied(self: M) -> M:
        """Return a copy that can be changed without changing this one."""
        return copy.deepcopy(self)

    # Lists

    def entries(self, key: str) -> Entries | None:
        """Return the list of a key, ``None`` if the key is missing; refuse another value."""
        value = self.items.get(key)
        if value is None and key not in self.items:
            return None
        if not isinstance(value, Entries):
            raise Refused("conflict")
        return value

    def change(self, key: str, new: Sequence[Pair]) -> None:
        """Give a list other entries, or make it; what goes is for the trash."""
        old = self.items.get(key)
        fresh = new if isinstance(new, Entries) else Entries(new)
        if isinstance(old, Entries) and not isinstance(fresh, Assigned):
            self._discard(key, old, {identity for identity, _ in fresh})
        self.items[key] = fresh

    def settle_assigned(self, actual: dict[str, Entries]) -> None:
        """Take over the ids that the host chose for arrays, after judging them."""
        for key, value in list(self.items.items()):
            if isinstance(value, Assigned):
                check_assigned(key, value, actual[key])
                self._discard(key, value.old, {identity for identity, _ in actual[key]})
                self.items[key] = Entries(actual[key])

    def _discard(self, key: str, old: Entries, kept: set[int]) -> None:
        gone = [
            Gone(index, old[index - 1][0] if index else 0, *pair)
            for index, pair in enumerate(old)
            if pair[0] not in kept
        ]
        if gone:
            whole = len(gone) == len(old)
            self.parts.append(Part(key, whole, self.words.get(key, ""), gone))

    def drop(self, key: str) -> None:
        """Remove a key."""
        old = self.items.pop(key, None)
        if isinstance(old, Entries):
            self._discard(key, old, set())
            if not old:
                self.parts.append(Part(key, True, self.words.get(key, ""), []))

    # Plain keys

    def set(self, items: dict[str, Any]) -> None:
        """``storage.set``."""
        self.order = list(items)
        for key, value in items.items():
            old = self.items.get(key)
            if is_view(key) and isinstance(value, list):
                if isinstance(old, Entries):
                    self.change(key, Assigned(old, value))
                else:
                    self.change(key, [(NEW, one) for one in value])
                continue
            if isinstance(old, Entries):
                self.drop(key)
            self.items[key] = value

    def push(self, key: str, value: Any) -> None:
        """``storage.update`` with ``push`` on the key of a list."""
        self.change(key, [*(self.entries(key) or []), (NEW, value)])

    def remove(self, keys: Sequence[str]) -> None:
        """``storage.remove``."""
        for key in sorted(set(keys), key=str.encode):
            self.drop(key)

    def set_active(self, session: str) -> None:
        """Set ``activeSessionId`` if that changes what it says."""
        if self.active != session:
            self.items[ACTIVE] = session

    @property
    def active(self) -> str:
        """What ``activeSessionId`` says."""
        value = self.items.get(ACTIVE)
        return value if isinstance(value, str) else ""

    # The trash

    def restore(self, number: int, chosen: Sequence[Part]) -> dict[str, list[int]]:
        """Bring parts of a removal back; return the ids by key."""
        restored = {}
        for part in chosen:
            target = self.entries(part.key)
            old = Entries(target or [])
            order = Entries(old)
            sessions = {session_of(value) for _, value in old} - {""}
            came = []
            for gone in part.entries:
                there = [identity for identity, _ in order]
                doubled = part.key == INDEX and session_of(gone.value) in sessions
                if gone.id in there or doubled:
                    continue
                place = min(gone.at, len(order))
                if gone.previous in there:
                    place = there.index(gone.previous) + 1
                elif not gone.previous:
                    place = 0
                order.insert(place, (gone.id, gone.value))
                came.append(gone.id)
            self.items[part.key] = order
            restored[part.key] = [identity for identity, _ in order if identity in came]
            if part.key == HISTORY and part.whole and not old:
                self.live = part.word
        removal = self.trash.pop(number)
        taken = {(part.key, gone.id) for part in chosen for gone in part.entries}
        empty = {part.key for part in chosen if not part.entries}
        left = []
        for part in removal.parts:
            entries = [gone for gone in part.entries if (part.key, gone.id) not in taken]
            if entries or (not part.entries and part.key not in empty):
                left.append(Part(part.key, part.whole, part.word, entries))
        if left:
            self.trash[number] = Removal(removal.what, left)
        return restored

    def newest(self) -> list[int]:
        """Return what is in the trash, newest first."""
        return sorted(self.trash, reverse=True)

    def finish(self, what: str, number: int) -> str | None:
        """Keep what the call removed; return its token."""
        parts, self.parts = self.parts, []
        order, self.order = self.order, []
        if not parts:
            return None
        if order:
            parts.sort(key=lambda part: order.index(part.key))
        self.trash[number] = Removal(what, parts)
        return f"u{number}"


def check_assigned(key: str, assigned: Assigned, actual: Entries) -> None:
    """Judge which ids a whole array's entries were given: all that are equal keep theirs."""
    assert canonical(actual.values) == canonical(assigned.values)
    ids = [identity for identity, _ in actual]
    assert len(set(ids)) == len(ids)
    former = dict(assigned.old)
    kept: Counter[str] = Counter()
    for identity, value in actual:
        if identity not in former:
            continue
        if canonical(former[identity]) == canonical(value):
            kept[canonical(value)] += 1
        else:
            assert is_change(key, former[identity], value), (former[identity], value)
    before, after = (Counter(map(canonical, one.values)) for one in (assigned.old, actual))
    assert kept == before & after


def is_change(key: str, old: Any, new: Any) -> bool:
    """Whether an entry may be recognised as a change of a former one."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    if key == INDEX:
        return bool(session_of(old)) and session_of(old) == session_of(new)
    if old.get("role", "") != new.get("role", ""):
        return False
    if "attachId" in old or "attachId" in new:
        return bool(old.get("attachId") == new.get("attachId"))
    if old.get("content") == new.get("content"):
        return "content" in old or all(new.get(name) == old[name] for name in old)
    before, after = parts_of(old), parts_of(new)
    begins = all(
        after[at] == one
        or ("text" in one and "text" in after[at] and after[at]["text"].startswith(one["text"]))
        for at, one in enumerate(before[: len(after)])
    )
    return bool(before) and len(after) >= len(before) and begins


def parts_of(entry: Any) -> list[Any]:
    """Return the parts of an entry; a string is one."""
    content = entry.get("content")
    if isinstance(content, str):
        return [{"text": content, "type": "text"}]
    return content if isinstance(content, list) else []
