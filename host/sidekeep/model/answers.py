"""What becomes of a turn: its answer, what there is of one, and the marks on what was sent.

Source of the rules: the seed storage model and its defect list, as docs/protocol.md, "Turns",
settles them. Pictures are marked as seen, and attachments as too large, only with the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from sidekeep.errors import ConflictError
from sidekeep.model import history, sessions
from sidekeep.model.conversation import decoded_entry, located, messages_at
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, facts_of, prepare
from sidekeep.model.keys import BODY
from sidekeep.model.rows import with_members
from sidekeep.model.updates import text_of
from sidekeep.store import records, rope, turns
from sidekeep.store.lists import StoredList
from sidekeep.store.transaction import Transaction
from sidekeep.store.turns import DONE, FAILED, INTERRUPTED, OPEN, Turn

_encode = msgspec.json.encode
RECOVERED = "Recovered"


def complete(
    edit: Edit, identity: str, content: bytes, stamps: dict[str, Any], prefixes: Sequence[str]
) -> Turn:
    """Append the answer to the turn's conversation, wherever that lies now.

    ``content``: JSON text. ``stamps``: further fields of the answer. ``prefixes``: what the text of
    an attachment begins with. ``ConflictError`` if the turn failed.
    """
    transaction = edit.transaction
    turn = turns.find(transaction, identity)
    if turn.state == DONE:
        return turn
    if turn.state == FAILED:
        raise ConflictError(
            f"The turn has ended ({turn.reason}); it cannot be completed.",
            next="append the answer with history.append if it is to be kept",
        )
    target = located(transaction, turn.conversation)
    video = None if target is None else _video(transaction, target, turn.entry, prefixes)
    fields = {**({} if video is None else {"videoSrc": video}), **stamps, "role": "assistant"}
    text = with_members(b'{"content":%b}' % content, fields)
    answer = NewEntry(rope.build(text), searched=True)
    if target is None:
        _recover(edit, turn, answer)
    else:
        _answer(edit, turn, target, answer)
    turn.state = DONE
    turn.partial = ""
    turns.put(transaction, turn)
    return turn


def _answer(edit: Edit, turn: Turn, target: StoredList, answer: NewEntry) -> None:
    """Put the answer into a conversation, and the marks on the entries that it concerns."""
    changes: dict[int, dict[str, object]] = {}
    carried = _still_carried(edit.transaction, turn, target)
    for identity in carried:
        changes.setdefault(identity, {})["imagesSeen"] = True
    for identity in _still_too_large(edit.transaction, turn, target):
        changes.setdefault(identity, {})["sendAsStub"] = True
    if turn.state == INTERRUPTED:
        changes.setdefault(turn.entry, {})["failed"] = None
    new: list[NewEntry] = []
    present = target.locate(turn.answer) if turn.answer else None
    values: dict[int, NewEntry | int] = {}
    if present is not None:  # what had been kept of the answer makes room
        values[present.id] = answer
    else:
        new.append(answer)
    turn.seen = sorted(set(_rewritten(edit.transaction, target, changes, values)) & set(carried))
    _apply(edit, turn, target, values, new)


def _still_carried(transaction: Transaction, turn: Turn, target: StoredList) -> list[int]:
    """Return the ids of the entries that have the pictures which were in the turn's request."""
    if not turn.fingerprints:
        return turn.carried
    now = messages_at(transaction, target, turn.carried)
    then = zip(turn.carried, turn.fingerprints, strict=True)
    return [one for one, mark in then if one in now and now[one].fingerprint == mark]


def _still_too_large(transaction: Transaction, turn: Turn, target: StoredList) -> list[int]:
    """Return the ids of the attachments with the text for which they were left out.

    One may have been condensed since; its summary is not too large.
    """
    if not turn.stubbed_texts:
        return turn.stubbed
    now = messages_at(transaction, target, turn.stubbed)
    then = zip(turn.stubbed, turn.stubbed_texts, strict=True)
    return [one for one, mark in then if one in now and now[one].text_fingerprint == mark]


