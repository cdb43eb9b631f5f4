"""Where JSON text may be cut, and where its strings are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidekeep import jsontext
from sidekeep.jsontext import PathError

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def _escaped(text: str, *, ascii_only: bool) -> bytes:
    return json.dumps(text, ensure_ascii=ascii_only).encode()[1:-1]


@given(_text, st.booleans(), st.integers(12, 60))
def test_pieces_cut_at_safe_places_are_strings_of_their_own(
    text: str, ascii_only: bool, limit: int
) -> None:
    rest = _escaped(text, ascii_only=ascii_only)
    decoded = ""
    while rest:
        place = jsontext.safe_cut(rest, limit)
        assert 0 < place <= limit
        piece = json.loads(b'"' + rest[:place] + b'"')
        piece.encode()  # half a surrogate pair would fail here
        decoded += piece
        rest = rest[place:]
    assert decoded == text


@given(st.integers(0, 40), st.integers(12, 40))
def test_runs_of_backslashes_are_never_cut_in_the_middle_of_an_escape(
    count: int, limit: int
) -> None:
    text = _escaped("\\" * count + "\n" + "😀" * 3, ascii_only=True)
    place = jsontext.safe_cut(text, limit)
    json.loads(b'"' + text[:place] + b'"').encode()


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | _text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_text, inner, max_size=4),
    max_leaves=12,
)


def _strings(value: object, path: jsontext.Path = ()) -> list[jsontext.Path]:
    if isinstance(value, str):
        return [path]
    if isinstance(value, list):
        return [p for i, inner in enumerate(value) for p in _strings(inner, (*path, i))]
    if isinstance(value, dict):
        return [p for k, inner in value.items() for p in _strings(inner, (*path, k))]
    return []


def _emptied(value: object, gone: set[jsontext.Path], path: jsontext.Path = ()) -> object:
    if isinstance(value, str):
        return "" if path in gone else value
    if isinstance(value, list):
        return [_emptied(inner, gone, (*path, i)) for i, inner in enumerate(value)]
    if isinstance(value, dict):
        return {k: _emptied(inner, gone, (*path, k)) for k, inner in value.items()}
    return value


@given(_values, st.data())
def test_strings_taken_out_by_path_can_be_put_back(value: object, data: st.DataObject) -> None:
    paths = _strings(value)
    gone = [path for path in paths if data.draw(st.booleans())]
    emptied = _emptied(value, set(gone))
    text = json.dumps(emptied, separators=(",", ":"), ensure_ascii=False).encode()
    pieces = jsontext.split_at(text, gone) if gone else [text]
    assert b"".join(pieces) == text
    assert len(pieces) == len(gone) + 1
    assert jsontext.paths_of(pieces) == gone


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (b'{"a":1}', [("a",)]),
        (b'{"a":"x"}', [("a",)]),
        (b'{"a":""}', [("b",)]),
        (b'{"a":""}', [("a", 0)]),
        (b'[""]', [(1,)]),
        (b'[""]', [(-1,)]),
        (b'[""]', [("0",)]),
        (b'["",""]', [(1,), (0,)]),
        (b'[""]', [(0,), (0,)]),
        (b'[[""]]', [(0,), (0, 0)]),
    ],
)
def test_a_path_that_fits_no_empty_string_is_refused(
    text: bytes, paths: list[jsontext.Path]
) -> None:
    with pytest.raises(PathError):
        jsontext.split_at(text, paths)


def test_keys_are_not_taken_for_long_strings() -> None:
    text = json.dumps({"k" * 50: "v" * 60, "b": ["w" * 40]}).encode()
    assert [text[a:b] for a, b in jsontext.long_strings(text, 45)] == [b"v" * 60]
