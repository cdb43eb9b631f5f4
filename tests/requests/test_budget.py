"""A bound on the whole request leaves out whole turns, oldest first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.requests.budget import estimate, trimmed
from sidekeep.requests.form import Message
from sidekeep.requests.grouping import turns
from sidekeep.requests.settings import Limits
from tests.requests.making import NO_LIMITS, answered, attached, conversations, said, stored

TALK = [
    said(1, "a" * 100),
    answered(2, "b" * 100),
    attached(3, "c" * 20),
    said(4, "d" * 100),
    answered(5, "e" * 100),
    said(6, "f" * 100),
]


@pytest.mark.parametrize(
    ("chars", "left"),
    [
        pytest.param(600, [], id="exactly"),
        pytest.param(599, [1, 2], id="one character too many"),
        pytest.param(400, [1, 2], id="the rest exactly"),
        pytest.param(399, [1, 2, 3, 4, 5], id="a page goes with its question"),
        pytest.param(0, [1, 2, 3, 4, 5], id="never the newest"),
    ],
)
def test_whole_turns_are_left_out_oldest_first(chars: int, left: list[int]) -> None:
    kept, out = trimmed(TALK, Limits(chars=chars), None, set())
    assert out == left
    assert [one.id for one in kept] == [one.id for one in TALK if one.id not in left]


def test_the_system_text_counts() -> None:
    assert trimmed(TALK, Limits(chars=600), "s", set())[1] == [1, 2]


def test_without_limits_nothing_is_left_out() -> None:
    assert trimmed(TALK, NO_LIMITS, "s" * 10**6, set()) == (TALK, [])


def test_the_newest_turn_keeps_its_attachments() -> None:
    messages = [*TALK, answered(7, "g"), attached(8, "h" * 5000), attached(9), said(10, "i")]
    assert [one.id for one in trimmed(messages, Limits(chars=1), None, set())[0]] == [8, 9, 10]


def test_a_failed_question_may_go_without_the_page_it_was_about() -> None:
    messages = [attached(1, "page"), said(2, "f" * 9000, failed=True), said(3, "again")]
    kept, left = trimmed(messages, Limits(chars=500), None, set())
    assert [one.id for one in kept] == [1, 3]
    assert left == [2]


def test_a_picture_counts_flat_and_only_with_its_pixels() -> None:
    messages = [said(1, "a", stored(1)), answered(2, "b"), said(3, "c")]
    assert trimmed(messages, Limits(chars=4003), None, {1})[1] == []
    assert trimmed(messages, Limits(chars=4002), None, {1})[1] == [1, 2]
    assert trimmed(messages, Limits(chars=4002), None, set())[1] == []
    assert trimmed(messages, Limits(tokens=1015), None, {1})[1] == []
    assert trimmed(messages, Limits(tokens=1014), None, {1})[1] == [1, 2]
    assert trimmed(messages, Limits(tokens=1014), None, set())[1] == []


def test_both_limits_hold() -> None:
    assert trimmed(TALK, Limits(chars=600, tokens=100), None, set())[1] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("你好", 2), ("a你", 2)]
)
def test_tokens_are_estimated(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@settings(deadline=None)
@given(conversations(), st.one_of(st.none(), st.integers(0, 30000)), st.integers(0, 9000))
def test_no_turn_is_split_and_the_newest_stays(
    messages: list[Message], chars: int | None, tokens: int
) -> None:
    limits = Limits(chars=chars, tokens=tokens)
    kept, left = trimmed(messages, limits, "system", set())
    assert [*kept] == [one for one in messages if one.id not in left]
    assert sorted(left) == left
    whole = [{messages[at].id for at in turn} for turn in turns(messages)]
    assert all(turn <= set(left) or not turn & set(left) for turn in whole)
    assert not whole[-1] & set(left)
    # No more is left out than has to be: with the newest of what is left out it is too much.
    gone = [turn for turn in whole if turn <= set(left)]
    assert gone == whole[: len(gone)]
    if gone:
        back = [one for one in messages if one.id not in left or one.id in gone[-1]]
        assert trimmed(back, limits, "system", set())[1] != []
    assert trimmed(messages, limits, "system", set()) == (kept, left)
