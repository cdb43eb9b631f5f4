"""What lists count of pictures that they share, whatever one call does to several of them."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.errors import InvalidParams
from sidekeep.model import history, restoring, views
from sidekeep.model.edit import Edit
from sidekeep.model.entries import NewEntry, prepare
from sidekeep.model.keys import BODY, HISTORY
from sidekeep.store import lists, records, trash, verify
from sidekeep.store.environment import Store
from sidekeep.store.journal import LIST, AnyChange
from sidekeep.store.lists import StoredList
from sidekeep.store.transaction import Transaction
from tests.conversations.chat import image, picture, user
from tests.store.helpers import change

KEYS = [HISTORY, *(BODY + name for name in "abc")]
PICTURES = [image(picture(seed, size=4_000 + seed)) for seed in range(3)]
SMALL = settings(max_examples=60, deadline=None)


def _entry(rng: random.Random) -> NewEntry:
    shots = rng.sample(PICTURES, rng.randrange(3)) + rng.sample(PICTURES, rng.randrange(2))
    return prepare([msgspec.Raw(msgspec.json.encode(user([*shots, rng.random()])))])[0]


def _copied(edit: Edit, source: StoredList, target: StoredList, before: int) -> None:
    """Put the entries of a list in the place of those of another, as saving does."""
    pairs = [(one.id, one.record) for one in source.entries()]
    for _, number in pairs:
        records.refer(edit.transaction, number, references=2)
    edit.splice(target, 0, list(target.entries()), pairs, before=before)


def _step(edit: Edit, rng: random.Random, held: dict[str, StoredList]) -> None:
    """Change one list, by the object that was opened when the call began if there is one."""
    key = rng.choice(KEYS)
    target = held.get(key)
    if target is None:
        target, before = views.opened(edit, key)
        edit.splice(target, 0, [], [], before=before)
        held[key] = target
    entries = list(target.entries())
    kind = rng.choice(["append", "amend", "same", "remove", "copy", "drop", "restore"])
    if kind == "append" or not entries:
        history.append(edit, key, [_entry(rng)])
    elif kind == "amend":
        chosen = rng.sample(entries, rng.randint(1, len(entries)))
        history.amend(edit, target, {one.id: _entry(rng) for one in chosen}, [])
    elif kind == "same":  # the entry wherever it lies, as condensing does
        identity = rng.choice(entries).id
        value: NewEntry | int = _entry(rng)
        for place in held.values():
            if (there := place.locate(identity)) is not None:
                history.amend(edit, place, {there.id: value}, [])
                value = history.entry_of(edit.transaction, place.key, identity).record
    elif kind == "remove":
        at = rng.randrange(len(entries))
        edit.splice(target, at, entries[at : at + rng.randint(1, 3)], [])
    elif kind == "copy":
        source = rng.choice([place for place in held.values() if place is not target] or [target])
        if source is not target:
            _copied(edit, source, target, LIST)
    elif kind == "restore":
        number, removal = next(trash.newest_first(edit.transaction), (0, None))
        if removal is not None:
            restoring.restore(edit, number, removal.parts)
    else:
        edit.drop(target)
        del held[key]


@SMALL
@given(st.integers(0, 2**32))
def test_calls_that_change_several_lists_keep_the_counts_of_all(seed: int) -> None:
    rng = random.Random(seed)

    def call(transaction: Transaction, revision: int) -> list[AnyChange]:
        edit = Edit(transaction, revision, "test")
        held = {key: found for key in KEYS if (found := lists.find(transaction, key)) is not None}
        for _ in range(rng.randint(1, 6)):
            _step(edit, rng, held)
        return edit.finish()[0]

    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder) / "extension" / "profile"), extension="e", profile="p")
        for _ in range(8):
            change(store, call)
            with store.read() as transaction:
                assert verify.problems(transaction) == []
        store.close()


def test_a_call_that_is_given_up_leaves_no_figures_behind(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "extension" / "profile"), extension="e", profile="p")
    rng = random.Random(1)

    def call(transaction: Transaction, revision: int) -> list[AnyChange]:
        edit = Edit(transaction, revision, "test")
        history.append(edit, HISTORY, [_entry(rng)])
        return edit.finish()[0]

    def frame(transaction: Transaction, revision: int) -> list[AnyChange]:
        changes = call(transaction, revision)
        try:
            with transaction.nested():
                call(transaction, revision)
                raise InvalidParams("no")
        except InvalidParams:
            pass
        found = lists.find(transaction, HISTORY)
        assert found is not None
        assert len(found) == 1
        return changes

    change(store, frame)
    with store.read() as transaction:
        assert verify.problems(transaction) == []
    store.close()
