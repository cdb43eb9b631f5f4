"""The maker of helpers that all tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sidekeep.helper.parent import Helper
from sidekeep.helper.previews import Answer

from .pictures import Preview, preview_of
from .waiting import TABLE, Make


@pytest.fixture
def make() -> Iterator[Make]:
    """Return a maker of helpers, all closed afterwards."""
    made: list[Helper] = []

    def make_one(kind: str = "work", *, seconds: float = 60.0, memory: int | None = None) -> Helper:
        made.append(Helper(kind, seconds=seconds, memory=memory, table=TABLE))
        return made[-1]

    yield make_one
    for helper in made:
        helper.close()


@pytest.fixture(scope="module")
def preview() -> Iterator[Preview]:
    """Return what a real helper answers to a picture: ``preview(data, edge=480)``."""
    helper = Helper("thumbnails", seconds=60, memory=1_073_741_824)

    def ask_for(data: bytes, edge: int = 480) -> Answer:
        return preview_of(helper, data, edge)

    yield ask_for
    helper.close()
