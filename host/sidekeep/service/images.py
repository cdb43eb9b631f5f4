"""The methods ``images.*``: pictures that a reply left out, whole or as thumbnails."""

from __future__ import annotations

from typing import Annotated

import msgspec

from sidekeep.errors import InvalidParams, NotFoundError
from sidekeep.model import thumbnails
from sidekeep.model.pictures import EDGE
from sidekeep.service.method import Method, Request
from sidekeep.service.replies import StoredText, jpeg_pieces
from sidekeep.slow import Slow
from sidekeep.store import blobs, previews, tokens
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

_encode = msgspec.json.encode


class Get(msgspec.Struct):
    """Parameters of ``images.get``."""

    ref: str


class Thumbnail(msgspec.Struct):
    """Parameters of ``images.thumbnail``."""

    ref: str
    edge: Annotated[int, msgspec.Meta(ge=16, le=1024)] = EDGE


def _blob(transaction: Transaction, ref: str) -> Blob:
    """Return the picture that a token stands for; ``NotFoundError`` if it is not there."""
    found = tokens.read(ref.encode())
    if found is None:
        raise InvalidParams("ref is no token of a picture.", next="take it from images of a reply")
    blob = Blob(*found, None)
    if not blobs.references_and_length(transaction, blob.hash)[0]:
        raise NotFoundError("The picture is not in this store.", next="read the entry again")
    return blob


def _get(transaction: Transaction, params: Get, _: Request) -> Pieces:
    return _whole(transaction, _blob(transaction, params.ref))


def _whole(transaction: Transaction, blob: Blob) -> Pieces:
    return [b'{"url":"', StoredText(("result", "url"), blob, transaction), b'"}']


def _thumbnail(transaction: Transaction, params: Thumbnail, _: Request) -> Pieces | Slow:
    blob = _blob(transaction, params.ref)
    found = previews.find(transaction, blob.hash, params.edge)
    if found is None:
        return thumbnails.work(blob, params.edge)
    if isinstance(found, previews.Whole):
        return _whole(transaction, blob)
    if isinstance(found, previews.Nothing):
        return [_encode({"none": found.reason})]
    return [b'{"url":', *jpeg_pieces(found.data, ("result", "url")), b"}"]


METHODS: dict[str, Method] = {
    "images.get": Method(Get, read=_get, area="local"),
    "images.thumbnail": Method(Thumbnail, read=_thumbnail, area="local"),
}
