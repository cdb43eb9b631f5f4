"""Saved conversations: a light index (``savedSessions``) and bodies apart (``session_<id>``).

Source of the rules: the seed storage model ("Snapshots de sessão") and docs/protocol.md,
"Sessions". Saving and loading copy references to entries, never entries.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from sidekeep.errors import NotFoundError
from sidekeep.model import history, rows, words
from sidekeep.model.digests import digest
from sidekeep.model.edit import Edit
from sidekeep.model.ends import common_ends
from sidekeep.model.entries import NewEntry, facts_of, prepare
from sidekeep.model.keys import BODY, HISTORY, INDEX
from sidekeep.model.rows import Row
from sidekeep.model.updates import text_of
from sidekeep.model.views import add, facts_in, open_list, opened
from sidekeep.store import records
from sidekeep.store.founding import live_word
from sidekeep.store.lists import Entry, StoredList
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction
from sidekeep.text.names import automatic_name, cut_name

_encode = msgspec.json.encode


def save(edit: Edit, session: str | None, name: str | None, prefixes: Sequence[str]) -> str | None:
    """Save the history as a session; return its id, ``None`` if there is nothing to save.

    ``session``: the one to save into; unknown or ``None`` makes a new one. ``prefixes``: how the
    text of an attachment begins.
    """
    transaction = edit.transaction
    source = open_list(transaction, HISTORY)
    if source is None or not len(source):
        return None
    known = rows.find(transaction, session) if session else None
    chosen = known.id if known is not None else str(uuid.uuid4())
    body, copied = _copy(edit, source, BODY + chosen)
    words.give(transaction, body, live_word(transaction))
    if known is not None:
        changes: dict[str, object] = {} if name is None else {"name": cut_name(name)}
        if copied.removed or copied.inserted:
            changes["textDigest"] = _digest_after(transaction, known, body, copied)
        if changes:
            _rewrite_row(edit, known, changes)
        return chosen
    given = cut_name(name) if name is not None else _name_of(transaction, body, prefixes)
    _add_row(edit, chosen, given, _digest_of(transaction, copied))
    return chosen


class _Copied(NamedTuple):
    """What a copy changed: how many entries went, the records that came, whether at the end."""

    removed: int
    inserted: list[Record]
    at_end: bool


def _digest_of(transaction: Transaction, copied: _Copied, before: str = "") -> str:
    """Return the digest ``before`` with that of what came added."""
    return digest((facts_of(transaction, record) for record in copied.inserted), before)


def _digest_after(transaction: Transaction, row: Row, body: StoredList, copied: _Copied) -> str:
    """Return the digest of a body; of one that only grew only the new entries are read."""
    before = _present_digest(transaction, row)
    if copied.removed or not copied.at_end or before is None:
        return digest(facts_in(transaction, body))
    return _digest_of(transaction, copied, before)


def _present_digest(transaction: Transaction, row: Row) -> str | None:
    """Return the ``textDigest`` that a session's row has, ``None`` if it is no text."""
    entry = history.entry_of(transaction, INDEX, row.entry)
    fields = facts_of(transaction, records.read(transaction, entry.record)).fields
    present = fields.get("textDigest")
    return present if isinstance(present, str) else None


def _copy(edit: Edit, source: StoredList, key: str) -> tuple[StoredList, _Copied]:
    """Make the list of ``key`` hold the entries of ``source``; return it and what that changed."""
    transaction = edit.transaction
    target, before = opened(edit, key)
    old = list(target.entries())
    new = list(source.entries())
    start, end = common_ends(old, new, lambda one, two: _is_same(transaction, one, two))
    pairs = [(entry.id, entry.record) for entry in new[start : len(new) - end]]
    known = {number: records.refer(transaction, number, references=2) for _, number in pairs}
    removed = old[start : len(old) - end]
    edit.splice(target, start, removed, pairs, before=before, known=known)
    return target, _Copied(len(removed), list(known.values()), not end)


def _is_same(transaction: Transaction, one: Entry, two: Entry) -> bool:
    """Whether two entries have the same id and value, which may lie in two records."""
    return one.id == two.id and (
        one.record == two.record or records.are_equal(transaction, one.record, two.record)
    )


def _name_of(transaction: Transaction, body: StoredList, prefixes: Sequence[str]) -> str:
    """Return the name that a conversation gives itself: its first question, or the date."""
    question = None
    for facts in facts_in(transaction, body):
        text = " ".join(facts.texts)
        if facts.role == "user" and text.strip() and not facts.is_attachment(prefixes):
            question = text
            break
    return automatic_name(question, datetime.now())


def _add_row(edit: Edit, session: str, name: str, text_digest: str) -> None:
    """Add the row of a session that is made now."""
    index, before = opened(edit, INDEX)
    fields = {
        "createdAt": int(time.time() * 1000),
        "id": session,
        "name": name,
        "pinned": False,
        "textDigest": text_digest,
    }
    text = msgspec.Raw(_encode(fields, order="sorted"))
    entry = prepare([text], searched=False)[0]
    edit.splice(index, len(index), [], [add(edit.transaction, entry)], before=before)


