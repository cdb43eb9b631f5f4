"""The whole surface in one place: every method, the type of its parameters, what it calls.

Rules:

* One typed struct per method. What a struct does not name is ignored, so that newer callers can
  talk to older hosts.
* A method here turns parameters into one call of ``model`` and the outcome into JSON text. It holds
  no state; ``connection`` decides about transactions, order and errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from sidekeep import handshake
from sidekeep.errors import InvalidParams
from sidekeep.jsontext import PathError, safe_cut
from sidekeep.model import areas, sites, updates
from sidekeep.model.frame import Mutation
from sidekeep.model.sites import SiteRecord
from sidekeep.store import blobs, rope
from sidekeep.store.journal import AnyChange
from sidekeep.store.layout import KIND_FRAGMENT, TEXT_PIECE
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Cut, Hole, Pieces

Area = Literal["local", "session"]

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


class SitePut(msgspec.Struct):
    """Parameters of ``siteCache.put``; ``data`` is any JSON value."""

    tabId: int  # noqa: N815 - the protocol's name
    source: str
    url: str
    data: msgspec.Raw


class SiteGet(msgspec.Struct):
    """Parameters of ``siteCache.get``."""

    tabId: int  # noqa: N815
    url: str | None = None
    live: list[int] | None = None


class SitePurge(msgspec.Struct):
    """Parameters of ``siteCache.purge``."""

    tabIds: list[int]  # noqa: N815


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

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text; see ``blobs.text``."""
        return blobs.text(self._transaction, self._blob)


