"""Text is found in any letter case, width and form, and only where it stands."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sidekeep.text.excerpts import graphemes
from sidekeep.text.fold import SEPARATOR, folded
from tests.text.alphabets import anything, mixed, sensible

WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "title case": str.title,
    "other case": str.swapcase,
    "composed": lambda text: unicodedata.normalize("NFC", text),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "wide": lambda text: text.translate(WIDE),
}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I was testing it", "est"),
        ("a test", "TEST"),
        ("我们昨天去了上海", "昨天"),
        ("昨日は東京へ行きました", "東京"),
        ("어제 서울에 갔습니다", "서울"),
        ("เมื่อวานไปกรุงเทพ", "ไป"),
        ("ＡＢＣ１２３", "abc123"),
        ("half ｶﾞｷﾞｸﾞ", "ガギグ"),
        ("ﾊﾟﾝ", "パン"),
        ("Straße", "STRASSE"),
        ("STRASSE", "straße"),
        ("ﬁne oﬃce", "FINE OFFICE"),
        ("İSTANBUL", "istanbul"),
        ("istanbul", "İSTANBUL"),
        ("ılık", "ILIK"),
        ("ΟΔΟΣ", "οδος"),
        ("ὀδός", "ΟΔΌΣ"[1:]),
        ("cafe\u0301", "CAFÉ"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("ㅋㅋㅏ", "ㅋ"),
        ("ㅎㅏ", "ﾾￂ"),
        ("여기 감사ㄳ", "감사"),
        ("㎏ and ①", "kg"),
        ("a👩‍👩‍👧b", "👩‍👩‍👧"),
        ("non\u00a0breaking", "non breaking"),
    ],
)
def test_what_reads_the_same_is_found(text: str, query: str) -> None:
    assert folded(query) in folded(text)


@pytest.mark.parametrize(
    ("text", "query"),
    [("resume", "résumé"), ("résumé", "resume"), ("한국", "하"), ("ガ", "カ"), ("a.c", "abc")],
)
def test_what_reads_differently_is_not_found(text: str, query: str) -> None:
    assert folded(query) not in folded(text)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(FORMS)))
def test_every_part_of_a_text_is_found_in_every_form(data: st.DataObject, form: str) -> None:
    text = data.draw(sensible)
    parts = list(graphemes(text))
    start = data.draw(st.integers(0, len(parts)))
    part = "".join(parts[start : data.draw(st.integers(start, len(parts)))])
    assert folded(FORMS[form](part)) in folded(
        FORMS[data.draw(st.sampled_from(sorted(FORMS)))](text)
    )


@settings(deadline=None)
@given(mixed)
@example("\u3131\u314f")
@example("\uffa1\uffc2")
@example("\uac00\u3133")
@example("\u3260\u314f")
def test_a_folded_text_is_its_folded_graphemes(text: str) -> None:
    assert folded(text) == "".join(map(folded, graphemes(text)))


@settings(deadline=None)
@given(anything)
@example("i\u0307\u0301\u0307")
@example("\u0345\u0301")
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)


def test_each_character_folds_alike_in_all_its_forms() -> None:
    differing = []
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in {"Cn", "Co", "Cs"}:
            continue
        once = folded(character)
        forms = {once, *(form(character) for form in FORMS.values())}
        forms |= {unicodedata.normalize(name, character) for name in ("NFKC", "NFKD")}
        if any(folded(form) != once for form in forms - {character}):
            differing.append(hex(code))
    assert differing == []


def test_separators_and_lone_surrogates_are_in_no_folded_text() -> None:
    everything = "".join(map(chr, range(0x20))) + "\ud800x\udfffé"
    for text in (everything, everything[:0x20], "plain"):
        result = folded(text)
        result.encode()
        assert min(result) >= "\t"
        assert SEPARATOR not in result
    assert folded("a\0b") == folded("A\0B")
    assert len(folded("a\0b")) == 3
