"""Thumbnails: asked for, made by a helper, kept with the picture.

Source of the rules: the seed storage model ("Ciclo de vida das imagens") and docs/protocol.md,
"Pictures". No save depends on them.
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

import msgspec

from sidekeep.errors import NotFoundError, SidekeepError
from sidekeep.helper import previews as messages
from sidekeep.slow import Slow
from sidekeep.store import blobs, previews
from sidekeep.store.environment import Store
from sidekeep.store.layout import KIND_BASE64
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction
from sidekeep.wire.messages import Pieces

# What cannot be shown in less memory than the helper has is too large anyway.
LARGEST = 64 * 1024 * 1024


def work(blob: Blob, edge: int) -> Slow:
    """Return the work of making a picture's thumbnail."""

    def job(store: Store) -> bytes:
        with store.read() as transaction:
            data = content(transaction, blob)
        return messages.encode(messages.Picture(edge, data))

    def finish(store: Store, answer: bytes) -> Pieces | None:
        made = messages.decode_answer(answer)
        if isinstance(made, (messages.Off, messages.On)):
            reason = made.reason if isinstance(made, messages.Off) else "The helper said nothing."
            return [msgspec.json.encode({"none": reason})]
        store.write(lambda transaction: previews.keep(transaction, blob.hash, edge, _kept(made)))
        return None

    def failed(store: Store, error: SidekeepError) -> None:
        none = previews.Nothing(error.message)
        store.write(lambda transaction: previews.keep(transaction, blob.hash, edge, none))

    return Slow("thumbnails", (blob.hash, edge), job, finish, failed)


def _kept(made: messages.Jpeg | messages.Whole | messages.NoPreview) -> previews.Preview:
    if isinstance(made, messages.Jpeg):
        return previews.Jpeg(made.data)
    if isinstance(made, messages.Whole):
        return previews.Whole()
    return previews.Nothing(made.reason)


def content(transaction: Transaction, blob: Blob) -> bytes:
    """Return the bytes of a picture, none if it is too large or no base64.

    ``NotFoundError`` if it is gone meanwhile.
    """
    references, length = blobs.references_and_length(transaction, blob.hash)
    if not references:
        raise NotFoundError("The picture is no longer there.", next="read the entry again")
    if length > LARGEST:
        return b""
    joined = b"".join(blobs.chunks(transaction, blob.hash))
    if blob.kind == KIND_BASE64:
        return joined
    text = msgspec.json.decode(b'"' + joined + b'"', type=str)
    if blob.prefix.lower().endswith(b";base64,"):  # stored as text unless written in small letters
        try:
            return base64.b64decode(text.encode() + b"=" * (-len(text) % 4))
        except binascii.Error:  # no number of bytes has that many characters
            return b""
    return unquote_to_bytes(text)
