"""The methods ``trash.*``: what can be brought back, and forgetting it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sidekeep.model import restoring
from sidekeep.model.edit import undo_number, undo_token
from sidekeep.model.frame import Mutation
from sidekeep.model.keys import INDEX
from sidekeep.service.history import Nothing
from sidekeep.service.method import Method, Request
from sidekeep.store import journal, operations, records, trash
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode


class Empty(msgspec.Struct):
    """Parameters of ``trash.empty``."""

    undo: str | None = None


def _list(transaction: Transaction, params: Nothing, _: Request) -> Pieces:
    items = []
    for number, removal in trash.newest_first(transaction):
        items.append(
            {
                "undo": undo_token(number),
                "what": removal.what,
                "time": int(removal.time * 1000),
                "until": int((removal.time + trash.KEPT_SECONDS) * 1000),
                "entries": sum(len(part.entries) for part in removal.parts if part.key != INDEX),
                "sessions": [
                    {"id": session, "name": name}
                    for session, name in restoring.sessions_in(transaction, removal)
                ],
                "bytes": _bytes(transaction, removal),
            }
        )
    return [_encode({"items": items})]


def _bytes(transaction: Transaction, removal: trash.Removal) -> int:
    return sum(records.weight(transaction, number) for number in removal.records)


def _prepare_empty(params: Empty, request: Request) -> Mutation:
    def mutate(transaction: Transaction, _: int) -> tuple[Sequence[AnyChange], bytes]:
        bytes_before = transaction.head.blob_bytes
        if params.undo is not None:
            numbers = [undo_number(params.undo)]
        else:
            numbers = [number for number, _ in trash.newest_first(transaction)]
        for number in numbers:
            trash.drop(transaction, number)
        if params.undo is None:
            operations.expire(transaction, everything=True)
            journal.trim(transaction, keep=0)
        freed = bytes_before - transaction.head.blob_bytes
        return [], _encode({"items": len(numbers), "bytes": freed})

    return mutate


METHODS: dict[str, Method] = {
    "trash.list": Method(Nothing, read=_list, area="local"),
    "trash.empty": Method(Empty, prepare=_prepare_empty, area="local"),
}
