"""One change of lists: what it leaves for the journal, the trash, and the index of sessions.

Every change of a list goes through an ``Edit``, so that none forgets one of the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sidekeep.model import rows, words
from sidekeep.model.keys import BODY, INDEX
from sidekeep.store import documents, lists, trash
from sidekeep.store.journal import ABSENT, LIST, AnyChange, Splice
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.records import Record
from sidekeep.store.rope import Value
from sidekeep.store.transaction import Transaction
from sidekeep.store.trash import Gone, Part


class Edit:
    """What one call changes. ``what``: the method, as the trash is to call it."""

    def __init__(self, transaction: Transaction, revision: int, what: str) -> None:
        self.transaction = transaction
        self.revision = revision
        self._what = what
        self._changes: list[AnyChange] = []
        self._parts: list[Part] = []

    def splice(
        self,
        target: StoredList,
        at: int,
        removed: Sequence[Entry],
        inserted: Sequence[tuple[int, int]],
        *,
        before: int = LIST,
        known: Mapping[int, Record] | None = None,
    ) -> None:
        """Put ``inserted`` (pairs of id and record) in place of ``removed``, which begin at ``at``.

        What is removed and not inserted again goes to the trash. References, and ``known``: see
        ``lists``.
        """
        if not removed and not inserted and before == LIST:
            return
        kept = {identity for identity, _ in inserted}
        gone = [entry for entry in removed if entry.id not in kept]
        if gone:
            self._discard(target, at, removed, gone)
        self._add(target.splice(at, removed, inserted, self.revision, before, known))

    def drop(self, target: StoredList, after: int = ABSENT) -> None:
        """Remove a whole list."""
        entries = list(target.entries())
        self._discard(target, 0, entries, entries)
        words.forget(self.transaction, target)
        self._add(target.drop(after))

    def put(self, key: str, value: Value) -> None:
        """Store a plain value."""
        change = documents.put(self.transaction, key, value, self.revision)
        if change is not None:
            self._changes.append(change)

    def remove(self, key: str) -> None:
        """Remove a plain value."""
        change = documents.remove(self.transaction, key)
        if change is not None:
            self._changes.append(change)

    def replaced_by_plain(self, target: StoredList, value: Value) -> None:
        """Put a plain value in place of a list."""
        self.drop(target)
        change = documents.put(self.transaction, target.key, value, self.revision)
        splice = self._changes.pop()
        assert change is not None
        assert isinstance(splice, Splice)
        self._changes.append(splice._replace(after=change.after))

    def create(self, key: str, word: str) -> tuple[StoredList, int]:
        """Make an empty list; return it and what the key held before (for the first splice)."""
        before = lists.state(self.transaction, key)
        if before > 0:  # a plain value makes room
            documents.remove(self.transaction, key)
        if key.startswith(BODY):
            word = words.free(self.transaction, word)
        made = lists.create(self.transaction, key, word, counted=key != INDEX)
        words.note(self.transaction, made)
        return made, before

    def discard(self, part: Part) -> None:
        """Add to what goes to the trash."""
        self._parts.append(part)

    def finish(self) -> tuple[list[AnyChange], str | None]:
        """Return the changes in the order of their keys, and what brings back what was removed."""
        undo = None
        if self._parts:
            trash.keep(self.transaction, self._what, self._parts, self.revision)
            undo = undo_token(self.revision)
        return sorted(self._changes, key=lambda change: change.key), undo

    def _discard(
        self, target: StoredList, at: int, removed: Sequence[Entry], gone: Sequence[Entry]
    ) -> None:
        previous = target.at(at - 1).id if at else 0
        chosen = {entry.id for entry in gone}
        entries = []
        for offset, entry in enumerate(removed):
            if entry.id in chosen:
                entries.append(Gone(at + offset, previous, entry.id, entry.record))
            previous = entry.id
        whole = len(gone) == len(target)
        self._parts.append(Part(target.key, whole, target.header.word, entries))

    def _add(self, splice: Splice) -> None:
        self._changes.append(splice)
        if splice.key == INDEX:
            rows.follow(self.transaction, splice)


def undo_token(number: int) -> str:
    """Return how the removal of that call is named outside."""
    return f"u{number}"


def undo_number(word: str) -> int:
    """Return the call that a token names; -1, which no call has, if it is no such token."""
    digits = word[1:]
    is_token = word[:1] == "u" and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if is_token else -1
