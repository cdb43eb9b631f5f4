"""The methods ``host.*`` that work on the store: notices, and finding data again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.model import adoption, notices
from sidekeep.model.frame import Mutation
from sidekeep.service.method import Method, Request
from sidekeep.store.environment import Store
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction


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


def _profiles(store: Store, _: Nothing) -> bytes:
    return msgspec.json.encode({"profiles": adoption.described(store)})


def _adopt(store: Store, params: Adopt) -> bytes:
    if (params.profile is None) == (params.undo is None):
        raise InvalidParams("host.adopt takes exactly one of profile and undo.")
    if params.profile is not None:
        return msgspec.json.encode(adoption.adopt(store, params.profile, replace=params.replace))
    return msgspec.json.encode(adoption.put_back(store, params.undo or ""))


METHODS: dict[str, Method] = {
    "host.profiles": Method(Nothing, direct=_profiles, area="local"),
    "host.adopt": Method(Adopt, direct=_adopt, area="local"),
    "host.acknowledge": Method(Acknowledge, prepare=_prepare_acknowledge, area="local"),
}
