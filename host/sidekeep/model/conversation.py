"""A conversation as messages: what a request is built from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.model import words
from sidekeep.model.entries import readable
from sidekeep.requests.form import Message, message
from sidekeep.store import blobs, lists, records, tokens
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction


def located(transaction: Transaction, word: str) -> StoredList | None:
    """Return the list in which a conversation lies now, ``None`` if it is nowhere."""
    key = words.place_of(transaction, word)
    return None if key is None else lists.find(transaction, key)


def messages_until(
    transaction: Transaction, word: str, last: int, prefixes: Sequence[str]
) -> list[Message]:
    """Return the messages of a conversation up to the entry ``last``, which is among them.

    ``NotFoundError`` if the conversation or that entry is nowhere.
    """
    target = located(transaction, word)
    found: list[Message] = []
    for entry in () if target is None else target.entries():
        one = message_of(transaction, entry, prefixes)
        if one is not None:
            found.append(one)
        if entry.id == last:
            return found
    raise NotFoundError(
        "The question of this turn is no longer in its conversation.",
        next="ask it again, or complete the turn with what the model said",
    )


def message_of(transaction: Transaction, entry: Entry, prefixes: Sequence[str]) -> Message | None:
    """Return an entry as a message, ``None`` if it is nothing that a model could be sent."""
    record = records.read(transaction, entry.record)
    decoded = decoded_entry(transaction, record)
    if not isinstance(decoded, dict):
        return None
    return message(entry.id, decoded, blobs_by_token(record), prefixes)


def messages_at(
    transaction: Transaction, target: StoredList, identities: Sequence[int]
) -> dict[int, Message]:
    """Return those of the entries that are in a list and are messages, by id."""
    found = {}
    for identity in identities:
        entry = target.locate(identity)
        one = None if entry is None else message_of(transaction, entry, ())
        if one is not None:
            found[identity] = one
    return found


def decoded_entry(transaction: Transaction, record: Record) -> Any:  # noqa: ANN401
    """Return the JSON value of an entry, with tokens in the place of pictures."""
    return msgspec.json.decode(
        readable(record.pieces, lambda blob: blobs.chunks(transaction, blob.hash))
    )


def blobs_by_token(record: Record) -> dict[str, Blob]:
    """Return what the tokens of a decoded entry stand for."""
    return {tokens.write(blob).decode(): blob for blob in _blobs(record)}


def _blobs(record: Record) -> Iterator[Blob]:
    for piece in record.pieces:
        if isinstance(piece, Blob):
            yield piece
