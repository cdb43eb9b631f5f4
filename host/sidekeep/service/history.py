"""The methods ``history.*``: parameters in, changes of the live conversation, JSON text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.model import history, restoring
from sidekeep.model.edit import Edit, undo_number
from sidekeep.model.entries import NewEntry, prepare
from sidekeep.model.frame import Mutation
from sidekeep.model.history import entry_number, entry_word
from sidekeep.model.keys import HISTORY
from sidekeep.model.rows import with_raw
from sidekeep.model.updates import text_of
from sidekeep.model.views import open_list
from sidekeep.service.entries import Page, listing
from sidekeep.service.method import Method, Request
from sidekeep.store import records, rope
from sidekeep.store.founding import live_word
from sidekeep.store.journal import AnyChange
from sidekeep.store.lists import Entry
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Hole, Pieces

_encode = msgspec.json.encode
Result = Callable[["str | None"], "dict[str, Any] | None"]
_ABSENT = msgspec.Raw(b"")


class Append(msgspec.Struct):
    """Parameters of ``history.append``."""

    entries: list[msgspec.Raw]
    conversation: str | None = None
    expect: int | None = None


class Update(msgspec.Struct):
    """Parameters of ``history.update``: exactly one of ``entry`` and ``merge``."""

    id: str
    entry: msgspec.Raw = _ABSENT
    merge: msgspec.Raw = _ABSENT
    expect: int | None = None


class NamedEntry(msgspec.Struct):
    """An entry of ``history.replace``; without ``id`` it is new."""

    entry: msgspec.Raw
    id: str | None = None


class Replace(msgspec.Struct):
    """Parameters of ``history.replace``."""

    entries: list[NamedEntry]
    expect: int


class Remove(msgspec.Struct):
    """Parameters of ``history.remove``: exactly one of ``id``, ``attachId`` and ``index``."""

    id: str | None = None
    attachId: str | None = None  # noqa: N815 - the protocol's name
    index: int | None = None
    expect: int | None = None


class Truncate(msgspec.Struct, rename={"start": "from"}):
    """Parameters of ``history.truncate``; ``from`` is an id or an index."""

    start: str | int
    expect: int | None = None


class Undo(msgspec.Struct):
    """Parameters of ``history.undo``."""

    undo: str | None = None


class Watch(msgspec.Struct):
    """Parameters of ``history.watch``: what was heard, in the file of which epoch."""

    since: int | None = None
    store: str | None = None


class Nothing(msgspec.Struct):
    """Parameters of methods that take none."""


def changing(what: str, work: Callable[[Edit], Result]) -> Mutation:
    """Make a mutation. ``work(edit)`` makes the change; what it returns makes the result.

    The result is made when all is done, from the token that brings back what was removed.
    """

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        edit = Edit(transaction, revision, what)
        result = work(edit)
        changes, undo = edit.finish()
        return changes, _encode(result(undo))

    return mutate


def revision_of(transaction: Transaction) -> int:
    """Return the revision of the history, 0 if there is none."""
    target = open_list(transaction, HISTORY)
    return 0 if target is None else target.revision


def _list(transaction: Transaction, params: Page, _: Request) -> Pieces:
    target = open_list(transaction, HISTORY)
    rest = _encode(
        {
            "total": 0 if target is None else len(target),
            "conversation": live_word(transaction),
            "revision": 0 if target is None else target.revision,
        }
    )
    return listing(transaction, target, params, rest[1:-1])


def _check(edit: Edit, expect: int | None, conversation: str | None = None) -> None:
    target = open_list(edit.transaction, HISTORY)
    history.check(edit.transaction, target, revision=expect, conversation=conversation)


def inner(holes: Sequence[Hole], name: str) -> list[Hole]:
    """Return the holes of one parameter, with paths from there on."""
    if any(hole.path[:1] != (name,) for hole in holes):
        raise InvalidParams(f"A part does not belong to {name}.")
    return [Hole(hole.path[1:], hole.pieces, hole.length) for hole in holes]


def _prepare_append(params: Append, request: Request) -> Mutation:
    entries = prepare(params.entries, inner(request.holes, "entries"))
    if not entries:
        raise InvalidParams("entries must not be empty.")

    def work(edit: Edit) -> Result:
        _check(edit, params.expect, params.conversation)
        ids, length = history.append(edit, HISTORY, entries)
        return lambda _: {
            "ids": list(map(entry_word, ids)),
            "length": length,
            "revision": revision_of(edit.transaction),
        }

    return changing("history.append", work)


def _prepare_update(params: Update, request: Request) -> Mutation:
    entry, merge = bytes(params.entry), bytes(params.merge)
    if bool(entry) == bool(merge):
        raise InvalidParams("history.update takes exactly one of entry and merge.")
    fields = [] if entry else _fields(merge, inner(request.holes, "merge"))
    new = prepare([params.entry], _at_zero(inner(request.holes, "entry"))) if entry else []

    def work(edit: Edit) -> Result:
        _check(edit, params.expect)
        found = history.entry_of(edit.transaction, HISTORY, entry_number(params.id))
        changed = new[0] if new else _merged(edit.transaction, found, fields)
        history.update(edit, HISTORY, found, changed)
        return lambda _: {"revision": revision_of(edit.transaction)}

    return changing("history.update", work)


def _at_zero(holes: Sequence[Hole]) -> list[Hole]:
    return [Hole((0, *hole.path), hole.pieces, hole.length) for hole in holes]


def _fields(merge: bytes, holes: Sequence[Hole]) -> list[tuple[str, bytes]]:
    from sidekeep import handshake

    text = handshake.filled(merge, holes) if holes else merge
    try:
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        raise InvalidParams("merge must be an object.") from error
    return [(name, bytes(raw)) for name, raw in members.items()]


def _merged(
    transaction: Transaction, entry: Entry, fields: Sequence[tuple[str, bytes]]
) -> NewEntry:
    text = text_of(transaction, records.read(transaction, entry.record))
    if not text.lstrip().startswith(b"{"):
        raise InvalidParams("The entry is no object; nothing can be merged into it.")
    return NewEntry(rope.build(with_raw(text, dict(fields))), searched=True)


def _prepare_replace(params: Replace, request: Request) -> Mutation:
    raws = [one.entry for one in params.entries]
    entries = prepare(raws, inner(request.holes, "entries"), inner=("entry",))
    ids = [None if one.id is None else entry_number(one.id) for one in params.entries]

    def work(edit: Edit) -> Result:
        _check(edit, params.expect)
        made = history.replace(edit, list(zip(ids, entries, strict=True)))
        return lambda undo: {
            "ids": list(map(entry_word, made)),
            "revision": revision_of(edit.transaction),
            "undo": undo,
        }

    return changing("history.replace", work)


def _prepare_remove(params: Remove, request: Request) -> Mutation:
    given = [one for one in (params.id, params.attachId, params.index) if one is not None]
    if len(given) != 1:
        raise InvalidParams("history.remove takes exactly one of id, attachId and index.")

    def work(edit: Edit) -> Result:
        _check(edit, params.expect)
        entry = _named(edit.transaction, params)
        if entry is None:
            return lambda _: {"removed": False, "index": -1, "undo": None}
        removed = history.remove(edit, entry)
        return lambda undo: {"removed": True, "index": removed.at, "undo": undo}

    return changing("history.remove", work)


def _named(transaction: Transaction, params: Remove) -> Entry | None:
    if params.index is not None:
        return history.entry_at(transaction, HISTORY, params.index)
    if params.attachId is not None:
        return history.entry_attached(transaction, HISTORY, params.attachId)
    target = open_list(transaction, HISTORY)
    return None if target is None else target.locate(entry_number(params.id or ""))


def _prepare_truncate(params: Truncate, request: Request) -> Mutation:
    start = params.start

    def work(edit: Edit) -> Result:
        _check(edit, params.expect)
        if isinstance(start, int):
            entry = history.entry_at(edit.transaction, HISTORY, start)
        else:
            entry = history.entry_of(edit.transaction, HISTORY, entry_number(start))
        gone = history.truncate(edit, entry)
        return lambda undo: {"removed": gone.entries, "length": gone.length, "undo": undo}

    return changing("history.truncate", work)


def _prepare_clear(params: Nothing, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        word = history.clear(edit)
        return lambda undo: {"undo": undo, "conversation": word}

    return changing("history.clear", work)


def _prepare_undo(params: Undo, request: Request) -> Mutation:
    def work(edit: Edit) -> Result:
        transaction = edit.transaction
        if params.undo is None:
            number, removal = restoring.newest(
                transaction, lambda one: restoring.is_of_live(transaction, one)
            )
        else:
            number = undo_number(params.undo)
            removal = restoring.found(transaction, number)
        restored = restoring.restore(edit, number, removal.parts)
        ids = restored.get(HISTORY, [])
        return lambda _: {
            "restored": list(map(entry_word, ids)),
            "revision": revision_of(transaction),
        }

    return changing("history.undo", work)


METHODS: dict[str, Method] = {
    "history.list": Method(Page, read=_list, area="local"),
    "history.append": Method(Append, prepare=_prepare_append, holes=True, area="local"),
    "history.update": Method(Update, prepare=_prepare_update, holes=True, area="local"),
    "history.replace": Method(Replace, prepare=_prepare_replace, holes=True, area="local"),
    "history.remove": Method(Remove, prepare=_prepare_remove, area="local"),
    "history.truncate": Method(Truncate, prepare=_prepare_truncate, area="local"),
    "history.clear": Method(Nothing, prepare=_prepare_clear, area="local"),
    "history.undo": Method(Undo, prepare=_prepare_undo, area="local"),
}
