"""Turns: one question, the request it makes, and the answer or what came of it.

Source of the rules: the seed storage model ("Um envio = exatamente uma bolha de usuário") and its
defect list, as docs/protocol.md, "Turns", settles them. Nothing stored is ever made smaller for a
request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from sidekeep.caller import Caller
from sidekeep.errors import BusyError, ConflictError, InvalidParams, NotFoundError
from sidekeep.model import history, sessions
from sidekeep.model.conversation import decoded_entry, located, message_of, messages_until
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, facts_of, prepare
from sidekeep.model.keys import BODY, HISTORY
from sidekeep.model.rows import with_members
from sidekeep.model.updates import text_of
from sidekeep.model.views import open_list
from sidekeep.requests.plan import Plan, plan
from sidekeep.requests.settings import Limits, RequestSettings, Target
from sidekeep.store import records, rope, turns
from sidekeep.store.founding import live_word
from sidekeep.store.lists import StoredList
from sidekeep.store.transaction import Transaction
from sidekeep.store.turns import DONE, FAILED, INTERRUPTED, OPEN, Turn

_encode = msgspec.json.encode
RECOVERED = "Recovered"
_decode_target = msgspec.json.Decoder(Target).decode
_decode_limits = msgspec.json.Decoder(Limits).decode


class Question(msgspec.Struct):
    """What begins a turn. ``target`` and ``limits``: JSON text, checked."""

    entry: NewEntry
    target: bytes
    limits: bytes
    parallel: bool = False


def begin(edit: Edit, caller: Caller, question: Question, settings: RequestSettings) -> Turn:
    """Append the question to the live history and open a turn for it.

    ``BusyError`` while another turn of this conversation runs, unless the question is parallel.
    """
    transaction = edit.transaction
    word = live_word(transaction)
    if not question.parallel:
        _check_idle(transaction, caller, word)
    (identity,), _ = history.append(edit, HISTORY, [question.entry])
    return _opened(transaction, caller, word, identity, question, settings)


def _opened(
    transaction: Transaction,
    caller: Caller,
    word: str,
    identity: int,
    question: Question,
    settings: RequestSettings,
) -> Turn:
    entry = history.entry_of(transaction, HISTORY, identity)
    records.refer(transaction, entry.record)
    now = time.time()
    turn = Turn(
        turns.VERSION,
        os.urandom(12).hex(),
        OPEN,
        word,
        identity,
        entry.record,
        caller.client,
        caller.owner(),
        question.target,
        question.limits,
        now,
        now,
        [],
    )
    _note_carried(turn, planned(transaction, turn, settings))
    turns.put(transaction, turn)
    return turn


def _note_carried(turn: Turn, made: Plan) -> None:
    """Note which pictures the turn's request holds, and not only of which entries they are.

    An entry may get other pictures while the turn runs, and those the model has not seen.
    """
    pictures = {one.id: one.fingerprint for one in made.messages}
    turn.carried = made.carried
    turn.fingerprints = [pictures[identity] for identity in made.carried]


def _busy(turn: Turn) -> BusyError:
    return BusyError(
        "Another turn of this conversation is running.",
        next="complete or fail it first, or begin with parallel",
        turnId=turn.id,
    )


def _check_idle(transaction: Transaction, caller: Caller, word: str) -> None:
    for turn in turns.in_state(transaction, OPEN):
        if turn.conversation == word and caller.lives(turn.owner):
            raise _busy(turn)


def planned(transaction: Transaction, turn: Turn, settings: RequestSettings) -> Plan:
    """Return what the request of a turn holds, as the conversation is now.

    ``NotFoundError``, with ``turnId``, if the question is no longer there.
    """
    try:
        messages = messages_until(transaction, turn.conversation, turn.entry, settings.prefixes)
    except NotFoundError as error:
        error.data["turnId"] = turn.id
        raise
    return plan(
        messages,
        _decode_target(turn.target),
        settings,
        _decode_limits(turn.limits),
        stub=turn.rescued,
    )


def target_of(turn: Turn) -> Target:
    """Return what the turn's request is for."""
    return _decode_target(turn.target)


def progress(transaction: Transaction, identity: str, text: str) -> None:
    """Keep what has been answered so far. Does nothing for a turn that has ended."""
    turn = turns.find(transaction, identity)
    if turn.state == OPEN:
        turn.partial = text
        turns.put(transaction, turn)


def rescue(transaction: Transaction, turn: Turn, settings: RequestSettings) -> bool:
    """Make the turn's request smaller by leaving large attachments out; whether that helps.

    Once per turn. Only the turn's own row changes.
    """
    if turn.state != OPEN or turn.rescued or target_of(turn).style == "agent":
        return False
    turn.rescued = True
    made = planned(transaction, turn, settings)
    if not made.stubbed:
        return False
    turn.stubbed = made.stubbed
    _note_carried(turn, made)
    turn.partial = ""
    turns.put(transaction, turn)
    return True


def complete(edit: Edit, identity: str, content: bytes, stamps: dict[str, Any]) -> Turn:
    """Append the answer to the turn's conversation, wherever that lies now.

    ``content``: JSON text. ``stamps``: further fields of the answer. ``ConflictError`` if the turn
    failed.
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
    video = None if target is None else _video(transaction, target, turn.entry)
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
    for identity in turn.stubbed:
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
    same = []
    for identity, fingerprint in zip(turn.carried, turn.fingerprints, strict=True):
        entry = target.locate(identity)
        now = None if entry is None else message_of(transaction, entry, ())
        if now is not None and now.fingerprint == fingerprint:
            same.append(identity)
    return same


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


def _video(transaction: Transaction, target: StoredList, question: int) -> object | None:
    """Return ``videoSrc`` of the newest attachment before the question that has one."""
    entry = target.locate(question)
    for one in target.entries_back(entry.position) if entry is not None else target.entries_back():
        facts = facts_of(transaction, records.read(transaction, one.record))
        if facts.role == "user" and facts.is_attachment() and "videoSrc" in facts.fields:
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


def edited(
    edit: Edit,
    caller: Caller,
    identity: int,
    question: Question,
    settings: RequestSettings,
) -> Turn:
    """Take a question and all that follows out of the live history, and begin anew in its place."""
    transaction = edit.transaction
    word = live_word(transaction)
    target = open_list(transaction, HISTORY)
    entry = history.entry_of(transaction, HISTORY, identity)
    assert target is not None
    for turn in list(turns.walk(transaction)):  # rows are written meanwhile
        # One that was cut off might still be completed; its answer has no place any more either.
        if turn.conversation != word or turn.state not in (OPEN, INTERRUPTED):
            continue
        found = target.locate(turn.entry)
        if found is not None and found.position >= entry.position:
            turn.state, turn.reason, turn.partial = FAILED, "drop", ""
            turns.put(transaction, turn)
        elif turn.state == OPEN and not question.parallel and caller.lives(turn.owner):
            raise _busy(turn)
    made = history.restart(edit, target, entry, question.entry)
    return _opened(transaction, caller, word, made, question, settings)


def question_of(transaction: Transaction, identity: int, prefixes: Sequence[str]) -> bytes:
    """Return the JSON text of a user entry's content; ``InvalidParams`` if it is no question."""
    entry = history.entry_of(transaction, HISTORY, identity)
    record = records.read(transaction, entry.record)
    facts = facts_of(transaction, record)
    if facts.role != "user" or facts.is_attachment(prefixes):
        raise InvalidParams(
            "Only a question of the user can be edited or sent again.",
            next="use the id of the user's entry; attachments can be removed and added",
        )
    return text_of(transaction, record)
