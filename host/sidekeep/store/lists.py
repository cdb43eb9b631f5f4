"""Lists: values that are kept entry by entry, each entry a record held by reference.

Rules:

* A list lies under the key of a document, whose row then holds a header in place of a record. It is
  the same item: it counts among the items and has a size and a revision like all others.
* An entry's id is the number of the first record it was stored in, so it is unique in the store. It
  is kept when the entry changes, is copied to another list, or is brought back.
* Appending writes one entry row, whatever the length. Copying writes rows of references and no
  content.
* A write transaction has one ``StoredList`` per list: changing one list may change the figures of
  others (see ``holders``), and whoever has those open must not write what they said before.
* Every change returns a ``Splice`` for the journal and leaves one reference of each record that
  came or went to it. References of records that come are the caller's to have made: one for the
  list and one for the journal.

Positions are numbers with holes; only their order means something. A list whose ids do not rise
with its positions is marked, and its entries are then looked for one by one instead of by halving.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from sidekeep.store import documents, records
from sidekeep.store.holders import Tally
from sidekeep.store.journal import ABSENT, LIST, Splice
from sidekeep.store.layout import DOCUMENT, DOCUMENTS, ENTRIES, ENTRY, ENTRY_KEY, row_key
from sidekeep.store.records import Record
from sidekeep.store.sealed import seal, unseal
from sidekeep.store.transaction import Transaction, damaged

VERSION = 1
_MOST = 2**64 - 1


class Entry(NamedTuple):
    """One entry: its position, its id, and the number of the record that holds it."""

    position: int
    id: int
    record: int


class Header(msgspec.Struct, array_like=True):
    """What a list says of itself in its document's row.

    ``number``: its place among the entries. ``length`` counts entries. ``ordered``: whether ids
    rise with positions. ``word``: the conversation that it is. ``counted``: whether it is one, for
    which ``text``, ``own`` and ``shared`` are kept (bytes, see ``holders``). Times are seconds
    since 1970.
    """

    version: int
    number: int
    length: int
    last_position: int
    ordered: bool
    word: str
    counted: bool
    created: float
    changed: float
    text: int = 0
    own: int = 0
    shared: int = 0


class StoredList:
    """A list as one transaction sees it.

    ``size``: bytes of key and value as ``chrome.storage`` counts them. ``revision``: the sequence
    number of its last change.
    """

    __slots__ = ("_transaction", "header", "key", "revision", "size")

    def __init__(
        self, transaction: Transaction, key: str, header: Header, revision: int, size: int
    ) -> None:
        self._transaction = transaction
        self.key = key
        self.header = header
        self.revision = revision
        self.size = size

    def __len__(self) -> int:
        return self.header.length

    # Reading

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield the entries whose position is above ``after``, in order."""
        mine = self.header.number
        for key, row in self._transaction.rows(ENTRIES, ENTRY_KEY.pack(mine, after + 1)):
            number, position = ENTRY_KEY.unpack(key)
            if number != mine:
                return
            yield Entry(position, *ENTRY.unpack(row))

    def entries_back(self, before: int = _MOST) -> Iterator[Entry]:
        """Yield the entries whose position is below ``before``, last one first."""
        mine = self.header.number
        for key, row in self._transaction.rows_back(ENTRIES, ENTRY_KEY.pack(mine, before)):
            number, position = ENTRY_KEY.unpack(key)
            if number != mine:
                return
            yield Entry(position, *ENTRY.unpack(row))

    def locate(self, identity: int) -> Entry | None:
        """Return the entry of that id, or ``None``."""
        if not self.header.ordered:
            return next((one for one in self.entries() if one.id == identity), None)
        found = self.first_from(identity)
        return found if found is not None and found.id == identity else None

    def first_from(self, identity: int) -> Entry | None:
        """Return the first entry whose id is at least ``identity``; the ids must rise."""
        low, high = 1, self.header.last_position
        found = None
        while low <= high:
            middle = (low + high) // 2
            entry = next(self.entries(middle - 1), None)
            if entry is None or entry.id >= identity:
                found = entry or found
                high = middle - 1
            else:
                low = entry.position + 1
        return found

    def at(self, index: int) -> Entry:
        """Return the entry at an index from 0 to the length less 1."""
        length = self.header.length
        if length == self.header.last_position:  # no holes
            return next(self.entries(index))
        if index < length // 2:
            return next(one for number, one in enumerate(self.entries()) if number == index)
        back = length - 1 - index
        return next(one for number, one in enumerate(self.entries_back()) if number == back)

    def index_of(self, entry: Entry) -> int:
        """Return the entry's index."""
        if self.header.length == self.header.last_position:  # no holes
            return entry.position - 1
        return self.header.length - 1 - sum(1 for _ in self.entries(entry.position))

    # Changing

    def splice(
        self,
        at: int,
        removed: Sequence[Entry],
        inserted: Sequence[tuple[int, int]],
        revision: int,
        before: int = LIST,
        known: Mapping[int, Record] | None = None,
    ) -> Splice:
        """Put ``inserted`` (pairs of id and record) in place of ``removed``, which begin at ``at``.

        ``before``: what the key held, if the list was made just now. ``known``: records that were
        read already (see ``records.refer``).
        """
        transaction = self._transaction
        header = self.header
        tally = Tally(transaction, header.number, self.key) if header.counted else None
        bytes_before = self._value_bytes()
        length_before = header.length
        ordered = header.ordered and self._fits(at, removed, [one for one, _ in inserted])
        for entry in removed:
            transaction.delete(ENTRIES, ENTRY_KEY.pack(header.number, entry.position))
        tail: list[Entry] = []
        if at + len(removed) < header.length and len(inserted) > len(removed):
            # No room between two positions: what follows moves behind everything else.
            start = removed[-1].position if removed else self._position_before(at)
            tail = list(self.entries(start))
            for entry in tail:
                transaction.delete(ENTRIES, ENTRY_KEY.pack(header.number, entry.position))
        reusable = [] if tail else [entry.position for entry in removed]
        for number, (identity, record) in enumerate(inserted):
            self._put(reusable[number] if number < len(reusable) else 0, identity, record)
        for entry in tail:
            self._put(0, entry.id, entry.record)
        header.length += len(inserted) - len(removed)
        header.ordered = ordered or not header.length
        if at + len(removed) == length_before and len(inserted) < len(removed):
            last = next(self.entries_back(), None)
            header.last_position = last.position if last else 0
        grown = self._weigh(tally, removed, inserted, known or {})
        commas = max(header.length - 1, 0) - max(length_before - 1, 0)
        self._resize(bytes_before + grown + commas)
        self.revision = revision
        header.changed = time.time()
        self._settle(tally)
        pairs = [(entry.id, entry.record) for entry in removed]
        return Splice(self.key, before, LIST, at, pairs, list(inserted), header.length)

    def _weigh(
        self,
        tally: Tally | None,
        removed: Sequence[Entry],
        inserted: Sequence[tuple[int, int]],
        known: Mapping[int, Record],
    ) -> int:
        """Count what came and went; return how many bytes the entries grew by."""
        grown = 0
        # What comes is counted first, so that a picture in both is never without a holder.
        for _, number in inserted:
            record = known.get(number) or records.read(self._transaction, number)
            grown += record.size
            if tally is not None:
                tally.add(record)
        for entry in removed:
            old = records.read_if_good(self._transaction, entry.record)
            if old is not None:
                grown -= old.size
                if tally is not None:
                    tally.remove(old)
        return grown

    def _settle(self, tally: Tally | None) -> None:
        """Write the figures of this list and of others that share pictures with it."""
        if tally is not None:
            self.header.text += tally.text
            self.header.own += tally.own.pop(self.key, 0)
            self.header.shared += tally.shared.pop(self.key, 0)
            for key in {**tally.own, **tally.shared}:
                own, shared = tally.own[key], tally.shared[key]
                other = find(self._transaction, key) if own or shared else None
                if other is not None:
                    other.header.own += own
                    other.header.shared += shared
                    other.write()
        self.write()

    def _put(self, position: int, identity: int, record: int) -> None:
        """Write an entry's row; position 0 means behind everything else."""
        header = self.header
        if not position:
            header.last_position += 1
            position = header.last_position
        key = ENTRY_KEY.pack(header.number, position)
        self._transaction.put(ENTRIES, key, ENTRY.pack(identity, record))

    def _position_before(self, at: int) -> int:
        return self.at(at - 1).position if at else 0

    def _fits(self, at: int, removed: Sequence[Entry], ids: list[int]) -> bool:
        """Whether ids still rise with these in the place of ``removed``."""
        if ids == [entry.id for entry in removed]:
            return True
        if any(one >= two for one, two in pairwise(ids)):
            return False
        if not ids:
            return True
        end = at + len(removed)
        if end < self.header.length:
            following = self.at(end) if not removed else next(self.entries(removed[-1].position))
            if following.id <= ids[-1]:
                return False
        if at == self.header.length:
            previous = next(self.entries_back(), None)
        else:
            previous = next(self.entries_back(removed[0].position), None) if removed else None
            if not removed and at:
                previous = self.at(at - 1)
        return previous is None or previous.id < ids[0]

    def _value_bytes(self) -> int:
        return self.size - len(self.key.encode())

    def _resize(self, value_bytes: int) -> None:
        size = value_bytes + len(self.key.encode())
        self._transaction.head.size += size - self.size
        self.size = size

    def write(self) -> None:
        """Write the header's row."""
        place = DOCUMENT.pack(0, self.revision, self.size)
        row = place + seal(msgspec.msgpack.encode(self.header))
        self._transaction.put(DOCUMENTS, row_key(self.key), row)
        self._transaction.lists[self.key] = self

    def drop(self, after: int = ABSENT) -> Splice:
        """Remove the list with all its entries. ``after``: what takes its place."""
        transaction = self._transaction
        old = list(self.entries())
        header = self.header
        tally = Tally(transaction, header.number, self.key) if header.counted else None
        for entry in old:
            transaction.delete(ENTRIES, ENTRY_KEY.pack(header.number, entry.position))
        self._weigh(tally, old, [], {})
        self._settle(tally)
        transaction.delete(DOCUMENTS, row_key(self.key))
        transaction.head.items -= 1
        transaction.head.size -= self.size
        return Splice(self.key, LIST, after, 0, [(one.id, one.record) for one in old], [], 0)


