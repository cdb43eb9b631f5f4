"""Pictures stand behind the line that names them, each once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.requests.interleave import in_number_order, interleave, numbers

PARTS = [
    pytest.param("text", [], ["text"], id="no pictures"),
    pytest.param("text", [1, 2], ["text", 1, 2], id="no anchors"),
    pytest.param("a\n[图1]\nb", [1], ["a\n[图1]", 1, "b"], id="anchor in a line of its own"),
    pytest.param("x\n[图2] y", [1, 2], ["x\n[图2] y", 2, 1], id="only the second is named"),
    pytest.param("[图1]\n[图1]", [1], ["[图1]", 1, "[图1]"], id="second mention is plain text"),
    pytest.param("[图2] [图1]\nz", [1, 2], ["[图2] [图1]", 2, 1, "z"], id="two in a line"),
    pytest.param("[图3] [图0]", [1], ["[图3] [图0]", 1], id="out of range is plain text"),
    pytest.param("a [图1]\n \n", [1], ["a [图1]", 1], id="a blank rest is left out"),
    pytest.param("", [1], ["", 1], id="no text at all"),
    pytest.param("\n", [], ["\n"], id="blank text without pictures"),
]


@pytest.mark.parametrize(("text", "images", "parts"), PARTS)
def test_each_picture_follows_its_line(
    text: str, images: list[int], parts: list[str | int]
) -> None:
    assert interleave(text, images) == parts


def test_anchors_count_only_behind_the_header() -> None:
    text = "Title: [图1]\n---\n\nsee [图1]\nend"
    assert interleave(text, [1], start=text.index("see")) == [
        "Title: [图1]\n---\n\nsee [图1]",
        1,
        "end",
    ]


anchored = st.lists(
    st.sampled_from(["[图1]", "[图2]", "[图3]", "[图9]", "[图0]", "[图x]", "a", " ", "\n", "语"]),
    max_size=30,
).map("".join)


@settings(deadline=None)
@given(anchored, st.integers(0, 4))
def test_all_text_stays_and_each_picture_comes_once(text: str, count: int) -> None:
    parts = interleave(text, list(range(count)))
    assert sorted(part for part in parts if isinstance(part, int)) == list(range(count))
    joined = "\n".join(part for part in parts if isinstance(part, str))
    assert text.startswith(joined)
    assert not text[len(joined) :].strip()


@settings(deadline=None)
@given(anchored, st.integers(0, 4))
def test_numbers_are_found_again(text: str, count: int) -> None:
    parts = interleave(text, list(range(1, count + 1)))
    only_texts = [part if isinstance(part, str) else None for part in parts]
    images = [part for part in parts if isinstance(part, int)]
    assert numbers(only_texts) == images
    assert in_number_order(only_texts, images) == list(range(1, count + 1))
    again = interleave(text, in_number_order(only_texts, images))
    assert again == parts
