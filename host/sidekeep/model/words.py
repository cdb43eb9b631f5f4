"""Which session is which conversation: the way from a conversation's word to its body.

A conversation keeps its word when it is saved and loaded, so that an answer that comes late finds
it. Of several snapshots of one conversation the one that was saved last has the word.
"""

from __future__ import annotations

from sidekeep.model.keys import BODY, HISTORY
from sidekeep.store import lists
from sidekeep.store.founding import live_word, new_word
from sidekeep.store.layout import META
from sidekeep.store.lists import StoredList
from sidekeep.store.transaction import Transaction

_TABLE = b"word:"


def place_of(transaction: Transaction, word: str) -> str | None:
    """Return the key under which a conversation lies now, ``None`` if it is nowhere."""
    if live_word(transaction) == word:
        return HISTORY
    return _session(transaction, word)


def _session(transaction: Transaction, word: str) -> str | None:
    row = transaction.get(META, _TABLE + word.encode())
    return None if row is None else str(row, "utf-8")


def free(transaction: Transaction, word: str) -> str:
    """Return the word if no session has it, else a new one."""
    return word if word and _session(transaction, word) is None else new_word()


def note(transaction: Transaction, target: StoredList) -> None:
    """Note which conversation a new body is."""
    if target.key.startswith(BODY):
        transaction.put(META, _TABLE + target.header.word.encode(), target.key.encode())


def forget(transaction: Transaction, target: StoredList) -> None:
    """Take the note of a body back, before it goes."""
    if _session(transaction, target.header.word) == target.key:
        transaction.delete(META, _TABLE + target.header.word.encode())


def give(transaction: Transaction, target: StoredList, word: str) -> None:
    """Make a body the conversation ``word``; a body that was it before becomes one of its own."""
    if target.header.word == word:
        return
    former = _session(transaction, word)
    if former is not None and former != target.key:
        other = lists.find(transaction, former)
        if other is not None:
            other.header.word = new_word()
            other.write()
            note(transaction, other)
    forget(transaction, target)
    target.header.word = word
    target.write()
    note(transaction, target)
