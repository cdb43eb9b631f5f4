"""Check a whole store: checksums, references and totals against what really lies there.

Looks at every row in one snapshot and changes nothing. Meant for a process of its own where the
store is big.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

from sidekeep.errors import DamagedError
from sidekeep.store import blobs as contents
from sidekeep.store import documents, journal, lists, records, trash, turns
from sidekeep.store.documents import Document
from sidekeep.store.findings import BYTES_PER_STEP, Findings
from sidekeep.store.layout import (
    BLOB_HEADER,
    BLOBS,
    CHUNK_KEY_INDEX,
    CHUNKS,
    ENTRIES,
    ENTRY,
    ENTRY_KEY,
    FORM_ROPE,
    HOLDERS,
    JOURNAL,
    NUMBER,
    PREVIEWS,
    RECORD_SEARCHED,
    RECORDS,
    SEARCH,
    hash_of,
)
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction


def problems(transaction: Transaction) -> list[str]:
    """Return every problem found, one sentence each; an empty list means that all is well."""
    return [problem.text for problem in examine(transaction).problems]


def steps(transaction: Transaction) -> int:
    """Return about how many steps ``examine`` takes, see ``Findings``."""
    rows: int = transaction.txn.stat()["entries"]
    return rows + transaction.head.blob_bytes // BYTES_PER_STEP


def examine(transaction: Transaction, tell: Callable[[int], None] | None = None) -> Findings:
    """Return what a check of everything finds. ``tell``: called with each step that was done.

    ``DamagedError`` if the tree of the file or the counters cannot be read at all.
    """
    found = Findings(tell)
    wanted: Counter[int] = Counter()
    _documents(transaction, wanted, found)
    _lists(transaction, wanted, found)
    _journal(transaction, wanted, found)
    _trash_and_turns(transaction, wanted, found)
    blobs = _records(transaction, wanted, found)
    _blobs(transaction, blobs, found)
    return found


def _documents(transaction: Transaction, wanted: Counter[int], found: Findings) -> None:
    items = size = 0
    for document in documents.walk(transaction):
        items += 1
        found.looked_at("items")
        size += document.size
        if not document.number:  # a list: see _lists
            continue
        wanted[document.number] += 1
        try:
            actual = records.read(transaction, document.number).size + len(document.key.encode())
        except DamagedError as error:
            found.item("damaged", document.key, str(error))
            continue
        if actual != document.size:
            found.item("count", document.key, f"{actual} bytes, counted {document.size}")
    head = transaction.head
    if (items, size) != (head.items, head.size):
        found.general(
            "count", f"{items} items of {size} bytes, counted {head.items} of {head.size}"
        )


def _lists(transaction: Transaction, wanted: Counter[int], found: Findings) -> None:
    lengths: Counter[int] = Counter()
    for key, row in transaction.rows(ENTRIES):
        found.looked_at("entries")
        lengths[ENTRY_KEY.unpack(key)[0]] += 1
        wanted[ENTRY.unpack(row)[1]] += 1
    holders: Counter[bytes] = Counter()
    held: dict[int, _Held] = {}
    for document in documents.walk(transaction):
        if document.number:
            continue
        found.checked["lists"] += 1
        try:
            one = _list(transaction, document, holders, found)
        except DamagedError as error:
            found.item("damaged", document.key, str(error), kind="list")
            continue
        held[one.header.number] = one
        length = lengths.pop(one.header.number, 0)
        if length != one.header.length:
            text = f"{length} entries, counted {one.header.length}"
            found.item("count", one.key, text, kind="list")
    for number in lengths:
        found.general("orphan", f"entries of the unknown list {number}")
    _holders(transaction, holders, held, found)


class _Held:
    """A list and what its entries add up to."""

    def __init__(self, key: str, header: lists.Header) -> None:
        self.key = key
        self.header = header
        self.text = 0
        self.pictures: set[bytes] = set()


def _list(
    transaction: Transaction, document: Document, holders: Counter[bytes], found: Findings
) -> _Held:
    one = lists.find(transaction, document.key)
    assert one is not None
    held = _Held(one.key, one.header)
    size = len(one.key.encode()) + len("[]") + max(one.header.length - 1, 0)
    ids = []
    for entry in one.entries():
        ids.append(entry.id)
        record = records.read_if_good(transaction, entry.record)
        if record is None:  # told where records are checked
            continue
        size += record.size
        pictures = record.pictures
        held.text += record.size - sum(len(blob.prefix) + blob.length for blob in pictures)
        if one.header.counted:
            held.pictures.update(blob.hash for blob in pictures)
            holders.update(blob.hash + NUMBER.pack(one.header.number) for blob in pictures)
    if size != document.size:
        found.item("count", one.key, f"{size} bytes, counted {document.size}", kind="list")
    if len(set(ids)) != len(ids):
        found.item("order", one.key, "two entries have the same id", kind="list")
    if one.header.ordered and ids != sorted(ids):
        found.item("order", one.key, "its ids do not rise, but it says so", kind="list")
    return held


def _holders(
    transaction: Transaction, wanted: Counter[bytes], held: dict[int, _Held], found: Findings
) -> None:
    lists_of: Counter[bytes] = Counter(key[:-8] for key in wanted)
    expected = {**wanted, **lists_of}
    there = {bytes(key): row[:4] for key, row in transaction.rows(HOLDERS)}
    if {key: int.from_bytes(count, "big") for key, count in there.items()} != expected:
        found.general("count", "the pictures that lists hold are not those that are counted")
    for one in held.values():
        if not one.header.counted:
            continue
        own = shared = 0
        for name in one.pictures:
            size = contents.references_and_length(transaction, name)[1]
            if lists_of[name] > 1:
                shared += size
            else:
                own += size
        header = one.header
        if (one.text, own, shared) != (header.text, header.own, header.shared):
            found.item(
                "count",
                one.key,
                f"{one.text}, {own}, {shared} bytes of text, own and shared"
                f" pictures, counted {header.text}, {header.own}, {header.shared}",
                kind="list",
            )


def _trash_and_turns(transaction: Transaction, wanted: Counter[int], found: Findings) -> None:
    try:
        for _, removal in trash.newest_first(transaction):
            wanted.update(removal.records)
        wanted.update(turn.record for turn in turns.walk(transaction) if turn.record)
    except DamagedError as error:
        found.general("damaged", str(error))


def _journal(transaction: Transaction, wanted: Counter[int], found: Findings) -> None:
    try:
        for call in journal.since(transaction, 0):
            found.looked_at("journal")
            wanted.update(journal.records_of(call.changes))
    except DamagedError as error:
        found.general("damaged", str(error))
    rows = transaction.count(JOURNAL)
    if rows != transaction.head.journal_rows:
        found.general(
            "count", f"{rows} rows of the journal, counted {transaction.head.journal_rows}"
        )


def _records(transaction: Transaction, wanted: Counter[int], found: Findings) -> Counter[bytes]:
    blobs: Counter[bytes] = Counter()
    searched = 0
    for key, row in transaction.rows(RECORDS):
        (number,) = NUMBER.unpack(key)
        found.looked_at("records")
        try:
            record = Record(row)
        except DamagedError as error:
            found.record("damaged", number, f": {error}")
            continue
        references = wanted.pop(number, 0)
        if references != record.references:
            text = f": {references} references, counted {record.references}"
            found.record("count", number, text)
        if record.flags & RECORD_SEARCHED:
            searched += 1
            if transaction.get(SEARCH, NUMBER.pack(number)) is None:
                found.record("index", number, ": a search would not find it")
        if record.form == FORM_ROPE:
            blobs.update(piece.hash for piece in record.pieces if isinstance(piece, Blob))
    for number in wanted:
        found.record("missing", number, " is missing")
    if searched != transaction.count(SEARCH):
        found.general("orphan", "there are texts for the search that belong to no record")
    return blobs


def _blobs(transaction: Transaction, wanted: Counter[bytes], found: Findings) -> None:
    count = total = chunk_rows = 0
    for key, row in transaction.rows(BLOBS):
        name = bytes(key)
        references, length = BLOB_HEADER.unpack_from(row)
        sums = struct.unpack(f">{(len(row) - BLOB_HEADER.size) // 4}I", row[BLOB_HEADER.size :])
        count += 1
        total += length
        chunk_rows += len(sums)
        found.checked["blobBytes"] += length
        found.looked_at("blobs")
        if wanted.pop(name, 0) != references:
            found.blob("count", name, f": counted {references} references")
        chunks = [
            transaction.get(CHUNKS, name + CHUNK_KEY_INDEX.pack(index))
            for index in range(len(sums))
        ]
        there = [chunk for chunk in chunks if chunk is not None]
        if _sums_of(there, found) != list(sums) or hash_of(*there) != name:
            found.blob("damaged", name, ": its content is not what was stored")
    for name in wanted:
        found.blob("missing", name, " is missing")
    head = transaction.head
    if (count, total) != (head.blobs, head.blob_bytes):
        found.general(
            "count", f"{count} blobs of {total} bytes, counted {head.blobs} of {head.blob_bytes}"
        )
    for key, _ in transaction.rows(PREVIEWS):
        if transaction.get(BLOBS, bytes(key[:32])) is None:
            shown = bytes(key[:8]).hex()
            found.general("orphan", f"there is a thumbnail of content that is gone: {shown}")
    if chunk_rows != transaction.count(CHUNKS):
        found.general("orphan", "there are chunks that belong to no blob")


def _sums_of(chunks: Sequence[memoryview], found: Findings) -> list[int]:
    sums = []
    for chunk in chunks:
        sums.append(zlib.crc32(chunk))
        found.step(len(chunk))
    return sums
