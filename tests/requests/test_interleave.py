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


# Lines with an anchor each, in any order, and what follows them.
lines = st.lists(
    st.tuples(st.integers(1, 7), st.sampled_from(["", "\ntext"])),
    unique_by=lambda line: line[0],
)


@settings(deadline=None)
@given(lines, st.integers(0, 7), st.sets(st.integers(1, 7)))
def test_a_removed_picture_leaves_the_numbers_of_the_others(
    lines: list[tuple[int, str]], count: int, removed: set[int]
) -> None:
    own = {number: more for number, more in lines if number <= count}
    text = "\n".join(f"see [图{number}]{more}" for number, more in own.items())
    # One without an anchor that came to stand behind another's line could not be told from that.
    text += "\nend" if len(own) < count else ""
    parts = interleave(text, list(range(1, count + 1)))
    kept = [part for part in parts if part not in removed.intersection(own)]
    images = [part for part in kept if isinstance(part, int)]
    only_texts = [part if isinstance(part, str) else None for part in kept]
    assert numbers(only_texts) == images
    assert in_number_order(only_texts, images) == sorted(images)


EDITED = [
    pytest.param(["[图1]", "b\n[图2]", None, "c\n[图3]", None], [2, 3], id="the first removed"),
    pytest.param(["[图1]", "[图2]", "[图3]", None], [3], id="only the last is left"),
    pytest.param(["[图2]", None, "[图3]", None, "end"], [2, 3], id="with its anchor"),
    pytest.param(["[图1]", "[图2]", None, "[图3]", None, None], [2, 3, 4], id="one without anchor"),
    pytest.param(["[图2]", None, None, "more"], [2, 1], id="text was added"),
    pytest.param(["[图3]", None, None], [1, 2], id="nothing was removed"),
]


@pytest.mark.parametrize(("parts", "expected"), EDITED)
def test_numbers_of_an_edited_entry_are_those_of_its_anchors(
    parts: list[str | None], expected: list[int]
) -> None:
    assert numbers(parts) == expected
