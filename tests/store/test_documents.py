"""Documents against a plain dict, and keys of any kind."""

from __future__ import annotations

import json
import shutil
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sidekeep.store import documents, verify
from sidekeep.store.environment import Store
from tests.store import helpers

_keys = st.one_of(
    st.sampled_from(["", "\0", "a", "a\0", "é", "k" * 400, "k" * 401, "k" * 402, "k" * 3000]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.builds(lambda tail: "é" * 200 + tail, st.text("xyz😀", max_size=3)),
)
_values = st.one_of(
    st.integers(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.builds(lambda n: "<" * n, st.integers(4000, 5000)),
    st.builds(lambda n: "QUJD" * n, st.sampled_from([1024, 2048])),
)


class Documents(RuleBasedStateMachine):
    """Puts and removals, with the file closed and opened again now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.model: dict[str, bytes] = {}
        self.store = self._open()

    def _open(self) -> Store:
        return Store(self.folder + "/s", extension="e", profile="p")

    @rule(key=_keys, value=_values)
    def put(self, key: str, value: object) -> None:
        text = json.dumps(value, ensure_ascii=False).encode()
        helpers.put(self.store, key, text)
        self.model[key] = text

    @rule(key=_keys)
    def remove(self, key: str) -> None:
        helpers.remove(self.store, key)
        self.model.pop(key, None)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self._open()

    @invariant()
    def same_as_model(self) -> None:
        found = helpers.everything(self.store)
        assert found == self.model
        assert list(found) == sorted(self.model, key=str.encode)
        with self.store.read() as transaction:
            assert verify.problems(transaction) == []

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


TestDocuments = Documents.TestCase
TestDocuments.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_an_equal_value_is_no_change(store: Store) -> None:
    helpers.put(store, "k", b'{"a":1}')
    with store.read() as transaction:
        before = transaction.head.numbers()
    helpers.put(store, "k", b'{"a":1}')
    with store.read() as transaction:
        assert transaction.head.numbers() == before


def test_a_revision_is_the_number_of_the_last_change(store: Store) -> None:
    helpers.put(store, "a", b"1")
    helpers.put(store, "b", b"1")
    helpers.put(store, "a", b"2")
    with store.read() as transaction:
        found = {d.key: d.revision for d in documents.walk(transaction)}
    assert found == {"a": 3, "b": 2}


@pytest.mark.parametrize("size", [1, 5000, 3_000_000])
def test_a_failed_call_leaves_no_trace_and_the_others_stand(store: Store, size: int) -> None:
    from sidekeep.store import journal, rope

    value = rope.build(json.dumps("x" * size).encode())

    def job(transaction: object) -> None:
        from sidekeep.store.transaction import Transaction

        assert isinstance(transaction, Transaction)
        calls = []
        for key in ("a", "fails", "b"):
            try:
                with transaction.nested():
                    revision = journal.next_seq(transaction)
                    made = documents.put(transaction, key, value, revision)
                    if key == "fails":
                        raise KeyError(key)
            except KeyError:
                continue
            assert made is not None
            calls.append(journal.Call(revision, [made]))
        journal.append(transaction, calls)

    store.write(job)
    assert list(helpers.everything(store)) == ["a", "b"]
