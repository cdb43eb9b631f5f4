"""Conversations: ordered entries with ids, each entry a record held by reference.

Rules:

* An entry's id is unique in its conversation and is kept when the conversation is copied. Ids
  rise with every append.
* Appending writes one entry row, whatever the length. A copy (a snapshot, a load) copies rows of
  references and no content.
* Every change returns a ``Splice`` for the journal, and leaves one reference of each record that
  came or went to it.

Positions are numbers with holes; only their order means something. A conversation whose ids do not
rise with its positions (after a reordering) is marked, and its entries are then looked for one by
one instead of by halving.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.store import records
from sidekeep.store.journal import Splice
from sidekeep.store.layout import (
    CONVERSATIONS,
    CRC,
    ENTRIES,
    ENTRY,
    ENTRY_KEY,
)
from sidekeep.store.rope import Value
from sidekeep.store.transaction import Transaction, damaged

VERSION = 1
_MOST = 2**64 - 1


class Entry(NamedTuple):
    """One entry: its position, its id, and the number of the record that holds it."""

    position: int
    id: int
    record: int


class Conversation(msgspec.Struct, array_like=True):
    """The header of a conversation, under its id (a random word) in the file.

    ``number`` is its place among the entries; ``length`` counts entries; ``last_id`` is the newest
    id given; ``revision`` the sequence number of its last change; ``ordered`` whether ids rise with
    positions; times are seconds since 1970.
    """

    version: int
    number: int
    length: int
    last_id: int
    last_position: int
    revision: int
    ordered: bool
    created: float
    changed: float


def create(transaction: Transaction, name: str) -> Conversation:
    """Make an empty conversation under an id that is not in use yet."""
    head = transaction.head
    head.conversations += 1
    now = time.time()
    conversation = Conversation(VERSION, head.conversations, 0, 0, 0, head.seq, True, now, now)
    write(transaction, name, conversation)
    return conversation


def find(transaction: Transaction, name: str) -> Conversation:
    """Return the header; ``NotFoundError`` if there is no such conversation."""
    row = transaction.get(CONVERSATIONS, name.encode())
    if row is None:
        raise NotFoundError(f"There is no conversation {name[:64]!r}.")
    body = bytes(row[CRC.size :])
    if zlib.crc32(body) != CRC.unpack_from(row)[0]:
        raise damaged("The header of a conversation does not fit its checksum.")
    conversation = msgspec.msgpack.decode(body, type=Conversation)
    if conversation.version != VERSION:
        raise damaged(f"A conversation has the unknown version {conversation.version}.")
    return conversation


def write(transaction: Transaction, name: str, conversation: Conversation) -> None:
    """Write the header."""
    body = msgspec.msgpack.encode(conversation)
    transaction.put(CONVERSATIONS, name.encode(), CRC.pack(zlib.crc32(body)) + body)


def entries(
    transaction: Transaction, conversation: Conversation, after: int = 0
) -> Iterator[Entry]:
    """Yield the entries whose position is above ``after``, in order."""
    start = ENTRY_KEY.pack(conversation.number, after + 1)
    for key, row in transaction.rows(ENTRIES, start):
        number, position = ENTRY_KEY.unpack(key)
        if number != conversation.number:
            return
        yield Entry(position, *ENTRY.unpack(row))


def append(
    transaction: Transaction,
    name: str,
    values: Sequence[Value],
    revision: int,
    ids: Sequence[int] | None = None,
) -> Splice:
    """Add entries at the end. ``ids``: given ones instead of new ones (unique, rising)."""
    conversation = find(transaction, name)
    index = conversation.length
    inserted = []
    for offset, value in enumerate(values):
        number = records.add(transaction, value, references=2)
        identity = conversation.last_id + 1 if ids is None else ids[offset]
        inserted.append((identity, number))
        _put(transaction, conversation, identity, number)
    _changed(transaction, name, conversation, revision)
    return Splice(conversation.number, index, [], inserted, revision)


def _put(transaction: Transaction, conversation: Conversation, identity: int, number: int) -> None:
    if identity <= conversation.last_id and conversation.length:
        conversation.ordered = False
    conversation.last_id = max(conversation.last_id, identity)
    conversation.last_position += 1
    conversation.length += 1
    key = ENTRY_KEY.pack(conversation.number, conversation.last_position)
    transaction.put(ENTRIES, key, ENTRY.pack(identity, number))


def _changed(
    transaction: Transaction, name: str, conversation: Conversation, revision: int
) -> None:
    conversation.revision = revision
    conversation.changed = time.time()
    write(transaction, name, conversation)


def locate(transaction: Transaction, conversation: Conversation, identity: int) -> Entry:
    """Return the entry of that id; ``NotFoundError`` if the conversation has none."""
    if conversation.ordered:
        found = _halve(transaction, conversation, identity)
    else:
        found = next(
            (one for one in entries(transaction, conversation) if one.id == identity), None
        )
    if found is None:
        raise NotFoundError(f"The conversation has no entry {identity}.")
    return found


def _halve(transaction: Transaction, conversation: Conversation, identity: int) -> Entry | None:
    low, high = 1, conversation.last_position
    while low <= high:
        middle = (low + high) // 2
        entry = next(entries(transaction, conversation, middle - 1), None)
        if entry is None or entry.id > identity:
            high = middle - 1
        elif entry.id == identity:
            return entry
        else:
            low = entry.position + 1
    return None


def replace(
    transaction: Transaction, name: str, entry: Entry, value: Value, revision: int
) -> Splice:
    """Give an entry another value; its id and place stay."""
    conversation = find(transaction, name)
    number = records.add(transaction, value, references=2)
    key = ENTRY_KEY.pack(conversation.number, entry.position)
    transaction.put(ENTRIES, key, ENTRY.pack(entry.id, number))
    _changed(transaction, name, conversation, revision)
    index = index_of(transaction, conversation, entry)
    removed, inserted = [(entry.id, entry.record)], [(entry.id, number)]
    return Splice(conversation.number, index, removed, inserted, revision)


def index_of(transaction: Transaction, conversation: Conversation, entry: Entry) -> int:
    """Return the entry's index, counted from the nearer end."""
    if conversation.length == conversation.last_position:  # no holes
        return entry.position - 1
    behind = sum(1 for _ in entries(transaction, conversation, entry.position))
    return conversation.length - 1 - behind


