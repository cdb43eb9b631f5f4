"""A long text checked stretch by stretch gets the verdict that it would get as a whole."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.errors import ParseError
from sidekeep.wire import stretches, strict
from tests.wire.caller import Port, in_parts, outcomes, request, text_of
from tests.wire.test_anything import BITS, SEEDS
from tests.wire.test_strict import PASSING, REFUSED, strings, values


@pytest.fixture(autouse=True, scope="module")
def short_stretches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH_BYTES", 8)
        yield


def verdict(check: Any, *arguments: object) -> bool:
    try:
        check(*arguments)
    except ParseError:
        return False
    return True


@pytest.mark.parametrize("name", PASSING)
def test_passing(name: str) -> None:
    stretches.check(PASSING[name], 200)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(ParseError):
        stretches.check(REFUSED[name], 200)


@pytest.mark.parametrize(
    "text",
    [
        b'["aaaaaaaaaaa",]',
        b'["aaaaaaaaaaa",,1]',
        b'{"a":"aaaaaaaaaaa",}',
        b'["aaaaaaaaaaa"],[1]',
        b'1,"aaaaaaaaaaa"',
        b"[1,2,3,4,5,6,7,8,9",
        b"[1,2,3,4,5,6,7,8,9}",
        b'{"a":1,"b":2,"c":3,"d"}',
        b'{"a":1,"b":2,"c":3,4}',
        b'[1,2,3,4,"b":5,6,7,8]',
        b'{"a":1,"b":2,"c":3,"d":4,"a":5}',
        b'{"a":[1,2,3,4,5,6,7],"b":2,"c":3,"d":{},"a":5}',
        b'[{"a":[1,2,3,4,5,6,7],"b":{"c":1,"d":[2,3,4,5,6],"e":1,"c":2}}]',
        b"[1,2,3,4,5,6,7,8,9]]",
        b"[1,2,3,4,5,6,7,8,9] 1",
        b"[1,2,3,4,5,6,7,8,9,1e999]",
    ],
)
def test_fault_that_only_shows_across_stretches_is_found(text: bytes) -> None:
    assert not verdict(strict.check, text)
    assert not verdict(stretches.check, text, 200)


@given(values, st.booleans(), st.sampled_from([None, 1]))
@settings(deadline=None)
def test_every_value_passes_in_every_writing(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False).encode()
    stretches.check(text, 200)


@given(st.lists(st.tuples(strings, values), min_size=2, max_size=8), st.data())
@settings(deadline=None)
def test_keys_are_compared_across_stretches(
    members: list[tuple[str, Any]], data: st.DataObject
) -> None:
    inner = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members)
    text = data.draw(st.sampled_from(["{%s}", "[1,{%s},2]", '{"x":[{%s}]}'])) % inner
    single = len({key for key, _ in members}) == len(members)
    assert verdict(stretches.check, text.encode(), 200) == single


@given(st.sampled_from(SEEDS), st.data())
@settings(max_examples=400, deadline=None)
def test_verdict_is_that_on_the_whole(body: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = min(len(body), start + data.draw(st.integers(0, 6)))
        body = (
            body[:start] + data.draw(st.sampled_from([*BITS, b"", b'"a":1,', b'"b":'])) + body[end:]
        )
    assert verdict(stretches.check, body, 200) == verdict(strict.check, body)


@pytest.mark.parametrize(("depth", "passes"), [(4, True), (3, False)])
def test_depth_is_counted_over_all_stretches(depth: int, passes: bool) -> None:
    text = b'[1,2,3,4,5,6,[1,2,3,4,5,6,{"a":1,"b":[1,2,3,4,5],"c":3},4,5,6],5,6,7]'
    assert verdict(stretches.check, text, depth) == passes


@pytest.mark.parametrize("item", [b"[]", b"{}", b"1", b'""', b'{"a":[]}'])
def test_long_text_of_small_values_takes_little_memory(item: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH_BYTES", 32_768)
        patch.setattr(strict, "LONG_BYTES", 1_048_576)
        text = b"[%b]" % b",".join([item] * (strict.LONG_BYTES // len(item)))
        assert len(text) > strict.LONG_BYTES
        tracemalloc.start()
        try:
            strict.check(text)
            assert tracemalloc.get_traced_memory()[1] < 6 * len(text)
        finally:
            tracemalloc.stop()


def test_long_messages_are_served_and_refused_like_short_ones() -> None:
    big = [[n] for n in range(40_000)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "STRETCH_BYTES", 50_000)
        patch.setattr(strict, "LONG_BYTES", 100_000)
        good = text_of(request(1, "m", {"v": big}))
        assert len(good) > 100_000
        port = Port()
        port.send_beside(
            good,
            text_of([request(2, "m", {"v": big}), request(3)]),
            text_of(request(4, "m", {"v": [*big, {"a": 1}, {"b": 1}]})).replace(
                b'"b"', b'"a":2,"a"'
            ),
            text_of(request(5, "m", {"v": big}, op=-1)),
            text_of(request(6, "m", {"v": big}, op="x")),
            text_of(request(7, 7, {"v": big})),  # type: ignore[arg-type]
            *in_parts(
                request(8, "m", {"v": big, "s": "x"}),
                1,
                [["params", "s"]],
                lambda text: [text[at : at + 90_000] for at in range(0, len(text), 90_000)],
            ),
        )
        found = outcomes(port.serve(window=64))
    assert found == {
        1: "result",
        2: "result",
        3: "result",
        4: "parse",
        5: "invalidRequest",
        6: "invalidRequest",
        7: "invalidRequest",
        8: "result",
    }
    messages = {message["id"]: message for message in port.messages}
    assert messages[6]["error"]["message"].startswith("op ")
    assert messages[7]["error"]["message"].startswith("A request")
