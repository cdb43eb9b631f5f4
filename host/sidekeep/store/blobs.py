"""Content under its hash: stored once, in chunks, counted by reference.

Rules:

* A count changes in the transaction that adds or drops the reference; at zero the content goes.
* References are held by records alone (a snapshot of a conversation refers to records).
* Every chunk has a checksum, compared whenever the chunk is read: LMDB has none of its own, and a
  page that was zeroed on the disk would otherwise come back as somebody's picture.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Iterator

from sidekeep.errors import NotFoundError
from sidekeep.jsontext import safe_cut
from sidekeep.store.layout import (
    BASE64_PIECE,
    BLOB_HEADER,
    BLOBS,
    CHUNK_KEY_INDEX,
    CHUNKS,
    KIND_BASE64,
    PREVIEWS,
    TEXT_PIECE,
)
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction, damaged


def add(transaction: Transaction, blob: Blob) -> None:
    """Add one reference to the blob's content, and the content if it is not there yet."""
    row = transaction.get(BLOBS, blob.hash)
    if row is not None:
        references, length = BLOB_HEADER.unpack_from(row)
        if blob.chunks is None and blob.length != _text_length(blob.kind, length):
            raise _gone()
        changed = BLOB_HEADER.pack(references + 1, length) + row[BLOB_HEADER.size :]
        transaction.put(BLOBS, blob.hash, changed)
        return
    chunks = blob.chunks
    if chunks is None:
        raise _gone()
    if transaction.small_chunks:
        chunks = [small for chunk in chunks for small in _smaller(blob.kind, chunk)]
    sums = struct.pack(f">{len(chunks)}I", *map(zlib.crc32, chunks))
    length = sum(map(len, chunks))
    header = BLOB_HEADER.pack(1, length)
    transaction.head.blobs += 1
    transaction.head.blob_bytes += length
    transaction.put(BLOBS, blob.hash, header + sums)
    for index, chunk in enumerate(chunks):
        transaction.put(CHUNKS, blob.hash + CHUNK_KEY_INDEX.pack(index), chunk)


def _text_length(kind: int, length: int) -> int:
    """Return how many bytes of JSON text that much content stands for."""
    return (length + 2) // 3 * 4 if kind == KIND_BASE64 else length


def _gone() -> NotFoundError:
    return NotFoundError(
        "The picture that a token stands for is not in this store.",
        next="send the picture itself, or read the entry again",
    )


def _smaller(kind: int, chunk: bytes) -> Iterator[bytes]:
    """Cut a chunk so that each piece can be read by itself, as whole chunks can."""
    rest = memoryview(chunk)
    while rest:
        place = min(BASE64_PIECE, len(rest))
        if kind != KIND_BASE64:
            place = safe_cut(rest, BASE64_PIECE)
        yield bytes(rest[:place])
        rest = rest[place:]


def drop(transaction: Transaction, name: bytes) -> None:
    """Take one reference off; without any left the content is removed."""
    row = transaction.get(BLOBS, name)
    if row is None:  # damage: nothing is left that could be dropped
        return
    references, length = BLOB_HEADER.unpack_from(row)
    if references > 1:
        changed = BLOB_HEADER.pack(references - 1, length) + row[BLOB_HEADER.size :]
        transaction.put(BLOBS, name, changed)
        return
    transaction.head.blobs -= 1
    transaction.head.blob_bytes -= length
    for index in range((len(row) - BLOB_HEADER.size) // 4):
        transaction.delete(CHUNKS, name + CHUNK_KEY_INDEX.pack(index))
    transaction.delete(BLOBS, name)
    previews = [bytes(key) for key, _ in previews_of(transaction, name)]
    for key in previews:
        transaction.delete(PREVIEWS, key)


def previews_of(transaction: Transaction, name: bytes) -> Iterator[tuple[memoryview, memoryview]]:
    """Yield the rows of the content's thumbnails."""
    for key, row in transaction.rows(PREVIEWS, name):
        if key[: len(name)] != name:
            break
        yield key, row


def references_and_length(transaction: Transaction, name: bytes) -> tuple[int, int]:
    """Return how many records refer to the content and how many bytes it has; zeros if unknown."""
    row = transaction.get(BLOBS, name)
    if row is None:
        return 0, 0
    references, length = BLOB_HEADER.unpack_from(row)
    return references, length


def chunks(transaction: Transaction, name: bytes) -> Iterator[memoryview]:
    """Yield the content in its chunks, each compared with its checksum.

    The memory belongs to the transaction. ``DamagedError`` if a chunk is missing or changed.
    """
    row = transaction.get(BLOBS, name)
    if row is None:
        raise damaged("A value refers to content that is not there.")
    sums = struct.unpack(f">{(len(row) - BLOB_HEADER.size) // 4}I", row[BLOB_HEADER.size :])
    for index, expected in enumerate(sums):
        chunk = transaction.get(CHUNKS, name + CHUNK_KEY_INDEX.pack(index))
        if chunk is None or zlib.crc32(chunk) != expected:
            raise damaged("Stored content does not fit its checksum.")
        yield chunk


def text(transaction: Transaction, blob: Blob) -> Iterator[bytes]:
    """Yield the JSON text that the blob stands for, prefix included.

    Pieces of at most 262,144 bytes. Those of a string end where a string may be cut. The prefix
    stands in the first piece: each piece may be a frame of its own.
    """
    before = blob.prefix
    if blob.kind == KIND_BASE64:
        size = BASE64_PIECE - (len(before) + 3) // 4 * 3
        for chunk in chunks(transaction, blob.hash):
            start = 0
            while start < len(chunk):
                yield before + binascii.b2a_base64(chunk[start : start + size], newline=False)
                start += size
                before, size = b"", BASE64_PIECE
        return
    for chunk in chunks(transaction, blob.hash):
        rest = chunk
        while rest:
            place = safe_cut(rest, TEXT_PIECE - len(before))
            yield before + bytes(rest[:place])
            rest = rest[place:]
            before = b""
    if before:  # a data URL with nothing behind the comma
        yield before
