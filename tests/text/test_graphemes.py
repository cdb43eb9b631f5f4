"""Text is cut between what people see as characters, within UTF-16 units or code points."""

from __future__ import annotations

import unicodedata

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.text.excerpts import graphemes
from sidekeep.text.graphemes import (
    boundary_after,
    boundary_before,
    cut,
    first_codepoints,
    is_boundary,
    units_of,
)
from tests.text.alphabets import SAMPLES, anything, mixed

FAMILY = "👩‍👩‍👧‍👦"
FLAGS = "🇩🇪🇫🇷🇯🇵"


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("text", SAMPLES)
def test_graphemes_are_those_that_the_standard_names(text: str) -> None:
    assert list(graphemes(text)) == regex.findall(r"\X", text)


@settings(deadline=None)
@given(mixed)
def test_also_in_any_order_no_boundary_is_invented(text: str) -> None:
    # The other way round is not asked for: where the standard cuts after a joiner that joins
    # nothing, or within Indic letters that are no consonants, it does no harm to hold together.
    ends = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    assert {index for index in range(len(text) + 1) if is_boundary(text, index)} <= ends


def test_every_mark_belongs_to_the_letter_before_it() -> None:
    apart = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code))[0] == "M" and is_boundary("x" + chr(code), 1)
    ]
    assert apart == []


def test_letters_and_controls_stand_for_themselves() -> None:
    together = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in {"Lu", "Ll", "Nd", "Po", "Zs", "Cc", "Cs"}
        and not is_boundary("x" + chr(code), 1)
    ]
    assert together == []


@pytest.mark.parametrize(
    ("text", "room", "prefix"),
    [
        ("", 5, ""),
        ("abc", 5, "abc"),
        ("abcdef", 5, "abcde"),
        ("aé" + "e\u0301", 3, "aé"),
        ("ab\r\ncd", 3, "ab"),
        ("😀😀😀", 5, "😀😀"),
        ("a👍🏽", 4, "a"),
        ("a❤️b", 2, "a"),
        (FLAGS, 7, "🇩🇪"),
        (FLAGS, 8, "🇩🇪🇫🇷"),
        ("a" + FAMILY + "b", 11, "a"),
        ("a" + FAMILY + "b", 12, "a" + FAMILY),
        ("한국어", 2, "한국"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", 5, "\u1112\u1161\u11ab"),
        ("น้ำใจ", 3, "น้ำ"),
        (FAMILY, 7, "👩‍👩"),  # not even the first grapheme has room: by code points
        ("😀", 1, ""),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_within_utf16_units(text: str, room: int, prefix: str) -> None:
    assert cut(text, room).removesuffix("\u200d") == prefix


@settings(deadline=None)
@given(anything, st.integers(0, 100))
def test_a_cut_text_is_the_longest_prefix_that_ends_between_graphemes(text: str, room: int) -> None:
    prefix = cut(text, room)
    assert text.startswith(prefix)
    assert units(prefix) <= room
    longer = [index for index in range(len(prefix) + 1, len(text) + 1) if is_boundary(text, index)]
    assert all(units(text[:index]) > room for index in longer)
    if not is_boundary(text, len(prefix)):
        assert boundary_before(text, len(prefix)) == 0
        assert units(text[: len(prefix) + 1]) > room


@settings(deadline=None)
@given(anything, st.integers(0, 60))
def test_the_same_holds_for_code_points(text: str, count: int) -> None:
    prefix = first_codepoints(text, count)
    assert text.startswith(prefix)
    first = boundary_after(text, min(1, len(text)))
    if first > count:
        assert len(prefix) == count
    else:
        assert len(prefix) == boundary_before(text, min(count, len(text)))


@settings(deadline=None)
@given(anything)
def test_a_length_is_that_of_utf16(text: str) -> None:
    assert units_of(text) == units(text)
