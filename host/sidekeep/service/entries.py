"""Entries of conversations as parts of replies, with their pictures as the caller wants them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sidekeep.helper.previews import why_off
from sidekeep.model import pictures
from sidekeep.model.history import entry_word
from sidekeep.model.pages import page
from sidekeep.model.pictures import BUDGET, Left, Pixels, Shown
from sidekeep.service.replies import StoredText, jpeg_pieces, value_pieces
from sidekeep.store import blobs, previews, tokens
from sidekeep.store.layout import KIND_FRAGMENT
from sidekeep.store.lists import StoredList
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Cut, Pieces

_encode = msgspec.json.encode


class Page(msgspec.Struct):
    """Which entries of a conversation, and how their pictures are delivered."""

    offset: int | None = None
    limit: int | None = None
    before: str | None = None
    after: str | None = None
    pixels: Pixels = "full"
    budget: int = BUDGET


class Listing(list[bytes | Cut]):
    """A result; ``missing``: pictures whose thumbnails are wanted and still to be made."""

    missing: list[Blob]


def listing(
    transaction: Transaction, target: StoredList | None, wanted: Page, rest: bytes
) -> Listing:
    """Return a result with ``entries`` and ``images``; ``rest``: its other members."""
    chosen = (
        []
        if target is None
        else page(
            target,
            offset=wanted.offset,
            limit=wanted.limit,
            before=wanted.before,
            after=wanted.after,
        )
    )
    shown = pictures.choose(transaction, chosen, wanted.pixels, wanted.budget)
    pieces = Listing([b'{"entries":['])
    for index, one in enumerate(shown):
        word = entry_word(one.entry.id).encode()
        pieces.append(b'%b{"id":"%b","entry":' % (b"," if index else b"", word))
        pieces += _entry(transaction, one, ("result", "entries", index, "entry"))
        pieces.append(b"}")
    left = pictures.left(transaction, shown, thumbnails=wanted.pixels != "none")
    asked = wanted.pixels != "none"
    off = why_off() if left and asked else None
    pieces += [b'],"images":', *_images(left, asked=asked, off=off), b",%b}" % rest]
    pieces.missing = [one.blob for one in left if asked and not off and one.preview is None]
    return pieces


def _entry(transaction: Transaction, one: Shown, path: tuple[str | int, ...]) -> Pieces:
    if not one.left_out:
        return value_pieces(transaction, one.record, path)
    names = {(blob.hash, blob.prefix) for blob in one.left_out}
    pieces: Pieces = []
    for piece in one.record.pieces:
        if isinstance(piece, bytes):
            pieces.append(piece)
        elif (piece.hash, piece.prefix) in names:
            pieces.append(tokens.write(piece))
        elif piece.kind == KIND_FRAGMENT:
            pieces.extend(blobs.text(transaction, piece))
        else:
            pieces.append(StoredText((*path, *(piece.path or ())), piece, transaction))
    return pieces


def _images(left: Sequence[Left], *, asked: bool, off: str | None) -> Pieces:
    """Return the JSON text of ``images``, a member of the result.

    ``asked``: whether thumbnails were wanted. ``off``: why there are none to come.
    """
    pieces: Pieces = [b"["]
    for index, one in enumerate(left):
        image: dict[str, object] = {
            "id": entry_word(one.entry.id),
            "path": one.blob.path or (),
            "ref": one.token,
            "bytes": len(one.blob.prefix) + one.blob.length,
            "mime": one.mime,
            "state": "pending" if asked else "left",
        }
        preview = one.preview
        thumbnail: Pieces = []
        if isinstance(preview, previews.Jpeg):
            image["state"] = "ready"
            path = ("result", "images", index, "thumbnail")
            thumbnail = [b',"thumbnail":', *jpeg_pieces(preview.data, path)]
        elif isinstance(preview, previews.Nothing):
            image.update(state="none", reason=preview.reason)
        elif off is not None:
            image.update(state="none", reason=off)
        pieces += [(b"," if index else b"") + _encode(image)[:-1], *thumbnail, b"}"]
    pieces.append(b"]")
    return pieces
