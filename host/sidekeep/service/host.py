"""The methods ``host.*`` that work on the store: notices, finding data again, and the check."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sidekeep.errors import InvalidParams, SidekeepError, UnavailableError
from sidekeep.model import adoption, notices
from sidekeep.model.frame import Mutation, known_client
from sidekeep.service.method import Method, Request
from sidekeep.slow import Slow
from sidekeep.store.environment import Store
from sidekeep.store.journal import AnyChange
from sidekeep.store.operations import Number
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces


class Acknowledge(msgspec.Struct):
    """Parameters of ``host.acknowledge``."""

    notice: str


def _prepare_acknowledge(params: Acknowledge, _: Request) -> Mutation:
    def mutate(transaction: Transaction, _: int) -> tuple[Sequence[AnyChange], bytes]:
        notices.acknowledge(transaction, params.notice)
        return [], b"{}"

    return mutate


class Nothing(msgspec.Struct):
    """Parameters of methods that take none."""


class Adopt(msgspec.Struct):
    """Parameters of ``host.adopt``: exactly one of ``profile`` and ``undo``."""

    profile: str | None = None
    undo: str | None = None
    replace: bool = False


def _profiles(store: Store, _: Nothing, __: Request) -> bytes:
    return msgspec.json.encode({"profiles": adoption.described(store)})


def _adopt(store: Store, params: Adopt, request: Request) -> bytes:
    if (params.profile is None) == (params.undo is None):
        raise InvalidParams("host.adopt takes exactly one of profile and undo.")
    number = None
    if request.op is not None:
        number = Number(known_client(request.caller.client), request.op)
    if params.profile is not None:
        return adoption.adopt(store, params.profile, replace=params.replace, number=number)
    return adoption.put_back(store, params.undo or "", number=number)


def _verify(_: Transaction, params: Nothing, request: Request) -> Slow:
    """Have the store checked. Calls that come meanwhile get the same report."""
    from sidekeep.helper import verifying

    def finish(_: Store, answer: bytes) -> Pieces:
        return [answer]

    def failed(_: Store, error: SidekeepError) -> None:
        raise UnavailableError(
            f"The check did not come to its end. {error.message}",
            next="close the browser and run sidekeep verify, which has no limit of time",
        )

    return Slow("verify", "verify", verifying.job, finish, failed)


METHODS: dict[str, Method] = {
    "host.profiles": Method(Nothing, direct=_profiles, area="local"),
    "host.adopt": Method(Adopt, direct=_adopt, area="local"),
    "host.verify": Method(Nothing, read=_verify, area="local"),
    "host.acknowledge": Method(Acknowledge, prepare=_prepare_acknowledge, area="local"),
}
