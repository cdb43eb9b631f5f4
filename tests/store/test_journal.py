"""The journal tells what changed, in order, and is bounded."""

from __future__ import annotations

import base64
import os

import pytest

from sidekeep.store import documents, journal, records
from sidekeep.store.documents import Change
from sidekeep.store.environment import Store
from sidekeep.store.journal import Call
from tests.store import helpers


def _calls(store: Store, since: int = 0) -> list[tuple[int, str, bytes | None, bytes | None]]:
    """Return (seq, key, old text, new text) of every document's change after ``since``."""
    told = []
    with store.read() as transaction:

        def text(number: int) -> bytes | None:
            if not number:
                return None
            return helpers.text_of(transaction, records.read(transaction, number))

        for call in journal.since(transaction, since):
            for change in call.changes:
                assert isinstance(change, Change)
                told.append((call.seq, change.key, text(change.before), text(change.after)))
    return told


def test_old_and_new_values_can_be_told_after_further_changes(store: Store) -> None:
    big = b'"' + base64.b64encode(os.urandom(30_000)) + b'"'
    helpers.put(store, "a", b"1")
    helpers.put(store, "a", big)
    helpers.remove(store, "a")
    assert _calls(store) == [(1, "a", None, b"1"), (2, "a", b"1", big), (3, "a", big, None)]
    assert _calls(store, since=2) == [(3, "a", big, None)]
    assert _calls(store, since=3) == []


def test_calls_of_one_frame_have_numbers_of_their_own_in_one_row(store: Store) -> None:
    from sidekeep.store import rope
    from sidekeep.store.transaction import Transaction

    def job(transaction: Transaction) -> None:
        calls = []
        for key in "abc":
            revision = journal.next_seq(transaction)
            made = documents.put(transaction, key, rope.build(b"1"), revision)
            assert made is not None
            calls.append(Call(revision, [made]))
        journal.append(transaction, calls)

    store.write(job)
    assert [told[0] for told in _calls(store)] == [1, 2, 3]
    assert [told[0] for told in _calls(store, since=1)] == [2, 3]
    with store.read() as transaction:
        assert transaction.head.journal_rows == 1
        assert journal.first(transaction) == 1


def test_old_rows_go_by_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_ROWS", 10)
    for number in range(40):
        helpers.put(store, "k", b"%d" % number)
    told = _calls(store)
    assert [one[0] for one in told] == list(range(31, 41))
    with store.read() as transaction:
        assert journal.first(transaction) == 31


def test_old_rows_go_by_what_only_they_still_hold(store: Store) -> None:
    for _ in range(12):
        helpers.put(store, "k", b'"' + base64.b64encode(os.urandom(600_000)) + b'"')
    with store.read() as transaction:
        head = transaction.head
        assert head.journal_weight <= journal.MOST_WEIGHT
        assert head.blob_bytes <= journal.MOST_WEIGHT + 2 * 600_000


def test_the_newest_row_stays_whatever_it_weighs(store: Store) -> None:
    big = b'"' + base64.b64encode(os.urandom(4_000_000)) + b'"'
    helpers.put(store, "k", big)
    helpers.put(store, "k", b"0")
    assert _calls(store, since=1) == [(2, "k", big, b"0")]


def test_a_picture_that_something_else_holds_does_not_weigh(store: Store) -> None:
    url = b'"' + base64.b64encode(os.urandom(1_500_000)) + b'"'
    helpers.put(store, "keeper", url)
    for number in range(20):
        helpers.put(store, "k", b"[%d,%b]" % (number, url))
    assert len(_calls(store)) == 21
