"""Tokens: what stands in a reply for a picture that was left out, and what a write may give back.

Rules:

* A token is ``sidekeep:`` and the base64url form of what a rope knows of the picture: kind, length,
  hash of the content, the text before it (``data:image/png;base64,``), and a checksum.
* Nobody can guess one for content that he does not have: the hash has 256 bits.
* Text that only looks like one is text: the checksum does not fit. One that fits and whose content
  is not in the store is refused when it is stored (``blobs.add``).
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidekeep.store.rope import Blob

MARK = b'"sidekeep:'
_START = MARK[1:]
_FIXED = struct.Struct(">BQ32s")
# Kind, length, hash and checksum in base64, with the word before.
SHORTEST = len(_START) + 60
_LONGEST = 1024


def write(blob: Blob) -> bytes:
    """Return the token of a picture (ASCII, needs no escaping)."""
    body = _FIXED.pack(blob.kind, blob.length, blob.hash) + blob.prefix
    body += zlib.crc32(body).to_bytes(4, "big")
    return _START + base64.urlsafe_b64encode(body).rstrip(b"=")


def read(text: bytes) -> tuple[int, bytes, int, bytes] | None:
    """Return kind, hash, length and prefix of the picture, or ``None`` if that is no token."""
    if not text.startswith(_START) or not SHORTEST <= len(text) <= _LONGEST:
        return None
    encoded = text[len(_START) :]
    try:
        body = base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except binascii.Error:
        return None
    # The decoder passes over every character that is none of base64, so a sentence may decode too.
    if base64.urlsafe_b64encode(body).rstrip(b"=") != encoded:
        return None
    if zlib.crc32(body[:-4]) != int.from_bytes(body[-4:], "big"):
        return None
    kind, length, name = _FIXED.unpack_from(body)
    return kind, name, length, body[_FIXED.size : -4]
