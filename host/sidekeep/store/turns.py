"""Turns: questions that were sent to a model and what became of them.

A row holds a reference to the record of the question (counted like any other), so that an answer to
a conversation that was deleted meanwhile does not stand without its question. The row is kept for
``KEPT_SECONDS`` after the turn has ended, for callers that complete or fail it twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.store import records
from sidekeep.store.founding import WAITING_KEY, turns_wait
from sidekeep.store.layout import META, TURNS
from sidekeep.store.sealed import seal, unseal
from sidekeep.store.transaction import Transaction, damaged

VERSION = 1
KEPT_SECONDS = 7 * 24 * 3600

OPEN = "open"
DONE = "done"
FAILED = "failed"
INTERRUPTED = "interrupted"


class Turn(msgspec.Struct, array_like=True):
    """A turn. ``id``: a random word. ``state``: one of those above.

    ``conversation``: its word. ``entry`` and ``record``: the question. ``client`` and ``owner``:
    the caller's word and that of its host, by which one sees whether it lives. ``target`` and
    ``limits``: JSON text, as given. ``carried``: ids of entries whose pixels were in the last
    request, ``stubbed``: ids of attachments that a rescue left out. ``partial``: the text so far.
    ``answer``: the id of the answer, or of what there is of one. ``seen``: ids that the answer
    stamped. ``session``: where the answer went, if not into the history. ``fingerprints``: of the
    pictures of each of ``carried`` in that request, ``stubbed_texts``: of the texts of ``stubbed``
    (none in rows of older versions). ``dropped``: how many pictures of the question did not fit.
    Times are seconds since 1970.
    """

    version: int
    id: str
    state: str
    conversation: str
    entry: int
    record: int
    client: str
    owner: str
    target: bytes
    limits: bytes
    started: float
    touched: float
    carried: list[int]
    stubbed: list[int] = []
    rescued: bool = False
    partial: str = ""
    answer: int = 0
    seen: list[int] = []
    session: str | None = None
    reason: str = ""
    acknowledged: bool = False
    fingerprints: list[int] = []
    stubbed_texts: list[int] = []
    dropped: int = 0


def put(transaction: Transaction, turn: Turn) -> None:
    """Write a turn's row. The reference to its record is the caller's to have made."""
    turn.touched = time.time()
    transaction.put(TURNS, turn.id.encode(), seal(msgspec.msgpack.encode(turn)))
    if _concerns_others(turn):
        transaction.put(META, WAITING_KEY, b"")
    elif turns_wait(transaction) and not any(map(_concerns_others, walk(transaction))):
        transaction.delete(META, WAITING_KEY)


def _concerns_others(turn: Turn) -> bool:
    return turn.state == OPEN or (turn.state == INTERRUPTED and not turn.acknowledged)


def find(transaction: Transaction, identity: str) -> Turn:
    """Return a turn; ``NotFoundError`` if there is none (any more)."""
    row = transaction.get(TURNS, identity.encode()) if 0 < len(identity) < 100 else None
    if row is None:
        raise NotFoundError(
            f"There is no turn {identity[:64]!r}.", next="begin a turn, or append the answer"
        )
    return _decode(row)


def walk(transaction: Transaction) -> Iterator[Turn]:
    """Yield all turns that are kept, in no order."""
    for _, row in transaction.rows(TURNS):
        yield _decode(row)


def in_state(transaction: Transaction, state: str) -> list[Turn]:
    """Return the turns in a state, oldest first."""
    found = [turn for turn in walk(transaction) if turn.state == state]
    return sorted(found, key=lambda turn: turn.started)


def expire(transaction: Transaction, now: float | None = None) -> None:
    """Forget turns that ended ``KEPT_SECONDS`` ago."""
    moment = time.time() if now is None else now
    old = [
        turn
        for turn in walk(transaction)
        if turn.state != OPEN and turn.touched < moment - KEPT_SECONDS
    ]
    for turn in old:
        if turn.record:
            records.release(transaction, turn.record)
        transaction.delete(TURNS, turn.id.encode())


def _decode(row: memoryview) -> Turn:
    turn = msgspec.msgpack.decode(unseal(row, "A row of the turns"), type=Turn)
    if turn.version != VERSION:
        raise damaged(f"A turn has the unknown version {turn.version}.")
    return turn
