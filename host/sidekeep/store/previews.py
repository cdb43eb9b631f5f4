"""Thumbnails, kept under the hash of the picture that they show and their longest edge.

A row is one byte for its kind, and what belongs to it: a JPEG, or the sentence why there is none.
They go with the picture. They can be made again, so nothing depends on them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

from sidekeep.store.layout import BLOBS, PREVIEWS
from sidekeep.store.transaction import Transaction

_EDGE = struct.Struct(">H")


class Jpeg(NamedTuple):
    """A thumbnail."""

    data: bytes


class Whole(NamedTuple):
    """The picture is small: it is its own thumbnail."""


class Nothing(NamedTuple):
    """No thumbnail can be made; ``reason``: one sentence."""

    reason: str


Preview: TypeAlias = "Jpeg | Whole | Nothing"


def find(transaction: Transaction, name: bytes, edge: int) -> Preview | None:
    """Return the thumbnail of the content ``name``, ``None`` if none was made yet."""
    row = transaction.get(PREVIEWS, name + _EDGE.pack(edge))
    if row is None:
        return None
    kind, body = bytes(row[:1]), row[1:]
    if kind == b"j":
        return Jpeg(bytes(body))
    return Whole() if kind == b"w" else Nothing(str(body, "utf-8"))


def keep(transaction: Transaction, name: bytes, edge: int, preview: Preview) -> None:
    """Keep a thumbnail, unless the picture is gone meanwhile."""
    if transaction.get(BLOBS, name) is None:
        return
    if isinstance(preview, Jpeg):
        row = b"j" + preview.data
    else:
        row = b"w" if isinstance(preview, Whole) else b"n" + preview.reason.encode()
    transaction.put(PREVIEWS, name + _EDGE.pack(edge), row)
