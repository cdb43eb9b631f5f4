"""What the service says of each method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from sidekeep.caller import Caller
from sidekeep.handshake import Settings
from sidekeep.model.frame import Mutation
from sidekeep.slow import Slow
from sidekeep.store.environment import Store
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Hole, Pieces

Area = Literal["local", "session"]


class Request(NamedTuple):
    """What comes with the parameters of a call.

    ``holes``: the strings that arrived apart. ``settings``: what the caller's hello said.
    ``caller``: who it is. ``op``: the number of the operation, if it has one.
    """

    holes: Sequence[Hole]
    settings: Settings
    caller: Caller
    op: int | None = None


Reading = Callable[[Transaction, Any, Request], Pieces | Slow]


class Method(NamedTuple):
    """How a method is carried out: exactly one of ``read``, ``prepare`` and ``direct`` is there.

    ``read(transaction, params, request)`` gives the result, or the work that has to be done before.
    ``prepare(params, request)`` does all work that needs no transaction and gives the mutation.
    ``after(transaction, result, request)`` makes the reply of a mutation from its kept result,
    where that is not the reply itself. ``direct(store, params, request)`` does everything by
    itself.
    ``holes``: it takes the strings that arrived apart as they are; for all others they are put back
    into the parameters. ``area``: where it works, if the parameters do not say it.
    """

    params: type
    read: Reading | None = None
    prepare: Callable[[Any, Request], Mutation] | None = None
    after: Callable[[Transaction, bytes, Request], Pieces] | None = None
    direct: Callable[[Store, Any, Request], bytes] | None = None
    holes: bool = False
    area: Area | None = None