def _rewritten(
    transaction: Transaction,
    target: StoredList,
    changes: dict[int, dict[str, object]],
    values: dict[int, NewEntry | int],
) -> list[int]:
    """Add to ``values`` the entries with changed fields; return the ids that were there."""
    there = []
    for identity, fields in changes.items():
        entry = target.locate(identity)
        if entry is None:
            continue
        record = records.read(transaction, entry.record)
        decoded = decoded_entry(transaction, record)
        if not isinstance(decoded, dict):
            continue
        there.append(identity)
        if any(decoded.get(name) != value for name, value in fields.items()):
            text = with_members(text_of(transaction, record), fields)
            values[identity] = NewEntry(rope.build(text), searched=True)
    return there


def _apply(
    edit: Edit,
    turn: Turn,
    target: StoredList,
    values: dict[int, NewEntry | int],
    new: Sequence[NewEntry],
) -> None:
    """Change and append entries of a list in one splice."""
    added = history.amend(edit, target, values, new)
    turn.answer = added[-1] if added else turn.answer
    turn.session = None
    if target.key.startswith(BODY):
        session = target.key.removeprefix(BODY)
        turn.session = session
        sessions.refresh_digest(edit, session)


def _recover(edit: Edit, turn: Turn, answer: NewEntry) -> None:
    """Keep an answer whose conversation was deleted, with its question, in a new session."""
    transaction = edit.transaction
    question = records.read(transaction, turn.record)
    entries = [NewEntry(rope.build(text_of(transaction, question)), searched=True), answer]
    turn.session, ids = sessions.add_session(edit, RECOVERED, entries, turn.conversation)
    turn.answer = ids[-1]


def _video(
    transaction: Transaction, target: StoredList, question: int, prefixes: Sequence[str]
) -> object | None:
    """Return ``videoSrc`` of the newest attachment before the question that has one."""
    entry = target.locate(question)
    for one in target.entries_back(entry.position) if entry is not None else target.entries_back():
        facts = facts_of(transaction, records.read(transaction, one.record))
        if facts.role == "user" and facts.is_attachment(prefixes) and "videoSrc" in facts.fields:
            found: object = facts.fields["videoSrc"]
            return found
    return None


def fail(edit: Edit, turn: Turn, reason: str, partial: str | None) -> Turn:
    """End a turn without its answer: mark the question, and keep what came of the answer.

    ``ConflictError`` if it was completed. Failing twice changes nothing.
    """
    if turn.state == DONE:
        raise ConflictError("The turn has been completed.", next="read the history again")
    if turn.state != OPEN:
        return turn
    transaction = edit.transaction
    text = "" if reason == "drop" else (turn.partial if partial is None else partial)
    turn.reason = reason
    turn.state = FAILED
    target = located(transaction, turn.conversation)
    if target is not None:
        values: dict[int, NewEntry | int] = {}
        _rewritten(transaction, target, {turn.entry: {"failed": reason}}, values)
        new = []
        if text.strip():
            new = [_cut_short(text)]
        _apply(edit, turn, target, values, new)
    elif text.strip():
        _recover(edit, turn, _cut_short(text))
    turn.partial = ""
    turns.put(transaction, turn)
    return turn


def _cut_short(text: str) -> NewEntry:
    """Make the entry of an answer of which only the beginning came."""
    fields = {"content": text, "interrupted": True, "role": "assistant"}
    return prepare([msgspec.Raw(_encode(fields, order="sorted"))])[0]


def interrupt(edit: Edit, turn: Turn) -> None:
    """End a turn whose caller is gone; unlike others it may still be completed."""
    fail(edit, turn, "interrupted", None)
    turn.state = INTERRUPTED
    turns.put(edit.transaction, turn)