def find(transaction: Transaction, key: str) -> StoredList | None:
    """Return the list of that key, or ``None`` if the key holds none.

    In a write transaction it is the same object for all who ask, until a call is given up.
    """
    row = transaction.get(DOCUMENTS, row_key(key))
    if row is None:
        return None
    number, revision, size = DOCUMENT.unpack_from(row)
    if number:
        return None
    known = transaction.lists.get(key)
    if known is not None:
        return known
    body = unseal(row[DOCUMENT.size :], f"The header of the list {key[:64]!r}")
    header = msgspec.msgpack.decode(body, type=Header)
    if header.version != VERSION:
        raise damaged(f"The list {key[:64]!r} has the unknown version {header.version}.")
    found = StoredList(transaction, key, header, revision, size)
    if transaction.writable:
        transaction.lists[key] = found
    return found


def state(transaction: Transaction, key: str) -> int:
    """Return what a key holds: ``ABSENT``, ``LIST`` or the number of a record."""
    found = documents.find(transaction, key)
    if found is None:
        return ABSENT
    return found.number or LIST


def create(transaction: Transaction, key: str, word: str, *, counted: bool) -> StoredList:
    """Make an empty list under a key that holds nothing. Its row is written by the first splice."""
    head = transaction.head
    head.lists += 1
    head.items += 1
    size = len(key.encode()) + len("[]")
    head.size += size
    now = time.time()
    header = Header(VERSION, head.lists, 0, 0, True, word, counted, now, now)
    return StoredList(transaction, key, header, head.seq, size)
