"""Conversations against plain lists: ids, order, copies, journal, references."""

from __future__ import annotations

import shutil
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sidekeep.errors import NotFoundError
from sidekeep.store import conversations, journal, records, rope, verify
from sidekeep.store.environment import Store
from sidekeep.store.journal import AnyChange, Splice
from sidekeep.store.transaction import Transaction
from tests.store import helpers

_names = st.sampled_from(["one", "two", "three"])
_entries = st.lists(st.integers(0, 999), min_size=1, max_size=4)


def _text(number: int) -> bytes:
    # Some entries carry a long string, so that blobs are counted too.
    return b'{"n":%d,"s":"%b"}' % (number, b"QUJD" * (2000 if number % 7 == 0 else 1))


class Conversations(RuleBasedStateMachine):
    """Every change of three conversations, and a replay of the journal beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.store = Store(self.folder + "/s", extension="e", profile="p")
        self.model: dict[str, list[tuple[int, bytes]]] = {"one": [], "two": [], "three": []}
        self.given: dict[str, int] = dict.fromkeys(self.model, 0)
        self.numbers: dict[int, str] = {}
        for name in self.model:
            self.numbers[self._create(name)] = name
        self.replayed: dict[str, list[tuple[int, bytes]]] = {name: [] for name in self.model}
        self.heard = 0

    def _create(self, name: str) -> int:
        return self.store.write(lambda t: conversations.create(t, name)).number

    @rule(name=_names, numbers=_entries)
    def append(self, name: str, numbers: list[int]) -> None:
        values = [rope.build(_text(number)) for number in numbers]

        def job(transaction: Transaction, revision: int) -> list[AnyChange]:
            return [conversations.append(transaction, name, values, revision)]

        helpers.change(self.store, job)
        for number in numbers:
            self.given[name] += 1
            self.model[name].append((self.given[name], _text(number)))

    @rule(name=_names, where=st.integers(0, 30), number=st.integers(0, 999))
    def replace(self, name: str, where: int, number: int) -> None:
        if not self.model[name]:
            return
        where %= len(self.model[name])
        identity = self.model[name][where][0]
        value = rope.build(_text(number))

        def job(transaction: Transaction, revision: int) -> list[AnyChange]:
            conversation = conversations.find(transaction, name)
            entry = conversations.locate(transaction, conversation, identity)
            return [conversations.replace(transaction, name, entry, value, revision)]

        (change,) = helpers.change(self.store, job)
        assert isinstance(change, Splice)
        assert change.at == where
        self.model[name][where] = (identity, _text(number))

    @rule(name=_names, start=st.integers(0, 30), count=st.integers(1, 5))
    def remove(self, name: str, start: int, count: int) -> None:
        if not self.model[name]:
            return
        start %= len(self.model[name])
        gone = self.model[name][start : start + count]

        def job(transaction: Transaction, revision: int) -> list[AnyChange]:
            conversation = conversations.find(transaction, name)
            entries = [conversations.locate(transaction, conversation, i) for i, _ in gone]
            return [conversations.remove(transaction, name, entries, revision)]

        helpers.change(self.store, job)
        del self.model[name][start : start + count]

    @rule(source=_names, goal=_names)
    def copy(self, source: str, goal: str) -> None:
        if source == goal:
            return

        def job(transaction: Transaction, revision: int) -> list[AnyChange]:
            return [conversations.copy(transaction, source, goal, revision)]

        helpers.change(self.store, job)
        self.model[goal] = list(self.model[source])
        self.given[goal] = max(self.given[goal], self.given[source])

    @invariant()
    def same_as_model(self) -> None:
        with self.store.read() as transaction:
            for name, expected in self.model.items():
                conversation = conversations.find(transaction, name)
                found = [
                    (e.id, helpers.text_of(transaction, records.read(transaction, e.record)))
                    for e in conversations.entries(transaction, conversation)
                ]
                assert found == expected
                assert conversation.length == len(expected)
                assert len({identity for identity, _ in found}) == len(found)
            self._replay(transaction)
            assert verify.problems(transaction) == []

    def _replay(self, transaction: Transaction) -> None:
        """Follow the journal from what was last heard, as a listener would."""
        for call in journal.since(transaction, self.heard):
            self.heard = call.seq
            for change in call.changes:
                assert isinstance(change, Splice)
                entries = self.replayed[self.numbers[change.conversation]]
                old = entries[change.at : change.at + len(change.removed)]
                assert [identity for identity, _ in old] == [i for i, _ in change.removed]
                entries[change.at : change.at + len(change.removed)] = [
                    (identity, helpers.text_of(transaction, records.read(transaction, number)))
                    for identity, number in change.inserted
                ]
        assert self.replayed == self.model

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


TestConversations = Conversations.TestCase
TestConversations.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_appending_writes_one_entry_row_whatever_the_length(store: Store) -> None:
    def many(transaction: Transaction, revision: int) -> list[AnyChange]:
        conversations.create(transaction, "c")
        values = [rope.build(b"%d" % n) for n in range(5000)]
        return [conversations.append(transaction, "c", values, revision)]

    def one(transaction: Transaction, revision: int) -> list[AnyChange]:
        writes: list[bytes] = []
        put = Transaction.put

        class Counted(Transaction):
            __slots__ = ()

            def put(self, table: bytes, key: bytes, row: bytes | memoryview) -> None:
                writes.append(table)
                put(self, table, key, row)

        transaction.__class__ = Counted
        splice = conversations.append(transaction, "c", [rope.build(b'"new"')], revision)
        assert sorted(writes) == [b"e", b"r", b"v"]
        assert splice.at == 5000
        transaction.__class__ = Transaction
        return [splice]

    helpers.change(store, many)
    helpers.change(store, one)


def test_a_copy_adds_no_content(store: Store) -> None:
    def make(transaction: Transaction, revision: int) -> list[AnyChange]:
        conversations.create(transaction, "live")
        conversations.create(transaction, "saved")
        shot = rope.build(b'"' + b"QUJD" * 100_000 + b'"')
        return [conversations.append(transaction, "live", [shot] * 3, revision)]

    helpers.change(store, make)
    with store.read() as transaction:
        before = (transaction.head.records, transaction.head.blob_bytes)

    def copy(transaction: Transaction, revision: int) -> list[AnyChange]:
        return [conversations.copy(transaction, "live", "saved", revision)]

    helpers.change(store, copy)
    with store.read() as transaction:
        assert (transaction.head.records, transaction.head.blob_bytes) == before


def test_reordered_entries_are_still_found(store: Store) -> None:
    def make(transaction: Transaction, revision: int) -> list[AnyChange]:
        conversations.create(transaction, "c")
        values = [rope.build(b"%d" % n) for n in range(4)]
        return [conversations.append(transaction, "c", values, revision, ids=[5, 2, 9, 1])]

    helpers.change(store, make)
    with store.read() as transaction:
        conversation = conversations.find(transaction, "c")
        assert not conversation.ordered
        for index, identity in enumerate([5, 2, 9, 1]):
            entry = conversations.locate(transaction, conversation, identity)
            assert conversations.index_of(transaction, conversation, entry) == index
        with pytest.raises(NotFoundError):
            conversations.locate(transaction, conversation, 3)


def test_an_unknown_conversation_is_an_error(store: Store) -> None:
    with store.read() as transaction, pytest.raises(NotFoundError):
        conversations.find(transaction, "nobody")


def test_a_new_store_has_a_live_conversation(store: Store) -> None:
    with store.read() as transaction:
        name = store.live_conversation(transaction)
        assert conversations.find(transaction, name).length == 0
