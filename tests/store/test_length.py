"""A sound file may be shorter than its tree says; a truncated one is still told as damage."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from sidekeep.errors import DamagedError
from sidekeep.store import documents, journal, rope, verify
from sidekeep.store.damage import problem_of
from sidekeep.store.environment import Store
from sidekeep.store.journal import Call
from sidekeep.store.transaction import Transaction
from tests.store.helpers import put


def churn(store: Store, dice: random.Random) -> None:
    """Write, replace and remove some values of very different sizes in one transaction."""

    def job(transaction: Transaction) -> None:
        for _ in range(dice.randrange(1, 6)):
            revision = journal.next_seq(transaction)
            key = str(dice.randrange(8))
            if dice.random() < 0.6:
                size = dice.choice([10, 3_000, 20_000, 100_000])
                text = b'"' + dice.randbytes(size).hex().encode() + b'"'
                change = documents.put(transaction, key, rope.build(text), revision)
            else:
                change = documents.remove(transaction, key)
            if change is not None:
                journal.append(transaction, [Call(revision, [change])])
        journal.trim(transaction, keep=0)

    store.write(job)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Return the folder of a store."""
    return str(tmp_path / "store")


def opened(folder: str) -> Store:
    """Open the store."""
    return Store(folder, extension="e", profile="p")


def test_every_commit_leaves_a_file_as_long_as_it_says(folder: str, dice: random.Random) -> None:
    store = opened(folder)
    for _ in range(300):
        churn(store, dice)
        assert problem_of(store.path) is None
    store.close()


def test_a_writer_killed_before_it_could_lengthen_the_file_leaves_it_usable(
    folder: str, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = 0
    for number in range(60):
        with monkeypatch.context() as patch:
            patch.setattr(Store, "_complete", lambda _: None)
            store = opened(f"{folder}{number}")
            for _ in range(20):
                churn(store, dice)
                if problem_of(store.path) is not None:
                    short += 1
                    break
            path = store.path
            store.close()
        store = opened(f"{folder}{number}")
        with store.read() as transaction:
            assert verify.problems(transaction) == []
        assert problem_of(path) is None
        store.close()
        if short >= 3:
            break
    assert short, "this seed never made a short file"


def test_a_cut_file_is_damage_however_little_is_missing(folder: str, dice: random.Random) -> None:
    store = opened(folder)
    for _ in range(20):
        churn(store, dice)
    for number in range(20):  # so that half of the file cannot be free
        put(store, f"kept {number}", b'"' + dice.randbytes(100_000).hex().encode() + b'"')
    path = store.path
    used = store.used_bytes()  # behind it is a hole, which nobody needs
    store.close()
    whole = Path(path).read_bytes()[:used]
    refused = 0
    for pages in (1, 2, 5, 20, len(whole) // 4096 // 2):
        Path(path).write_bytes(whole[: -4096 * pages])
        try:
            store = opened(folder)
        except DamagedError:
            refused += 1
            assert os.path.getsize(path) == len(whole) - 4096 * pages
            continue
        # Only free pages were missing: everything is there.
        with store.read() as transaction:
            assert verify.problems(transaction) == []
        store.close()
    assert refused
