"""Which messages belong to one turn, and what nobody has answered yet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sidekeep.requests.form import Message
from sidekeep.requests.grouping import newest, turns, unanswered_failures
from tests.requests.making import answered, attached, conversations, said


def spelled(letters: str) -> list[Message]:
    """Make messages: ``p`` a page, ``q`` a question, ``f`` one that failed, ``a`` an answer."""
    made = {
        "p": attached(0),
        "q": said(0, "q"),
        "f": said(0, "f", failed=True),
        "a": answered(0, "a"),
        "s": Message(0, "system", ("s",)),
    }
    return [made[letter]._replace(id=at) for at, letter in enumerate(letters)]


@pytest.mark.parametrize(
    ("letters", "places"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("q", [0], id="a question"),
        pytest.param("ppq", [0, 1, 2], id="pages before it"),
        pytest.param("pqaq", [3], id="a page that was answered"),
        pytest.param("pqapq", [3, 4], id="a page after the answer"),
        pytest.param("pfq", [0, 2], id="past a question that failed"),
        pytest.param("pfpfq", [0, 2, 4], id="past several"),
        pytest.param("pfaq", [3], id="an answer that was cut off counts"),
        pytest.param("qpaq", [1, 3], id="a page that came while the answer was made"),
        pytest.param("pqpapq", [2, 4, 5], id="and one after it"),
        pytest.param("paq", [2], id="an answer whose question was removed"),
        pytest.param("pqq", [2], id="a question without answer that did not fail"),
        pytest.param("pp", [0, 1], id="ends with a page"),
    ],
)
def test_the_newest_turn_is_what_nobody_answered(letters: str, places: list[int]) -> None:
    assert newest(spelled(letters)) == places


@pytest.mark.parametrize(
    ("letters", "places"),
    [
        ("f", {0}),
        ("fa", set()),
        ("fpa", set()),
        ("ffa", {0}),
        ("fsa", set()),
        ("fq", {0}),
        ("q", set()),
    ],
)
def test_a_failed_question_is_unanswered_unless_an_answer_follows(
    letters: str, places: set[int]
) -> None:
    assert unanswered_failures(spelled(letters)) == places


@pytest.mark.parametrize(
    ("letters", "places"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("pqapqaq", [[0, 1, 2], [3, 4, 5], [6]], id="pages, question, answer"),
        pytest.param("aqaq", [[0], [1, 2], [3]], id="an answer without question"),
        pytest.param("qaaq", [[0, 1, 2], [3]], id="two answers"),
        pytest.param("qpaqaq", [[0, 2], [1, 3, 4], [5]], id="a page that came meanwhile"),
        pytest.param("pfqaq", [[0, 2, 3], [1], [4]], id="a question that failed"),
        pytest.param("pfq", [[1], [0, 2]], id="a retry keeps its page"),
        pytest.param("sqaq", [[0], [1, 2], [3]], id="a system message"),
        pytest.param("paq", [[0], [1], [2]], id="a page without question"),
    ],
)
def test_turns_hold_question_and_answer_together(letters: str, places: list[list[int]]) -> None:
    assert turns(spelled(letters)) == places


@settings(deadline=None)
@given(conversations())
def test_each_message_is_in_exactly_one_turn(messages: list[Message]) -> None:
    found = turns(messages)
    assert sorted(at for turn in found for at in turn) == list(range(len(messages)))
    assert found[-1] == newest(messages)
    for turn in found[:-1]:
        questions = [at for at in turn if messages[at].is_question]
        assert len(questions) <= 1
