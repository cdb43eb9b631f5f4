"""Check a whole store: checksums, references and totals against what really lies there.

Looks at every row in one snapshot and changes nothing. Meant for a process of its own where the
store is big.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter

from sidekeep.errors import DamagedError
from sidekeep.store import documents, journal, records
from sidekeep.store.conversations import find as find_conversation
from sidekeep.store.documents import Change
from sidekeep.store.layout import (
    BLOB_HEADER,
    BLOBS,
    CHUNK_KEY_INDEX,
    CHUNKS,
    CONVERSATIONS,
    ENTRIES,
    ENTRY,
    ENTRY_KEY,
    FORM_ROPE,
    JOURNAL,
    NUMBER,
    RECORDS,
    hash_of,
)
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction


def problems(transaction: Transaction) -> list[str]:
    """Return every problem found, one sentence each; an empty list means that all is well."""
    found: list[str] = []
    wanted: Counter[int] = Counter()
    _documents(transaction, wanted, found)
    _conversations(transaction, wanted, found)
    _journal(transaction, wanted, found)
    blobs = _records(transaction, wanted, found)
    _blobs(transaction, blobs, found)
    return found


def _documents(transaction: Transaction, wanted: Counter[int], found: list[str]) -> None:
    items = size = 0
    for document in documents.walk(transaction):
        items += 1
        wanted[document.number] += 1
        size += document.size
        try:
            actual = records.read(transaction, document.number).size + len(document.key.encode())
        except DamagedError as error:
            found.append(f"item {document.key[:64]!r}: {error}")
            continue
        if actual != document.size:
            found.append(f"item {document.key[:64]!r}: {actual} bytes, counted {document.size}")
    head = transaction.head
    if (items, size) != (head.items, head.size):
        found.append(f"{items} items of {size} bytes, counted {head.items} of {head.size}")


def _conversations(transaction: Transaction, wanted: Counter[int], found: list[str]) -> None:
    lengths: Counter[int] = Counter()
    for key, row in transaction.rows(ENTRIES):
        lengths[ENTRY_KEY.unpack(key)[0]] += 1
        wanted[ENTRY.unpack(row)[1]] += 1
    for key, _ in transaction.rows(CONVERSATIONS):
        name = str(key, "utf-8")
        try:
            conversation = find_conversation(transaction, name)
        except DamagedError as error:
            found.append(f"conversation {name}: {error}")
            continue
        length = lengths.pop(conversation.number, 0)
        if length != conversation.length:
            found.append(f"conversation {name}: {length} entries, counted {conversation.length}")
    found.extend(f"entries of the unknown conversation {number}" for number in lengths)


def _journal(transaction: Transaction, wanted: Counter[int], found: list[str]) -> None:
    try:
        for call in journal.since(transaction, 0):
            for change in call.changes:
                if isinstance(change, Change):
                    wanted.update(number for number in change[1:] if number)
                else:
                    wanted.update(number for _, number in (*change.removed, *change.inserted))
    except DamagedError as error:
        found.append(str(error))
    rows = transaction.count(JOURNAL)
    if rows != transaction.head.journal_rows:
        found.append(f"{rows} rows of the journal, counted {transaction.head.journal_rows}")


def _records(transaction: Transaction, wanted: Counter[int], found: list[str]) -> Counter[bytes]:
    blobs: Counter[bytes] = Counter()
    for key, row in transaction.rows(RECORDS):
        (number,) = NUMBER.unpack(key)
        try:
            record = Record(row)
        except DamagedError as error:
            found.append(f"record {number}: {error}")
            continue
        references = wanted.pop(number, 0)
        if references != record.references:
            found.append(f"record {number}: {references} references, counted {record.references}")
        if record.form == FORM_ROPE:
            blobs.update(piece.hash for piece in record.pieces if isinstance(piece, Blob))
    found.extend(f"record {number} is missing" for number in wanted)
    return blobs


def _blobs(transaction: Transaction, wanted: Counter[bytes], found: list[str]) -> None:
    count = total = chunk_rows = 0
    for key, row in transaction.rows(BLOBS):
        name = bytes(key)
        references, length = BLOB_HEADER.unpack_from(row)
        sums = struct.unpack(f">{(len(row) - BLOB_HEADER.size) // 4}I", row[BLOB_HEADER.size :])
        count += 1
        total += length
        chunk_rows += len(sums)
        if wanted.pop(name, 0) != references:
            found.append(f"blob {name.hex()[:16]}: counted {references} references")
        chunks = [
            transaction.get(CHUNKS, name + CHUNK_KEY_INDEX.pack(index))
            for index in range(len(sums))
        ]
        there = [chunk for chunk in chunks if chunk is not None]
        if [zlib.crc32(chunk) for chunk in there] != list(sums) or hash_of(*there) != name:
            found.append(f"blob {name.hex()[:16]}: its content is not what was stored")
    found.extend(f"blob {name.hex()[:16]} is missing" for name in wanted)
    head = transaction.head
    if (count, total) != (head.blobs, head.blob_bytes):
        found.append(f"{count} blobs of {total} bytes, counted {head.blobs} of {head.blob_bytes}")
    if chunk_rows != transaction.count(CHUNKS):
        found.append("there are chunks that belong to no blob")
