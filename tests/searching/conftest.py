"""Fixtures of the search's tests: a store in a temporary folder, checked whole at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sidekeep.store import verify
from sidekeep.store.environment import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a new store; after the test every count in it must be right."""
    opened = Store(str(tmp_path / "store"), extension="e", profile="p")
    yield opened
    with opened.read() as transaction:
        assert verify.problems(transaction) == []
    opened.close()
