"""Turns: one question, and the request it makes; what comes of it is in ``answers``.

Source of the rules: the seed storage model ("Um envio = exatamente uma bolha de usuário") and its
defect list, as docs/protocol.md, "Turns", settles them. Nothing stored is ever made smaller for a
request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Container, Sequence
from typing import Any

import msgspec

from sidekeep.caller import Caller
from sidekeep.errors import BusyError, InvalidParams, NotFoundError
from sidekeep.model import history
from sidekeep.model.conversation import (
    blobs_by_token,
    decoded_entry,
    located,
    messages_at,
    messages_until,
)
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, facts_of
from sidekeep.model.keys import HISTORY
from sidekeep.model.views import open_list
from sidekeep.requests.plan import Plan, plan
from sidekeep.requests.settings import Limits, RequestSettings, Target
from sidekeep.store import records, turns
from sidekeep.store.founding import live_word
from sidekeep.store.transaction import Transaction
from sidekeep.store.turns import FAILED, INTERRUPTED, OPEN, Turn

_encode = msgspec.json.encode
_decode_target = msgspec.json.Decoder(Target).decode
_decode_limits = msgspec.json.Decoder(Limits).decode


class Question(msgspec.Struct):
    """What begins a turn.

    ``target`` and ``limits``: JSON text, checked. ``dropped``: how many pictures did not fit.
    """

    entry: NewEntry
    target: bytes
    limits: bytes
    dropped: int
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
        dropped=question.dropped,
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
    target = located(transaction, turn.conversation)
    assert target is not None  # the request was planned from it
    stored = messages_at(transaction, target, made.stubbed)
    turn.stubbed_texts = [stored[identity].text_fingerprint for identity in made.stubbed]
    _note_carried(turn, made)
    turn.partial = ""
    turns.put(transaction, turn)
    return True


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


def question_of(
    transaction: Transaction, identity: int, prefixes: Sequence[str]
) -> tuple[dict[str, Any], Container[str]]:
    """Return a user entry, decoded, with tokens for what is kept apart, and these tokens.

    ``InvalidParams`` if it is no question.
    """
    entry = history.entry_of(transaction, HISTORY, identity)
    record = records.read(transaction, entry.record)
    facts = facts_of(transaction, record)
    if facts.role != "user" or facts.is_attachment(prefixes):
        raise InvalidParams(
            "Only a question of the user can be edited or sent again.",
            next="use the id of the user's entry; attachments can be removed and added",
        )
    return decoded_entry(transaction, record), blobs_by_token(record)
