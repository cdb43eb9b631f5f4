"""A hit is shown in the text as it was written, in about a hundred characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.text.excerpts import excerpt, find, graphemes
from sidekeep.text.fold import folded
from sidekeep.text.graphemes import is_boundary
from tests.text.alphabets import anything, sensible
from tests.text.test_fold import FORMS


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("a short text", "SHORT", "a short text"),
        ("  white \n\n space\t here ", "space", "white space here"),
        ("Die STRASSE ist lang", "straße", "Die STRASSE ist lang"),
        ("ﬁnding ｶﾞ", "ガ", "ﬁnding ｶﾞ"),
        ("one", "two", None),
        ("one", "  ", None),
        ("one", "", None),
        ("", "one", None),
        (" x ", "  x  ", "x"),
    ],
)
def test_a_short_text_is_shown_whole(text: str, query: str, shown: str | None) -> None:
    assert excerpt(text, query) == shown


def test_a_long_text_is_shown_around_the_hit() -> None:
    before, after = "before " * 500, " after" * 500
    shown = excerpt(before + "Needle" + after, "needle")
    assert shown is not None
    assert shown.startswith("…") and shown.endswith("…")
    assert shown.index("Needle") == 31
    assert len(shown) == 102
    at_the_start = excerpt("Needle" + after, "needle")
    assert at_the_start is not None
    assert at_the_start.startswith("Needle after") and len(at_the_start) == 101
    at_the_end = excerpt(before + "Needle", "needle")
    assert at_the_end is not None
    assert at_the_end.endswith("before Needle") and len(at_the_end) == 101


def test_the_first_place_is_shown_also_far_behind_in_text_that_folding_makes_longer() -> None:
    text = "ﬃ ㎏ İ ﷺ " * 5000 + "das Ziel ist da" + " ﬃ" * 5000
    shown = excerpt(text, "ZIEL")
    assert shown is not None
    assert "das Ziel ist da" in shown


def test_long_runs_of_white_space_leave_the_words_around() -> None:
    shown = excerpt("left" + " " * 200 + "needle" + "\n" * 200 + "right", "needle")
    assert shown == "left needle right"


def test_a_hit_that_is_too_long_is_cut_at_its_end() -> None:
    shown = excerpt("a " + "b" * 500 + " c", "b" * 500)
    assert shown == "…" + "b" * 100 + "…"


def test_emoji_are_not_broken() -> None:
    family = "👩‍👩‍👧‍👦"
    shown = excerpt(family * 60 + "needle" + family * 60, "needle")
    assert shown is not None
    assert set(graphemes(shown)) <= {family, "…", *"needle"}
    flags = excerpt("🇩🇪" * 20_000 + "needle", "needle")
    assert flags is not None
    assert set(graphemes(flags)) <= {"🇩🇪", "…", *"needle"}


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(FORMS)))
def test_every_part_of_a_text_is_in_its_excerpt(data: st.DataObject, form: str) -> None:
    text = data.draw(sensible)
    parts = list(graphemes(text))
    start = data.draw(st.integers(0, len(parts)))
    query = "".join(parts[start : data.draw(st.integers(start, min(len(parts), start + 60)))])
    query = FORMS[form](query).strip()
    shown = excerpt(text, query)
    if not query:
        assert shown is None
        return
    assert shown is not None
    if len(folded(query)) <= 60:
        assert plain(folded(query)) in plain(folded(shown))
    assert len(shown) <= 102
    assert shown.strip("…") in plain(text)


@settings(deadline=None)
@given(anything, anything)
def test_a_place_is_between_graphemes_and_holds_what_was_looked_for(text: str, query: str) -> None:
    wanted = folded(query[:3])
    place = find(text, wanted) if wanted else None
    assert (place is not None) == (bool(wanted) and wanted in folded(text))
    if place is not None:
        start, end = place
        assert wanted in folded(text[start:end])
        if not text.isascii():
            assert is_boundary(text, start) and is_boundary(text, end)
