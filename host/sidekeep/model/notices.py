"""What a hello has to tell: things that happened while nobody listened.

A notice repeats with every hello until ``host.acknowledge`` names it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidekeep.caller import Caller
from sidekeep.errors import NotFoundError, SidekeepError
from sidekeep.model import adoption
from sidekeep.model.edit import Edit
from sidekeep.model.frame import Mutation
from sidekeep.model.history import entry_word
from sidekeep.store import turns
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction
from sidekeep.store.turns import INTERRUPTED, OPEN, Turn

UNSETTLED = "unsettledTurns"


def orphans(transaction: Transaction, caller: Caller) -> list[Turn]:
    """Return the open turns whose host is gone; those of the caller itself among them."""
    return [turn for turn in turns.in_state(transaction, OPEN) if not caller.lives(turn.owner)]


def settling(caller: Caller, turn: Turn) -> Mutation:
    """Take over a turn of the caller's own, or interrupt one of somebody who is gone.

    A context that lost its port goes on with its turn; that its host was another one does not
    matter.
    """
    from sidekeep.model.answers import interrupt

    def settle(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        if turn.client and turn.client == caller.client:
            turn.owner = caller.owner()
            turns.put(transaction, turn)
            return [], b"{}"
        edit = Edit(transaction, revision, "turns.interrupt")
        interrupt(edit, turn)
        return edit.finish()[0], b"{}"

    return settle


def pending(transaction: Transaction) -> list[dict[str, object]]:
    """Return the notices that nobody has acknowledged."""
    return [
        {
            "id": turn.id,
            "kind": "interruptedTurn",
            "text": "An answer was cut off because the browser or the panel ended.",
            "turnId": turn.id,
            "entryId": entry_word(turn.entry),
            "conversation": turn.conversation,
        }
        for turn in turns.in_state(transaction, INTERRUPTED)
        if not turn.acknowledged
    ]


def unsettled(error: SidekeepError) -> dict[str, object]:
    """Return the notice that turns which were cut off could not be looked after."""
    told: dict[str, object] = {
        "id": UNSETTLED,
        "kind": UNSETTLED,
        "text": f"Answers that were cut off could not be looked after: {error.message}",
    }
    return told if error.next is None else {**told, "next": error.next}


def acknowledge(transaction: Transaction, notice: str) -> None:
    """Do not tell of this again; ``NotFoundError`` for an unknown notice."""
    if notice == UNSETTLED:  # it comes again only if that happens again
        return
    if notice == "otherStores":
        adoption.answered(transaction)
        return
    turn = turns.find(transaction, notice)
    if turn.state != INTERRUPTED:
        raise NotFoundError("There is no such notice.", next="take it from the answer to the hello")
    turn.acknowledged = True
    turns.put(transaction, turn)