class HeldText(Cut):
    """A string of a reply that lies in memory: its escaped text in pieces that may be cut apart."""

    __slots__ = ("_pieces",)

    def __init__(self, path: tuple[str | int, ...], pieces: list[bytes]) -> None:
        super().__init__(path, sum(map(len, pieces)))
        self._pieces = pieces

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text."""
        return iter(self._pieces)


def held(cut: Cut) -> HeldText:
    """Read a string now, because the store may change before it is sent."""
    return HeldText(cut.path, list(cut.read()))


Reading = Callable[[Transaction, Any], Pieces]


class Method(NamedTuple):
    """How a method is carried out: exactly one of ``read`` and ``prepare`` is there.

    ``read(transaction, params)`` gives the result. ``prepare(params, holes)`` does all work that
    needs no transaction and gives the mutation itself. ``holes``: it takes the strings that arrived
    apart as they are; for all others they are put back into the parameters. ``area``: where it
    works, if the parameters do not say it.
    """

    params: type
    read: Reading | None = None
    prepare: Callable[[Any, Sequence[Hole]], Mutation] | None = None
    holes: bool = False
    area: Area | None = None


def _list(keys: str | list[str] | None) -> list[str] | None:
    return [keys] if isinstance(keys, str) else keys


def value_pieces(transaction: Transaction, record: Record, path: tuple[str | int, ...]) -> Pieces:
    """Return the value of a record as pieces of a message in which it stands at ``path``."""
    pieces: Pieces = []
    for piece in record.pieces:
        if isinstance(piece, bytes):
            pieces.append(piece)
        elif piece.kind == KIND_FRAGMENT:
            pieces.extend(blobs.text(transaction, piece))
        else:
            pieces.append(StoredText((*path, *(piece.path or ())), piece, transaction))
    return pieces


def _get(transaction: Transaction, params: Get) -> Pieces:
    pieces: Pieces = [b'{"items":{']
    revisions = []
    comma = b""
    for document, record in areas.get(transaction, _list(params.keys)):
        name = _encode(document.key)
        pieces.append(comma + name + b":")
        comma = b","
        pieces += value_pieces(transaction, record, ("result", "items", document.key))
        revisions.append(name + b":%d" % document.revision)
    pieces.append(b'},"revisions":{' + b",".join(revisions) + b"}}" if params.revisions else b"}}")
    return pieces


def _prepare_set(params: Set, holes: Sequence[Hole]) -> Mutation:
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


def _quota(area: Area) -> int | None:
    return SESSION_QUOTA if area == "session" else None


def _prepare_update(params: Update, holes: Sequence[Hole]) -> Mutation:
    given = [
        (kind, raw)
        for kind in ("increment", "push", "merge", "value")
        if (raw := bytes(getattr(params, kind)))
    ]
    if len(given) != 1:
        raise InvalidParams("storage.update takes exactly one of increment, push, merge, value.")
    ((kind, operand),) = given
    if any(hole.path[:1] != (kind,) for hole in holes):
        raise InvalidParams(f"A part does not belong to {kind}.")
    if holes:
        inner = [Hole(hole.path[1:], hole.pieces, hole.length) for hole in holes]
        operand = handshake.filled(operand, inner)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        if params.expect is not None:
            updates.check_revisions(transaction, {params.key: params.expect})
        text = updates.updated(transaction, params.key, kind, operand)
        items = [(params.key, rope.build(text))]
        changes = areas.set_items(transaction, items, revision, quota=_quota(params.area))
        present = updates.revision_of(transaction, params.key)
        value = b'"value":%b,' % text if kind == "increment" else b""
        return changes, b'{%b"revision":%d}' % (value, present)

    return mutate


def _prepare_remove(params: Remove, holes: Sequence[Hole]) -> Mutation:
    keys = _list(params.keys) or []
    return lambda transaction, _: (areas.remove(transaction, keys), b"{}")


def _prepare_clear(params: OnArea, holes: Sequence[Hole]) -> Mutation:
    return lambda transaction, _: (areas.clear(transaction), b"{}")


def _get_keys(transaction: Transaction, params: OnArea) -> Pieces:
    pieces: Pieces = [b'{"keys":[']
    comma = b""
    for index, key in enumerate(areas.get_keys(transaction)):
        name = _encode(key)
        if len(name) <= KEY_IN_TEXT:
            pieces.append(comma + name)
        else:
            path = ("result", "keys", index)
            pieces += [comma + b'"', HeldText(path, _in_pieces(name[1:-1])), b'"']
        comma = b","
    pieces.append(b"]}")
    return pieces


def _in_pieces(escaped: bytes) -> list[bytes]:
    pieces = []
    while escaped:
        place = safe_cut(escaped, TEXT_PIECE)
        pieces.append(escaped[:place])
        escaped = escaped[place:]
    return pieces


def _bytes_in_use(transaction: Transaction, params: BytesInUse) -> Pieces:
    return [_encode({"bytes": areas.bytes_in_use(transaction, _list(params.keys))})]


def _prepare_site_put(params: SitePut, holes: Sequence[Hole]) -> Mutation:
    record = SiteRecord(params.data, params.source, time.time() * 1000, params.url)

    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        changes, gone = sites.put(transaction, params.tabId, record, revision)
        return changes, _encode({"evicted": gone} if gone else {})

    return mutate


def _prepare_site_get(params: SiteGet, holes: Sequence[Hole]) -> Mutation:
    def mutate(transaction: Transaction, revision: int) -> tuple[Sequence[AnyChange], bytes]:
        found = sites.get(transaction, params.tabId, params.url, params.live, revision)
        if found.record is None:
            return found.changes, _encode({"record": None, "reason": found.reason})
        return found.changes, b'{"record":%b}' % found.record.text()

    return mutate


def _prepare_site_purge(params: SitePurge, holes: Sequence[Hole]) -> Mutation:
    return lambda transaction, _: (sites.purge(transaction, params.tabIds), b"{}")


METHODS: dict[str, Method] = {
    "storage.get": Method(Get, read=_get),
    "storage.set": Method(Set, prepare=_prepare_set, holes=True),
    "storage.update": Method(Update, prepare=_prepare_update, holes=True),
    "storage.remove": Method(Remove, prepare=_prepare_remove),
    "storage.clear": Method(OnArea, prepare=_prepare_clear),
    "storage.getKeys": Method(OnArea, read=_get_keys),
    "storage.getBytesInUse": Method(BytesInUse, read=_bytes_in_use),
    "siteCache.put": Method(SitePut, prepare=_prepare_site_put, area="session"),
    "siteCache.get": Method(SiteGet, prepare=_prepare_site_get, area="session"),
    "siteCache.purge": Method(SitePurge, prepare=_prepare_site_purge, area="session"),
}