def _rewrite_row(edit: Edit, row: Row, changes: dict[str, object]) -> None:
    """Set members of a session's row; unknown ones stay."""
    transaction = edit.transaction
    entry = history.entry_of(transaction, INDEX, row.entry)
    text = text_of(transaction, records.read(transaction, entry.record))
    new = prepare([msgspec.Raw(rows.with_members(text, changes))], searched=False)[0]
    history.update(edit, INDEX, entry, new)


def known(transaction: Transaction, session: str) -> Row:
    """Return the row of a session; ``NotFoundError`` if there is none.

    ``ConflictError`` if ``savedSessions`` is no array.
    """
    row = rows.find(transaction, session) if session else None
    if row is None:
        open_list(transaction, INDEX)
        raise NotFoundError(
            f"There is no session {session[:64]!r}.", next="sessions.list tells which there are"
        )
    return row


def body_of(transaction: Transaction, session: str) -> StoredList:
    """Return the body of a session; ``NotFoundError`` if the session or its body is missing."""
    known(transaction, session)
    body = open_list(transaction, BODY + session)
    if body is None:
        raise NotFoundError(
            f"The body of the session {session[:64]!r} is missing.",
            next="bring it back with sessions.restore or from a backup, or delete the session",
        )
    return body


def load(
    edit: Edit, session: str, prefixes: Sequence[str], *, save_current: bool
) -> tuple[int, str | None]:
    """Put a session in the place of the history; return its length and where the history went.

    ``save_current``: save a history that is not empty before, into the session that is active, or
    into a new one.
    """
    transaction = edit.transaction
    body_of(transaction, session)
    saved = None
    if save_current:
        saved = save(edit, history.active(transaction) or None, None, prefixes)
    # Not before: the history may be this session's and the newer of the two, and as the newest
    # snapshot of the conversation it is the one that keeps its word.
    body = body_of(transaction, session)
    target, _ = _copy(edit, body, HISTORY)
    history.make_live(edit, body.header.word)
    history.set_active(edit, session)
    return len(target), saved


def append(edit: Edit, session: str, new: Sequence[NewEntry]) -> history.Appended:
    """Add entries to the body of a session."""
    transaction = edit.transaction
    row = known(transaction, session)
    body_of(transaction, session)
    appended = history.append(edit, BODY + session, new)
    before = _present_digest(transaction, row)
    if before is None:  # nobody wrote one; that of the new entries alone would not be the body's
        refresh_digest(edit, session)
        return appended
    after = digest((one.facts for one in new), before)
    if after != before:
        _rewrite_row(edit, row, {"textDigest": after})
    return appended


def refresh_digest(edit: Edit, session: str) -> None:
    """Bring a session's ``textDigest`` in line with its body, if there is a row."""
    transaction = edit.transaction
    row = rows.find(transaction, session)
    if row is not None:
        body = body_of(transaction, session)
        _rewrite_row(edit, row, {"textDigest": digest(facts_in(transaction, body))})


def add_session(
    edit: Edit, name: str, entries: Sequence[NewEntry], word: str
) -> tuple[str, list[int]]:
    """Make a session of entries; return its id and theirs. ``word``: the conversation it is."""
    transaction = edit.transaction
    session = str(uuid.uuid4())
    ids, _ = history.append(edit, BODY + session, entries)
    body = open_list(transaction, BODY + session)
    assert body is not None
    words.give(transaction, body, word)
    _add_row(edit, session, name, digest(one.facts for one in entries))
    return session, ids


def rename(edit: Edit, session: str, name: str) -> None:
    """Give a session another name, which may be empty."""
    _rewrite_row(edit, known(edit.transaction, session), {"name": cut_name(name)})


def pin(edit: Edit, session: str, *, pinned: bool) -> None:
    """Pin a session, or take that back."""
    _rewrite_row(edit, known(edit.transaction, session), {"pinned": pinned})


def delete(edit: Edit, session: str) -> None:
    """Remove a session: its row, and all others that a writer gave the same id, and its body."""
    transaction = edit.transaction
    row = known(transaction, session)
    index = open_list(transaction, INDEX)
    assert index is not None
    entries = [history.entry_of(transaction, INDEX, row.entry)]
    if row.rows > 1:
        entries = [entry for entry in index.entries() if _is_row_of(transaction, entry, session)]
    for entry in reversed(entries):
        edit.splice(index, index.index_of(entry), [entry], [])
    body = open_list(transaction, BODY + session)
    if body is not None:
        edit.drop(body)


def _is_row_of(transaction: Transaction, entry: Entry, session: str) -> bool:
    row = rows.of_record(transaction, entry.id, entry.record)
    return row is not None and row.id == session


def clear(edit: Edit) -> None:
    """Remove all sessions."""
    transaction = edit.transaction
    index = open_list(transaction, INDEX)
    if index is None:
        return
    sessions = [row.id for row in rows.walk(transaction)]
    edit.splice(index, 0, list(index.entries()), [])
    for session in sessions:
        body = open_list(transaction, BODY + session)
        if body is not None:
            edit.drop(body)
