"""The methods ``storage.*``: parameters in, one call of ``model.areas``, JSON text out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sidekeep import handshake
from sidekeep.errors import InvalidParams
from sidekeep.jsontext import PathError
from sidekeep.model import areas, updates
from sidekeep.model.frame import Mutation
from sidekeep.model.keys import is_view
from sidekeep.service.method import Area, Method, Request
from sidekeep.service.replies import array_pieces, value_pieces
from sidekeep.store import records, rope
from sidekeep.store.journal import AnyChange
from sidekeep.store.records import Record
from sidekeep.store.rope import Value
from sidekeep.store.transaction import Transaction
from sidekeep.wire.held import LongText
from sidekeep.wire.messages import Hole, Pieces

if TYPE_CHECKING:
    from sidekeep.model.entries import NewEntry

# What chrome.storage.session holds in Chromium, in bytes.
SESSION_QUOTA = 10_485_760
# A longer key in a list of keys travels apart from the text.
KEY_IN_TEXT = 65_536

_encode = msgspec.json.encode
_ABSENT = msgspec.Raw(b"")


class Get(msgspec.Struct):
    """Parameters of ``storage.get``; ``keys`` ``None`` means all."""

    area: Area
    keys: str | list[str] | None
    revisions: bool = False


class Set(msgspec.Struct):
    """Parameters of ``storage.set``.

    ``expect``: revisions that must be the present ones (0: the key must not exist), else nothing is
    stored; the answer then names the new revisions.
    """

    area: Area
    items: dict[str, msgspec.Raw]
    expect: dict[str, int] | None = None


class Update(msgspec.Struct):
    """Parameters of ``storage.update``: exactly one of the four changes."""

    area: Area
    key: str
    increment: msgspec.Raw = _ABSENT
    push: msgspec.Raw = _ABSENT
    merge: msgspec.Raw = _ABSENT
    value: msgspec.Raw = _ABSENT
    expect: int | None = None


class Remove(msgspec.Struct):
    """Parameters of ``storage.remove``."""

    area: Area
    keys: str | list[str]


class OnArea(msgspec.Struct):
    """Parameters of ``storage.clear`` and ``storage.getKeys``."""

    area: Area


class Watch(msgspec.Struct):
    """Parameters of ``storage.watch``.

    ``since``: the sequence number per area up to which the caller has heard everything, in the file
    whose epoch ``store`` (local area) or ``stores`` (by area) names.
    """

    areas: list[Area]
    keys: list[str] | None = None
    values: bool = True
    since: dict[str, int] | None = None
    store: str | None = None
    stores: dict[str, str] | None = None


class BytesInUse(msgspec.Struct):
    """Parameters of ``storage.getBytesInUse``; ``keys`` ``None`` means all."""

    area: Area
    keys: str | list[str] | None


def _list(keys: str | list[str] | None) -> list[str] | None:
    return [keys] if isinstance(keys, str) else keys


def _get(transaction: Transaction, params: Get, _: Request) -> Pieces:
    pieces: Pieces = [b'{"items":{']
    revisions = []
    comma = b""
    for document, held in areas.get(transaction, _list(params.keys)):
        name = _encode(document.key)
        pieces.append(comma + name + b":")
        comma = b","
        path = ("result", "items", document.key)
        if isinstance(held, Record):
            pieces += value_pieces(transaction, held, path)
        else:
            entries = (records.read(transaction, entry.record) for entry in held.entries())
            pieces += array_pieces(transaction, entries, path)
        revisions.append(name + b":%d" % document.revision)
    pieces.append(b'},"revisions":{' + b",".join(revisions) + b"}}" if params.revisions else b"}}")
    return pieces


def _prepare_set(params: Set, request: Request) -> Mutation:
    by_key: dict[str, list[Hole]] = {}
    for hole in request.holes:
        path = hole.path
        if len(path) < 2 or path[0] != "items" or path[1] not in params.items:
            raise InvalidParams("A part belongs to no value of items.")
        by_key.setdefault(str(path[1]), []).append(Hole(path[2:], hole.pieces, hole.length))
    items = [
        (key, _value(params.area, key, bytes(raw), by_key.get(key, ())))
        for key, raw in params.items.items()
    ]
    expect = params.expect
    if expect is None:
        return lambda transaction, revision: (
            areas.set_items(transaction, items, revision, quota=_quota(params.area)),
            b"{}",
        )

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        updates.check_revisions(transaction, expect)
        changes = areas.set_items(transaction, items, revision, quota=_quota(params.area))
        revisions = {key: updates.revision_of(transaction, key) for key, _ in items}
        return changes, _encode({"revisions": revisions})

    return mutate


def _value(area: Area, key: str, raw: bytes, holes: Sequence[Hole] = ()) -> Value | list[NewEntry]:
    """Make a value, or the entries of one that is kept entry by entry, ready to be stored."""
    if area == "local" and is_view(key):
        from sidekeep.model.views import prepare_array

        entries = prepare_array(key, raw, holes)
        if entries is not None:
            return entries
    try:
        return rope.build(raw, holes)
    except PathError as error:
        raise InvalidParams(f"The parts of a value do not fit it: {error}.") from error


def _quota(area: Area) -> int | None:
    return SESSION_QUOTA if area == "session" else None


def _prepare_update(params: Update, request: Request) -> Mutation:
    given = [
        (kind, raw)
        for kind in ("increment", "push", "merge", "value")
        if (raw := bytes(getattr(params, kind)))
    ]
    if len(given) != 1:
        raise InvalidParams("storage.update takes exactly one of increment, push, merge, value.")
    ((kind, operand),) = given
    if any(hole.path[:1] != (kind,) for hole in request.holes):
        raise InvalidParams(f"A part does not belong to {kind}.")
    if request.holes:
        inner = [Hole(hole.path[1:], hole.pieces, hole.length) for hole in request.holes]
        operand = handshake.filled(operand, inner)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        if params.expect is not None:
            updates.check_revisions(transaction, {params.key: params.expect})
        if kind == "push" and params.area == "local" and is_view(params.key):
            from sidekeep.model import views

            changes = views.push(transaction, params.key, operand, revision)
            return changes, b'{"revision":%d}' % updates.revision_of(transaction, params.key)
        text = updates.updated(transaction, params.key, kind, operand)
        items = [(params.key, _value(params.area, params.key, text))]
        changes = areas.set_items(transaction, items, revision, quota=_quota(params.area))
        present = updates.revision_of(transaction, params.key)
        value = b'"value":%b,' % text if kind == "increment" else b""
        return changes, b'{%b"revision":%d}' % (value, present)

    return mutate


def _prepare_remove(params: Remove, request: Request) -> Mutation:
    keys = _list(params.keys) or []
    return lambda transaction, revision: (areas.remove(transaction, keys, revision), b"{}")


def _prepare_clear(params: OnArea, request: Request) -> Mutation:
    return lambda transaction, revision: (areas.clear(transaction, revision), b"{}")


def _get_keys(transaction: Transaction, params: OnArea, _: Request) -> Pieces:
    pieces: Pieces = [b'{"keys":[']
    comma = b""
    for index, key in enumerate(areas.get_keys(transaction)):
        name = _encode(key)
        if len(name) <= KEY_IN_TEXT:
            pieces.append(comma + name)
        else:
            path = ("result", "keys", index)
            pieces += [comma + b'"', LongText(path, name[1:-1]), b'"']
        comma = b","
    pieces.append(b"]}")
    return pieces


def _bytes_in_use(transaction: Transaction, params: BytesInUse, _: Request) -> Pieces:
    return [_encode({"bytes": areas.bytes_in_use(transaction, _list(params.keys))})]


METHODS: dict[str, Method] = {
    "storage.get": Method(Get, read=_get),
    "storage.set": Method(Set, prepare=_prepare_set, holes=True),
    "storage.update": Method(Update, prepare=_prepare_update, holes=True),
    "storage.remove": Method(Remove, prepare=_prepare_remove),
    "storage.clear": Method(OnArea, prepare=_prepare_clear),
    "storage.getKeys": Method(OnArea, read=_get_keys),
    "storage.getBytesInUse": Method(BytesInUse, read=_bytes_in_use),
}
