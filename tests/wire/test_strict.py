"""What is strict JSON passes, whatever its writing; what is not is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidekeep.errors import ParseError
from sidekeep.wire import faulty, strict

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.one_of(
    st.integers(),
    st.integers(-(10**308), 10**308),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), numbers, strings, st.sampled_from(['"]', "a:b", "\\", "{"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(strings, inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values, st.booleans(), st.sampled_from([None, 0, 2]))
def test_every_value_passes_in_every_writing(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False).encode()
    assert strict.check_whole(text) == value
    strict.check(text)


REFUSED = {
    "nothing": b"",
    "space": b"  ",
    "NaN": b'{"a":NaN}',
    "Infinity": b"[-Infinity]",
    "number beyond a double": b"[1e999]",
    "negative number beyond a double": b"[-1e400]",
    "integer of 400 digits": b"[" + b"9" * 400 + b"]",
    "negative integer of 400 digits": b'{"a":-' + b"1" * 400 + b"}",
    "integer of 5,000 digits": b"[" + b"1" * 5000 + b"]",
    "first integer that rounds to infinity": b"[%d]" % (2**1024 - 2**970),
    "key twice": b'{"a":1,"a":1}',
    "key twice, once escaped": b'{"a":1,"\\u0061":2}',
    "key twice deep inside": b'[{"b":[{"a:":1,"a:":"\\"}"}]}]',
    "empty key twice": b'{"":1,"":2}',
    "half a surrogate pair": b'"\\ud83d"',
    "other half": b'"\\ude00"',
    "half in a key": b'{"\\ud83d":1}',
    "pair in the wrong order": b'"\\ude00\\ud83d"',
    "surrogate in UTF-8": b'"\xed\xa0\x80"',
    "invalid UTF-8": b'"\xff"',
    "overlong UTF-8": b'"\xc0\x80"',
    "code point beyond Unicode": b'"\xf4\x90\x80\x80"',
    "UTF-8 that ends too soon": b'"\xe4\xb8"',
    "invalid UTF-8 in a key": b'{"\xff":1}',
    "control character": b'"\x01"',
    "raw line end in a string": b'"a\nb"',
    "trailing comma": b"[1,]",
    "comma before the brace": b'{"a":1,}',
    "byte-order mark": b"\xef\xbb\xbf1",
    "leading zero": b"[01]",
    "plus": b"[+1]",
    "point without digits": b"[1.]",
    "unknown escape": b'"\\x41"',
    "single quotes": b"{'a':1}",
    "comment": b"[1/**/]",
    "two values": b"1 2",
    "rest behind": b"{}x",
    "no end": b'{"a":[1',
    "201 brackets deep": b"[" * 201 + b"]" * 201,
    "201 braces deep": b'{"a":' * 200 + b"{}" + b"}" * 200,
    "100,000 brackets": b"[" * 100_000,
    "100,000 brackets, closed": b"[" * 100_000 + b"]" * 100_000,
    "brackets in strings do not count down": b"[" * 201 + b'"]]]]]"' + b"]" * 201,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(ParseError):
        strict.check(REFUSED[name])


PASSING = {
    "200 brackets deep": b"[" * 200 + b"]" * 200,
    "200 brackets deep with strings": b"[" * 200 + b'"[[[{{{\\"[","]"' + b"]" * 200,
    "many brackets side by side": b"[" + b"[[]]," * 1000 + b"{}]",
    "brackets in strings": b'["' + b"[" * 1000 + b'"]',
    "last integer that is a double": b"[%d]" % (2**1024 - 2**970 - 1),
    "309 digits inside a string": b'["' + b"1" * 400 + b'"]',
    "300 zeros behind the point": b"[0." + b"0" * 400 + b"1]",
    "number that rounds to zero": b"[1e-999]",
    "negative zero": b"[-0]",
    "colons in strings": b'{"a:":":","b":"::\\":"}',
    "same key in two objects": b'[{"a":1},{"a":1}]',
    "pair of escapes": b'"\\ud83d\\ude00"',
    "escaped NUL": b'"\\u0000"',
    "space around": b' \t\r\n{"a" : 1}\n',
}


@pytest.mark.parametrize("name", PASSING)
def test_passing(name: str) -> None:
    strict.check(PASSING[name])
    assert strict.check_whole(PASSING[name]) == json.loads(PASSING[name])


@given(values, st.data())
def test_key_that_stands_twice_anywhere_is_refused(value: Any, data: st.DataObject) -> None:
    key = data.draw(strings)
    inner = json.dumps({key: 1}, ensure_ascii=False)
    twice = inner[:-1] + "," + json.dumps({key: value}, ensure_ascii=data.draw(st.booleans()))[1:]
    wrapped = f'[{json.dumps(value)},{{"x":{twice}}},{json.dumps(value)}]'
    with pytest.raises(ParseError, match="twice"):
        strict.check(wrapped.encode())


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(values, st.booleans())
def test_depth_is_that_of_the_value(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert strict.deepest(text) == depth_of(value)


def test_depth_of_a_long_text_is_counted_across_its_pieces() -> None:
    quarter = ",".join(['{"a":"]}[{"}'] * 200_000)
    text = f"[{quarter},[[{quarter}]]]".encode()
    assert strict.deepest(text) == 4


@given(st.lists(values, min_size=1, max_size=6), st.booleans())
def test_elements_are_told_apart(elements: list[Any], ascii_only: bool) -> None:
    text = json.dumps(elements, ensure_ascii=ascii_only).encode()
    pieces, whole = faulty.split(text)
    assert whole
    assert [json.loads(piece) for piece in pieces] == elements


@pytest.mark.parametrize(
    "text", [b"[", b"[1", b"[[1]", b"[{]}", b'["a]', b"[1]]", b"[1] x", b"x[1]", b'["a\\"]']
)
def test_elements_are_not_told_apart_where_brackets_do_not_match(text: bytes) -> None:
    assert not faulty.split(text)[1]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"id":7,"a":NaN}', b"7"),
        (b'{"a":[1,{"id":3}],"id":"x","b":[1,]}', b'"x"'),
        (b'{"id" : -1.5 , "a":1e999}', b"-1.5"),
        (b'{"id":null,"a":\xff}', b"null"),
        (b'{"id":7,"a":{"b":1', b"7"),
        (b'{"a":"\\",\\"id\\":8","id":9,"b":01}', b"9"),
        (b'{"id":true,"a":NaN}', b"null"),
        (b'{"id":[1],"a":NaN}', b"null"),
        (b'{"id":"\xff"}', b"null"),
        (b'{"id":"\\ud83d"}', b"null"),
        (b'{"id":1e999}', b"null"),
        (b'{"id":"' + b"x" * 5000 + b'","a":NaN}', b"null"),
        (b'{"a":NaN}', b"null"),
        (b"NaN", b"null"),
        (b"", b"null"),
    ],
)
def test_id_of_a_faulty_request_is_read_where_it_can_be(text: bytes, name: bytes) -> None:
    assert faulty.read_id(text) == name
