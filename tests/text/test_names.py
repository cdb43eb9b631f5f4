"""Names are cut, and made from the first question or the date."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.text.graphemes import is_boundary, units_of
from sidekeep.text.names import automatic_name, cut_name
from tests.text.alphabets import anything

NOW = datetime(2026, 3, 7, 4, 5, 59)


def test_a_name_has_at_most_80_units() -> None:
    assert cut_name("z" * 200) == "z" * 80
    assert cut_name("z" * 79 + "😀") == "z" * 79
    assert cut_name("z" * 78 + "😀") == "z" * 78 + "😀"
    assert cut_name("") == ""
    assert cut_name("  kept  as it is ") == "  kept  as it is "


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the capital of France?", "What is the capital of France?"),
        ("a" * 48, "a" * 48),
        ("a" * 49, "a" * 48 + "…"),
        ("  look\n\n at\tthis\u3000now ", "look at this now"),
        ("é" * 47 + "e\u0301", "é" * 47 + "…"),
        ("😀" * 40, "😀" * 40),
        ("😀" * 41, "😀" * 39 + "…"),  # a name has 80 units at most, also one that was made
        ("a" + "😀" * 60, "a" + "😀" * 39 + "…"),
        (None, "2026-03-07 04:05"),
        ("", "2026-03-07 04:05"),
        (" \n\t ", "2026-03-07 04:05"),
    ],
)
def test_a_name_is_made_from_the_first_question_or_the_date(
    question: str | None, name: str
) -> None:
    assert automatic_name(question, NOW) == name


@settings(deadline=None)
@given(st.one_of(st.none(), anything))
def test_a_name_that_is_made_fits_and_is_never_blank(question: str | None) -> None:
    name = automatic_name(question, NOW)
    assert name.strip()
    assert cut_name(name) == name
    assert "\n" not in name
    plain = " ".join((question or "").split())
    if plain and name != plain:
        start = name.removesuffix("…")
        assert plain.startswith(start)
        assert len(start) <= 48
        assert is_boundary(plain, len(start)) or is_boundary(plain, 0)
        assert units_of(name) <= 80
