"""Cutting and joining messages follows the rules of the protocol page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import PartError, PartJoiner, parse_strict, split_message
from tests.harness.parts import pieces, to_json

# Characters whose JSON text has every length: 1, 2 and 6 bytes escaped; 1, 2, 3 and 4 raw.
TEXT = st.text(st.sampled_from('a\\"\n\x00é中😀/'), max_size=200)


def join(bodies: list[bytes]) -> Any:
    joiner = PartJoiner()
    results = [joiner.add(parse_strict(body), body) for body in bodies]
    assert all(result is None for result in results[:-1])
    assert joiner.unfinished == []
    return results[-1]


@given(TEXT, st.booleans(), st.integers(12, 40))
def test_pieces_are_strings_of_their_own_and_concatenate(
    value: str, ascii_only: bool, limit: int
) -> None:
    text = to_json(value, ascii_only=ascii_only)[1:-1]
    cut = pieces(text, limit)
    assert b"".join(cut) == text
    assert all(0 < len(piece) <= limit for piece in cut) or cut == [b""]
    # Strict parsing refuses a split escape, a split sequence and half of a pair.
    assert "".join(parse_strict(b'"' + piece + b'"') for piece in cut) == value


@given(st.lists(TEXT, min_size=1, max_size=3), st.booleans())
def test_message_in_parts_comes_back_equal(units: list[str], ascii_only: bool) -> None:
    values = [unit * 700 for unit in units]
    message = {"id": 1, "x": values, "é": {"deep": [0, "b" * 300_000]}}
    assert join(split_message(message, 1, ascii_only=ascii_only)) == message


def test_parts_look_as_the_page_describes() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": {"items": {"shot": "s" * 300_000}}}
    frames = [json.loads(body) for body in split_message(message, 7)]
    assert [frame["part"] for frame in frames] == [
        {"of": 7, "i": 0, "last": True, "holes": [["result", "items", "shot"]]},
        {"of": 7, "hole": 0, "i": 1, "last": False},
        {"of": 7, "hole": 0, "i": 2, "last": True},
    ]
    assert frames[0]["text"] == '{"jsonrpc":"2.0","id":1,"result":{"items":{"shot":""}}}'
    assert frames[1]["s"] + frames[2]["s"] == "s" * 300_000


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda parts: parts[1:], "is due"),
        (lambda parts: [parts[0], parts[2]], "is due"),
        (lambda parts: [parts[0], parts[0]], "is due"),
        (lambda parts: [parts[0].replace(b"shot", b"shut"), *parts[1:]], "KeyError"),
        (lambda parts: [*parts, parts[0]], "begins after"),
        (lambda parts: [parts[0], parts[1].replace(b'"hole":0', b'"hole":1')], "hole 0 is due"),
    ],
)
def test_broken_parts_are_refused(change: Any, wanted: str) -> None:
    parts = split_message({"shot": "s" * 300_000}, 1)
    if wanted == "KeyError":
        parts[0] = parts[0].replace(b'["shot"]', b'["shut"]')
        with pytest.raises(KeyError):
            join(parts)
        return
    joiner = PartJoiner()
    with pytest.raises(PartError, match=wanted):
        for body in change(parts):
            joiner.add(parse_strict(body), body)


def test_small_message_or_small_string_in_parts_is_refused() -> None:
    with pytest.raises(PartError, match="came in parts"):
        join(split_message({"a": 1}, 1))
    text = to_json({"a": "", "b": ["x" * 60_000] * 5}).decode()
    bodies = [
        to_json(
            {"part": {"of": 1, "i": 0, "last": False, "holes": [["a"]]}, "text": text[:200_000]}
        ),
        to_json({"part": {"of": 1, "i": 1, "last": True}, "text": text[200_000:]}),
        to_json({"part": {"of": 1, "hole": 0, "i": 2, "last": True}, "s": "short"}),
    ]
    with pytest.raises(PartError, match="was cut out"):
        join(bodies)
