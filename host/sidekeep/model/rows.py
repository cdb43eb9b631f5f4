"""The rows of ``savedSessions``: their JSON text, and the short form by which sessions are found.

Rules:

* A row is kept as it was written, with whatever else is in it.
* The short form lies in a table of its own under the session's id and follows every change of the
  list, whoever made it. Of two rows with the same id the later one counts; when it goes, the other
  one does.
* A row whose id makes no key of a list (see ``keys``) is kept like one without an id: it names no
  session.
* A row with a whole ``history`` in it is of the old kind; their number is kept, so that nobody has
  to look for them in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sidekeep.errors import DamagedError
from sidekeep.model.keys import BODY, INDEX, is_view
from sidekeep.model.updates import text_of
from sidekeep.store import blobs, lists, records
from sidekeep.store.journal import Splice
from sidekeep.store.layout import KIND_FRAGMENT, META, NUMBER, SESSIONS, row_key
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction

_LEGACY_KEY = b"legacy"
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.encode


class Row(msgspec.Struct, array_like=True):
    """A session in short. ``entry``: the id of its entry in ``savedSessions``.

    ``created``: as the row says it (milliseconds since 1970), 0 if it is no number. ``rows``: how
    many rows have this id.
    """

    id: str
    entry: int
    name: str
    created: float
    pinned: bool
    legacy: bool = False
    rows: int = 1


class _Fields(msgspec.Struct):
    """What is looked for in a row; every field may be anything."""

    id: Any = None
    name: Any = None
    createdAt: Any = None  # noqa: N815 - the field's name
    pinned: Any = None
    history: msgspec.Raw = msgspec.Raw(b"")


def follow(transaction: Transaction, splice: Splice) -> None:
    """Bring the short forms in line with a change of ``savedSessions`` that has been made."""
    kept = set(splice.inserted)
    came = set(splice.removed)
    legacy = 0
    several = set()
    for pair in splice.removed:
        row = None if pair in kept else of_record(transaction, *pair)
        if row is None:
            continue
        legacy -= row.legacy
        present = find(transaction, row.id) if row.id else None
        if present is None:
            continue
        if present.rows > 1:
            several.add(row.id)
            _put(transaction, present, present.rows - 1)
        else:
            transaction.delete(SESSIONS, row_key(row.id))
    for pair in splice.inserted:
        row = None if pair in came else of_record(transaction, *pair)
        if row is None:
            continue
        legacy += row.legacy
        if not row.id:
            continue
        present = find(transaction, row.id)
        if present is not None:
            several.add(row.id)
        _put(transaction, row, 1 if present is None else present.rows + 1)
    if several:
        _choose_last(transaction, several)
    if legacy:
        count = legacy_rows(transaction) + legacy
        transaction.put(META, _LEGACY_KEY, NUMBER.pack(count))


def _put(transaction: Transaction, row: Row, rows: int) -> None:
    row.rows = rows
    transaction.put(SESSIONS, row_key(row.id), msgspec.msgpack.encode(row))


def _choose_last(transaction: Transaction, sessions: set[str]) -> None:
    """Let the last row of each of these sessions count, by looking at all rows."""
    index = lists.find(transaction, INDEX)
    last: dict[str, Row] = {}
    numbers: Counter[str] = Counter()
    for entry in () if index is None else index.entries():
        row = of_record(transaction, entry.id, entry.record)
        if row is not None and row.id in sessions:
            last[row.id] = row
            numbers[row.id] += 1
    for session, row in last.items():
        _put(transaction, row, numbers[session])


def legacy_rows(transaction: Transaction) -> int:
    """Return how many rows of the old kind there are."""
    row = transaction.get(META, _LEGACY_KEY)
    return 0 if row is None else int(NUMBER.unpack(row)[0])


def find(transaction: Transaction, session: str) -> Row | None:
    """Return the row of a session, or ``None``."""
    row = transaction.get(SESSIONS, row_key(session))
    return None if row is None else msgspec.msgpack.decode(row, type=Row)


def walk(transaction: Transaction) -> Iterator[Row]:
    """Yield all sessions."""
    decode = msgspec.msgpack.Decoder(Row).decode
    for _, row in transaction.rows(SESSIONS):
        yield decode(row)


def of_record(transaction: Transaction, entry: int, number: int) -> Row | None:
    """Return the short form of the row in a record, ``None`` if it is none or damaged."""
    try:
        record = records.read(transaction, number)
    except DamagedError:  # what it said is lost; the row of the table stays as it was
        return None
    return of_text(entry, _short_text(transaction, record.pieces))


def _short_text(transaction: Transaction, pieces: list[bytes | Blob]) -> bytes:
    """Return a row's text without its long strings, which stand in it as ``""``."""
    text = []
    for piece in pieces:
        if isinstance(piece, bytes):
            text.append(piece)
        elif piece.kind == KIND_FRAGMENT:
            text.extend(blobs.text(transaction, piece))
    return b"".join(text)


def of_text(entry: int, text: bytes) -> Row | None:
    """Return the short form of a row, or ``None`` if it is no object with an id or a history."""
    try:
        fields = msgspec.json.decode(text, type=_Fields)
    except msgspec.ValidationError:
        return None
    legacy = bytes(fields.history).lstrip().startswith(b"[")
    named = isinstance(fields.id, str) and is_view(BODY + fields.id)
    if not named and not legacy:
        return None
    created = fields.createdAt
    is_number = isinstance(created, (int, float)) and not isinstance(created, bool)
    return Row(
        fields.id if named else "",
        entry,
        fields.name if isinstance(fields.name, str) else "",
        float(created) if is_number else 0.0,
        bool(fields.pinned),
        legacy,
    )


def text_with(transaction: Transaction, number: int, changes: dict[str, object]) -> bytes:
    """Return the row's text with some members set (``None``: taken out), keys in order."""
    text = text_of(transaction, records.read(transaction, number))
    return with_members(text, changes)


def with_members(text: bytes, changes: dict[str, object]) -> bytes:
    """Return an object's text with some members set (``None``: taken out), keys in order."""
    return with_raw(
        text,
        {name: None if value is None else _encode(value) for name, value in changes.items()},
    )


def with_raw(text: bytes, changes: Mapping[str, bytes | None]) -> bytes:
    """Do the same with values that are JSON text already."""
    members = {name: bytes(raw) for name, raw in _members.decode(text).items()}
    for name, value in changes.items():
        if value is None:
            members.pop(name, None)
        else:
            members[name] = value
    return b"{%b}" % b",".join(_encode(name) + b":" + members[name] for name in sorted(members))
