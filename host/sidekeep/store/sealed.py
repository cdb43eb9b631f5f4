"""Rows with a checksum before them: a CRC-32, then the row's own bytes.

LMDB has no checksums of its own; a page that was zeroed on the disk would otherwise be believed.
"""

from __future__ import annotations

import zlib

from sidekeep.store.layout import CRC
from sidekeep.store.transaction import damaged


def seal(body: bytes) -> bytes:
    """Return the row for these bytes."""
    return CRC.pack(zlib.crc32(body)) + body


def unseal(row: bytes | memoryview, what: str) -> bytes:
    """Return a row's own bytes; ``DamagedError`` if they are not those that were sealed.

    ``what``: the row's name, as the beginning of a sentence.
    """
    body = bytes(row[CRC.size :])
    if len(row) < CRC.size or zlib.crc32(body) != CRC.unpack_from(row)[0]:
        raise damaged(f"{what} does not fit its checksum.")
    return body