def remove(transaction: Transaction, name: str, gone: Sequence[Entry], revision: int) -> Splice:
    """Remove entries that stand next to each other (in order; at least one)."""
    conversation = find(transaction, name)
    index = index_of(transaction, conversation, gone[0])
    for entry in gone:
        transaction.delete(ENTRIES, ENTRY_KEY.pack(conversation.number, entry.position))
    conversation.length -= len(gone)
    _changed(transaction, name, conversation, revision)
    removed = [(entry.id, entry.record) for entry in gone]
    return Splice(conversation.number, index, removed, [], revision)


def copy(transaction: Transaction, source: str, target: str, revision: int) -> Splice:
    """Give ``target`` (which must be there) the entries of ``source`` in place of its own.

    Ids are kept. Costs a row and a reference per entry, and no content.
    """
    origin = find(transaction, source)
    conversation = find(transaction, target)
    old = list(entries(transaction, conversation))
    for entry in old:
        transaction.delete(ENTRIES, ENTRY_KEY.pack(conversation.number, entry.position))
    new = list(entries(transaction, origin))
    conversation.length = conversation.last_position = 0
    conversation.ordered = True
    for entry in new:
        # One reference for the entry, one for the journal.
        records.refer(transaction, entry.record, references=2)
        _put(transaction, conversation, entry.id, entry.record)
    conversation.ordered = origin.ordered
    conversation.last_id = max(conversation.last_id, origin.last_id)
    _changed(transaction, target, conversation, revision)
    return Splice(
        conversation.number,
        0,
        [(entry.id, entry.record) for entry in old],
        [(entry.id, entry.record) for entry in new],
        revision,
    )


def delete(transaction: Transaction, name: str, revision: int) -> Splice:
    """Remove a conversation with all its entries."""
    conversation = find(transaction, name)
    old = list(entries(transaction, conversation))
    for entry in old:
        transaction.delete(ENTRIES, ENTRY_KEY.pack(conversation.number, entry.position))
    transaction.delete(CONVERSATIONS, name.encode())
    removed = [(entry.id, entry.record) for entry in old]
    return Splice(conversation.number, 0, removed, [], revision)
