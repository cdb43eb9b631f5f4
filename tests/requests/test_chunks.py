"""Long Markdown comes apart where it may, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.requests.chunks import BUDGET, WHOLE_FENCE, chunks, safe_cut
from sidekeep.text.graphemes import is_boundary, units_of

TABLE = "| A |\n|---|\n| 1 |"
PIECES = [
    pytest.param("", 12, [], id="no text"),
    pytest.param(" \n\n", 12, [], id="blank text"),
    pytest.param("short", 12, ["short"], id="short text"),
    pytest.param("aaaa\nbbbb\ncccc", 5, ["aaaa", "bbbb", "cccc"], id="a line and its end fit"),
    pytest.param("aa\nbb\ncc", 6, ["aa\nbb", "cc"], id="as many as fit"),
    pytest.param("```\na\n\nb\n```\nz", 4, ["```\na\n\nb\n```", "z"], id="a fence is whole"),
    pytest.param("```\n```\nq1\nq2", 8, ["```\n```", "q1\nq2"], id="an empty fence"),
    pytest.param("```\na\nb", 4, ["```\na\nb"], id="a fence without end"),
    pytest.param("~~~\na\n```\nb\n~~~\nz", 6, ["~~~\na\n```\nb\n~~~", "z"], id="tildes"),
    pytest.param("````\n```\n````\nz", 6, ["````\n```\n````", "z"], id="four backticks"),
    pytest.param("```a```\nb", 8, ["```a```", "b"], id="code within a line is no fence"),
    pytest.param(
        f"{TABLE}\nafter text here", 20, [TABLE, "after text here"], id="table, then text"
    ),
    pytest.param(f"{TABLE}\n\n{TABLE}", 20, [TABLE, TABLE], id="two tables"),
    pytest.param(
        f"{TABLE}\n| 2 |\n| 3 |", 24, [f"{TABLE}\n| 2 |", "| A |\n|---|\n| 3 |"], id="a cut table"
    ),
    pytest.param("| a |\n| b |\n| c |", 12, ["| a |\n| b |", "| c |"], id="rows without header"),
    pytest.param("a\n\n\nbbbbbb", 8, ["a", "bbbbbb"], id="blank lines at the end go"),
    pytest.param("aaaaaaaa\n\nbbb", 9, ["aaaaaaaa", "\nbbb"], id="blank lines before stay"),
    pytest.param("aaaa\n# h\nbbbb", 10, ["aaaa", "# h\nbbbb"], id="a heading goes with its text"),
    pytest.param("aaaa\n# h\n\nbbb", 11, ["aaaa", "# h\n\nbbb"], id="past a blank line"),
    pytest.param(
        "aaaa\n# h\nbbbbbbbb", 10, ["aaaa\n# h", "bbbbbbbb"], id="unless there is no room"
    ),
    pytest.param("# h\n## i\nbbbb", 10, ["# h\n## i", "bbbb"], id="never an empty piece"),
    pytest.param("One. Two. Three", 10, ["One. Two. ", "Three"], id="a long line by sentences"),
    pytest.param("aaa bbb ccc", 8, ["aaa bbb ", "ccc"], id="by words"),
    pytest.param("一二。三四五六", 5, ["一二。", "三四五六"], id="by sentences in Chinese"),
    pytest.param("a" * 9, 4, ["aaaa", "aaaa", "a"], id="by characters"),
    pytest.param("😀" * 3, 5, ["😀😀", "😀"], id="never within a character"),
    pytest.param(
        "```py\n" + "aa\n" * 40 + "```",
        20,
        ["```py\naa\naa\naa\n```"] * 13 + ["```py\naa\n```"],
        id="a very long fence",
    ),
]


@pytest.mark.parametrize(("text", "budget", "pieces"), PIECES)
def test_pieces(text: str, budget: int, pieces: list[str]) -> None:
    assert chunks(text, budget) == pieces


def test_a_piece_has_12000_characters_at_most() -> None:
    text = "word " * 60_000
    made = chunks(text)
    assert all(0 < len(piece) <= BUDGET == 12_000 for piece in made)
    assert "".join(made).split() == text.split()
    assert len(chunks("x" * 11_999 + "\n")) == 1


LINES = ["# h", "## i j", "", " ", "a", "a b c. d e", "语言。文字", "| a | b |", "|---|", "- x"]
markdown = st.lists(st.sampled_from([*LINES, "😀😀😀😀", "x" * 30, "e\u0301" * 9]), max_size=25)


@settings(deadline=None)
@given(markdown, st.integers(14, 60))
def test_all_text_stays_and_no_piece_is_too_long(lines: list[str], budget: int) -> None:
    made = chunks("\n".join(lines), budget)
    assert all(units_of(piece) <= budget and piece.strip() for piece in made)
    # What is said again is a table's header: leave all tables' lines out of the comparison.
    kept = "".join(line for line in lines if "|" not in line)
    shown = "".join(line for piece in made for line in piece.split("\n") if "|" not in line)
    assert "".join(shown.split()) == "".join(kept.split())
    if not any("|" in line for line in lines):
        assert all(is_boundary(piece, len(piece)) for piece in made)


fenced = st.lists(
    st.one_of(
        st.sampled_from(["# h", "", "a b c", "| a |", "|--|"]),
        st.lists(st.sampled_from(["", "x = 1", "# no heading", "| no row"]), max_size=6).map(
            lambda inner: "\n".join(["```", *inner, "```"])
        ),
    ),
    max_size=10,
)


@settings(deadline=None)
@given(fenced, st.integers(25, 90))
def test_fences_stay_whole(blocks: list[str], budget: int) -> None:
    made = chunks("\n".join(blocks), budget)
    whole = [block for block in blocks if block.startswith("```")]
    assert all(units_of(block) <= WHOLE_FENCE * budget for block in whole)
    assert all(any(block in piece for piece in made) for block in whole)
    assert sum(piece.count("```") for piece in made) == 2 * len(whole)


def test_the_same_text_gives_the_same_pieces_joined() -> None:
    text = "\n".join(f"line {number} of a page without tables" for number in range(2000))
    assert "\n".join(chunks(text)) == text


@pytest.mark.parametrize(
    ("text", "cap", "place"),
    [
        pytest.param("line one\nline two\nline three\n", 20, 17, id="the end of the second line"),
        pytest.param("line one\nline two\n", 17, 17, id="exactly there"),
        pytest.param("short", 99, 99, id="a text that is not longer"),
        pytest.param("a long line without an end", 5, 5, id="no line ends before"),
        pytest.param("a\n```\nb\nc\n```\nd", 8, 1, id="not within a fence"),
        pytest.param("a\n```\nb\n```\nd and more", 12, 11, id="behind a fence"),
        pytest.param("a\n| x |\n| y |\nd and more", 13, 1, id="not in a table"),
    ],
)
def test_a_text_may_be_cut_at_the_end_of_a_line(text: str, cap: int, place: int) -> None:
    assert safe_cut(text, cap) == place
