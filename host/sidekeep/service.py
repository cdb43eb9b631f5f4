"""The whole surface in one place: every method, the type of its parameters, what it calls.

Rules:

* One typed struct per method. What a struct does not name is ignored, so that newer callers can
  talk to older hosts.
* A method here turns parameters into one call of ``model`` and the outcome into JSON text. It holds
  no state; ``connection`` decides about transactions, order and errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from sidekeep.errors import InvalidParams, UnavailableError
from sidekeep.jsontext import PathError
from sidekeep.model import areas
from sidekeep.store import blobs, rope
from sidekeep.store.journal import AnyChange
from sidekeep.store.layout import KIND_FRAGMENT
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Cut, Hole, Pieces

Area = Literal["local", "session"]

_encode = msgspec.json.encode


class Get(msgspec.Struct):
    """Parameters of ``storage.get``; ``keys`` ``None`` means all."""

    area: Area
    keys: str | list[str] | None
    revisions: bool = False


class Set(msgspec.Struct):
    """Parameters of ``storage.set``."""

    area: Area
    items: dict[str, msgspec.Raw]


class Remove(msgspec.Struct):
    """Parameters of ``storage.remove``."""

    area: Area
    keys: str | list[str]


class OnArea(msgspec.Struct):
    """Parameters of ``storage.clear`` and ``storage.getKeys``."""

    area: Area


class BytesInUse(msgspec.Struct):
    """Parameters of ``storage.getBytesInUse``; ``keys`` ``None`` means all."""

    area: Area
    keys: str | list[str] | None


class StoredText(Cut):
    """A string of a reply that is read from the store only when it is sent."""

    __slots__ = ("_blob", "_transaction")

    def __init__(self, path: tuple[str | int, ...], blob: Blob, transaction: Transaction) -> None:
        super().__init__(path, len(blob.prefix) + blob.length)
        self._blob = blob
        self._transaction = transaction

    def read(self) -> Any:  # noqa: ANN401
        """Yield the escaped text; see ``blobs.text``."""
        return blobs.text(self._transaction, self._blob)


def in_memory(cut: Cut) -> bytes:
    """Return the whole escaped text of a string at once."""
    return b"".join(cut.read())


Prepared = Callable[[Transaction, int], tuple[Sequence[AnyChange], bytes]]
Reading = Callable[[Transaction, Any], Pieces]


class Method(NamedTuple):
    """How a method is carried out: exactly one of ``read`` and ``prepare`` is there.

    ``read(transaction, params)`` gives the result. ``prepare(params, holes)`` does all work that
    needs no transaction and gives the mutation itself.
    """

    params: type
    read: Reading | None = None
    prepare: Callable[[Any, Sequence[Hole]], Prepared] | None = None


def _only_local(area: Area) -> None:
    if area != "local":
        raise UnavailableError(f"This version keeps no area {area!r}.", next="use area local")


def _list(keys: str | list[str] | None) -> list[str] | None:
    return [keys] if isinstance(keys, str) else keys


def _get(transaction: Transaction, params: Get) -> Pieces:
    _only_local(params.area)
    pieces: Pieces = [b'{"items":{']
    revisions = []
    comma = b""
    for document, record in areas.get(transaction, _list(params.keys)):
        name = _encode(document.key)
        pieces.append(comma + name + b":")
        comma = b","
        for piece in record.pieces:
            if isinstance(piece, bytes):
                pieces.append(piece)
            elif piece.kind == KIND_FRAGMENT:
                pieces.extend(blobs.text(transaction, piece))
            else:
                path = ("result", "items", document.key, *(piece.path or ()))
                pieces.append(StoredText(path, piece, transaction))
        revisions.append(name + b":%d" % document.revision)
    pieces.append(b'},"revisions":{' + b",".join(revisions) + b"}}" if params.revisions else b"}}")
    return pieces


def _prepare_set(params: Set, holes: Sequence[Hole]) -> Prepared:
    _only_local(params.area)
    by_key: dict[str, list[Hole]] = {}
    for hole in holes:
        path = hole.path
        if len(path) < 2 or path[0] != "items" or path[1] not in params.items:
            raise InvalidParams("A part belongs to no value of items.")
        by_key.setdefault(str(path[1]), []).append(Hole(path[2:], hole.pieces, hole.length))
    try:
        items = [
            (key, rope.build(bytes(raw), by_key.get(key, ()))) for key, raw in params.items.items()
        ]
    except PathError as error:
        raise InvalidParams(f"The parts of a value do not fit it: {error}.") from error
    return lambda transaction, revision: (areas.set_items(transaction, items, revision), b"{}")


def _prepare_remove(params: Remove, holes: Sequence[Hole]) -> Prepared:
    _only_local(params.area)
    keys = _list(params.keys) or []
    return lambda transaction, _: (areas.remove(transaction, keys), b"{}")


def _prepare_clear(params: OnArea, holes: Sequence[Hole]) -> Prepared:
    _only_local(params.area)
    return lambda transaction, _: (areas.clear(transaction), b"{}")


def _get_keys(transaction: Transaction, params: OnArea) -> Pieces:
    _only_local(params.area)
    return [_encode({"keys": areas.get_keys(transaction)})]


def _bytes_in_use(transaction: Transaction, params: BytesInUse) -> Pieces:
    _only_local(params.area)
    return [_encode({"bytes": areas.bytes_in_use(transaction, _list(params.keys))})]


METHODS: dict[str, Method] = {
    "storage.get": Method(Get, read=_get),
    "storage.set": Method(Set, prepare=_prepare_set),
    "storage.remove": Method(Remove, prepare=_prepare_remove),
    "storage.clear": Method(OnArea, prepare=_prepare_clear),
    "storage.getKeys": Method(OnArea, read=_get_keys),
    "storage.getBytesInUse": Method(BytesInUse, read=_bytes_in_use),
}
