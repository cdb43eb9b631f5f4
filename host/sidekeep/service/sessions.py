"""The methods ``sessions.*``: parameters in, changes of saved conversations, JSON text out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sidekeep.errors import InvalidParams, NotFoundError
from sidekeep.model import listing, restoring, sessions
from sidekeep.model.edit import Edit, undo_number
from sidekeep.model.entries import prefixes_of, prepare
from sidekeep.model.frame import Mutation
from sidekeep.model.history import entry_word
from sidekeep.model.keys import INDEX
from sidekeep.model.views import open_list
from sidekeep.service import found
from sidekeep.service.entries import Page
from sidekeep.service.entries import listing as entries_listing
from sidekeep.service.history import Nothing, changing, inner
from sidekeep.service.method import Method, Request
from sidekeep.slow import Slow
from sidekeep.store.founding import live_word
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode

Result = Callable[["str | None"], "dict[str, Any] | None"]


class Save(msgspec.Struct):
    """Parameters of ``sessions.save``."""

    id: str | None = None
    name: str | None = None


class List(msgspec.Struct):
    """Parameters of ``sessions.list``."""

    query: str = ""
    offset: int = 0
    limit: int | None = None


class Load(msgspec.Struct):
    """Parameters of ``sessions.load``."""

    id: str
    saveCurrent: bool = True  # noqa: N815 - the protocol's name


class Get(Page, kw_only=True):
    """Parameters of ``sessions.get``."""

    id: str


class Append(msgspec.Struct):
    """Parameters of ``sessions.append``."""

    id: str
    entries: list[msgspec.Raw]


class Rename(msgspec.Struct):
    """Parameters of ``sessions.rename``."""

    id: str
    name: str


class Pin(msgspec.Struct):
    """Parameters of ``sessions.pin``."""

    id: str
    pinned: bool


class Named(msgspec.Struct):
    """Parameters of ``sessions.delete``."""

    id: str


class Restore(msgspec.Struct):
    """Parameters of ``sessions.restore``: exactly one of ``id`` and ``undo``."""

    id: str | None = None
    undo: str | None = None


def _row(transaction: Transaction, session: str) -> dict[str, Any]:
    return listing.described(transaction, sessions.known(transaction, session))


def _prepare_save(params: Save, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        saved = sessions.save(edit, params.id, params.name, prefixes_of(request.settings))
        return lambda _: None if saved is None else _row(edit.transaction, saved)

    return changing("sessions.save", work)


def _list(transaction: Transaction, params: List, request: Request) -> Pieces | Slow:
    if params.offset < 0 or (params.limit is not None and params.limit < 0):
        raise InvalidParams("offset and limit must be 0 or more.")
    if params.query.strip():
        return found.work(params, prefixes_of(request.settings))
    open_list(transaction, INDEX)  # a conflict if it is no array
    every = listing.all_rows(transaction)
    described = [listing.described(transaction, row) for row in listing.part(every, params)]
    return [_encode({"rows": described, "total": len(every)})]


def _get(transaction: Transaction, params: Get, _: Request) -> Pieces:
    body = sessions.body_of(transaction, params.id)
    row = _encode({"row": _row(transaction, params.id)})
    return entries_listing(transaction, body, params, row[1:-1])


def _prepare_load(params: Load, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        length, saved = sessions.load(
            edit, params.id, prefixes_of(request.settings), save_current=params.saveCurrent
        )
        word = live_word(edit.transaction)
        return lambda _: {"length": length, "savedAs": saved, "conversation": word}

    return changing("sessions.load", work)


def _prepare_append(params: Append, request: Request) -> Mutation:
    entries = prepare(params.entries, inner(request.holes, "entries"))
    if not entries:
        raise InvalidParams("entries must not be empty.")

    def work(edit: Edit) -> Result:
        ids, length = sessions.append(edit, params.id, entries)
        return lambda _: {"ids": list(map(entry_word, ids)), "length": length}

    return changing("sessions.append", work)


def _prepare_rename(params: Rename, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        sessions.rename(edit, params.id, params.name)
        return lambda _: {"row": _row(edit.transaction, params.id)}

    return changing("sessions.rename", work)


def _prepare_pin(params: Pin, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        sessions.pin(edit, params.id, pinned=params.pinned)
        return lambda _: {"row": _row(edit.transaction, params.id)}

    return changing("sessions.pin", work)


def _prepare_delete(params: Named, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        sessions.delete(edit, params.id)
        return lambda undo: {"undo": undo}

    return changing("sessions.delete", work)


def _prepare_clear(params: Nothing, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        sessions.clear(edit)
        return lambda undo: {"undo": undo}

    return changing("sessions.clear", work)


def _prepare_restore(params: Restore, request: Request) -> Mutation:
    if (params.id is None) == (params.undo is None):
        raise InvalidParams("sessions.restore takes exactly one of id and undo.")

    def work(edit: Edit) -> Result:
        transaction = edit.transaction
        if params.undo is None:
            session = params.id or ""
            number, removal = restoring.newest(
                transaction,
                lambda one: bool(restoring.session_parts(transaction, one, session)),
            )
            restoring.restore(edit, number, restoring.session_parts(transaction, removal, session))
        else:
            number = undo_number(params.undo)
            removal = restoring.found(transaction, number)
            named = restoring.sessions_in(transaction, removal)
            if not named:
                raise NotFoundError("That removal holds no session.", next="try history.undo")
            session = named[-1][0]
            restoring.restore(edit, number, removal.parts)
        return lambda _: {"row": _row(transaction, session)}

    return changing("sessions.restore", work)


METHODS: dict[str, Method] = {
    "sessions.save": Method(Save, prepare=_prepare_save, area="local"),
    "sessions.list": Method(List, read=_list, area="local"),
    "sessions.load": Method(Load, prepare=_prepare_load, area="local"),
    "sessions.get": Method(Get, read=_get, area="local"),
    "sessions.append": Method(Append, prepare=_prepare_append, holes=True, area="local"),
    "sessions.rename": Method(Rename, prepare=_prepare_rename, area="local"),
    "sessions.pin": Method(Pin, prepare=_prepare_pin, area="local"),
    "sessions.delete": Method(Named, prepare=_prepare_delete, area="local"),
    "sessions.clear": Method(Nothing, prepare=_prepare_clear, area="local"),
    "sessions.restore": Method(Restore, prepare=_prepare_restore, area="local"),
}
