"""The steps that make a request smaller, together."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.errors import InvalidParams
from sidekeep.handshake import Settings
from sidekeep.requests.form import Message
from sidekeep.requests.settings import Limits, RequestSettings, Style
from sidekeep.requests.stubs import overflow_stub
from tests.requests.making import (
    DEFAULTS,
    STYLES,
    answered,
    attached,
    changed,
    conversations,
    planned,
    request_of,
    said,
    stored,
    texts,
)

HISTORY_STYLES: tuple[Style, ...] = ("chat", "responses", "anthropic", "runs")
LONG = "y" * 9000


def test_unseen_pictures_go_with_pixels_and_seen_ones_as_labels() -> None:
    messages = [
        said(1, "a", stored(1, label="Figure 3: caption"), seen=True),
        answered(2, "b"),
        said(3, "c", stored(2), seen=False),
    ]
    made = planned(messages)
    assert made.carried == [3]
    assert made.messages[0].parts == ("a", "[Figure 3: caption]")
    assert made.messages[1:] == messages[1:]


def test_a_seen_picture_alone_is_a_text_part() -> None:
    messages = [said(1, stored(1), seen=True), answered(2, "b"), said(3, "c")]
    assert request_of(messages, "responses")["input"][0] == {
        "role": "user",
        "content": [{"type": "input_text", "text": "[图1]"}],
    }


@pytest.mark.parametrize("style", STYLES)
def test_a_question_without_words_says_what_is_wanted(style: Style) -> None:
    for pictures, wanted in (
        ((stored(1),), "Describe these images."),
        ((), "(no instruction; just respond to the page context)"),
    ):
        messages = [attached(1), said(2, "(no instruction)", *pictures)]
        text = json.dumps(request_of(messages, style))
        assert wanted in text
        assert "(no instruction)" not in text


def test_it_still_says_so_when_its_pictures_were_seen() -> None:
    first = said(1, "(no instruction)", stored(1))
    new = request_of([first])["messages"][0]["content"]
    messages = [first._replace(seen=True), answered(2, "b"), said(3, "c")]
    old = request_of(messages)["messages"][0]["content"]
    assert new[0] == old[0] == {"type": "text", "text": "Describe these images."}
    assert old[1] == {"type": "text", "text": "[图1]"}


def test_a_blank_question_is_never_sent_blank() -> None:
    assert request_of([said(1, " ")])["messages"] == [
        {"role": "user", "content": "(no instruction; just respond to the page context)"}
    ]


def test_an_attachment_that_says_so_is_no_question() -> None:
    page = Message(1, "user", ("(no instruction)",), attachment=True)
    assert request_of([page, said(2, "q")])["messages"][0]["content"] == "(no instruction)"


@pytest.mark.parametrize("style", HISTORY_STYLES)
def test_a_rescue_leaves_large_attachments_out(style: Style) -> None:
    page = attached(1, LONG, stored(1))
    made = planned([page, said(2, "q")], style, stub=True)
    assert made.stubbed == [1]
    assert made.carried == []
    assert made.messages == [overflow_stub(page, DEFAULTS), said(2, "q")]


def test_a_rescue_keeps_the_system_text() -> None:
    messages = [attached(1, LONG), said(2, "q")]
    assert request_of(messages, "anthropic", stub=True, system="S")["system"] == "S"


def test_a_rescue_has_nothing_to_do_without_large_attachments() -> None:
    messages = [attached(1, "short"), said(2, "q" * 9000)]
    assert planned(messages, stub=True) == planned(messages)
    assert planned(messages, stub=True).stubbed == []


def test_what_was_left_out_once_is_not_stubbed_again_nor_aged() -> None:
    page = attached(1, LONG, stub=True)
    messages = [page, said(2, "q")]
    assert planned(messages, stub=True).stubbed == []
    for number in range(3, 13, 2):
        messages += [answered(number, "a"), said(number + 1, "q")]
    messages += [answered(20, "a"), attached(21), said(22, "q")]
    assert planned(messages).messages[0] == overflow_stub(page, DEFAULTS)


def test_an_agent_gets_its_pictures_though_they_were_seen() -> None:
    messages = [attached(1, "page", stored(1), seen=True), said(2, "again")]
    assert planned(messages, "agent").carried == [1]
    assert request_of(messages, "agent")["images"] == ["data:image/png;base64,<1>"]


def test_an_agent_leaves_nothing_out_that_it_would_not_get() -> None:
    messages = [said(1, "a" * 500), answered(2, "b" * 500), attached(3), said(4, "c")]
    limits = Limits(chars=10)
    assert planned(messages, "agent", limits=limits).left == []
    assert planned(messages, "agent", limits=limits, backfill=True).left == [1, 2]
    assert planned(messages, "chat", limits=limits).left == [1, 2]


def test_what_is_left_out_is_not_carried() -> None:
    messages = [said(1, "a", stored(1)), answered(2, "b"), said(3, "c", stored(2))]
    made = planned(messages, limits=Limits(chars=4100))
    assert (made.left, made.carried) == ([1, 2], [3])


def test_only_pixels_that_are_sent_count_for_the_limits() -> None:
    messages = [said(1, "a", stored(1)), answered(2, "b"), said(3, "c")]
    assert planned(messages, "runs", limits=Limits(chars=100)).left == []
    assert planned(messages, "chat", limits=Limits(chars=100)).left == [1, 2]


@settings(deadline=None)
@given(conversations(), st.sampled_from(STYLES), st.booleans(), st.booleans())
def test_nothing_that_is_planned_changes_what_is_stored(
    messages: list[Message], style: Style, stub: bool, backfill: bool
) -> None:
    before = [Message(*one) for one in messages]
    made = planned(messages, style, stub=stub, backfill=backfill, limits=Limits(chars=5000))
    assert messages == before
    known = {one.id for one in messages}
    assert {*made.carried, *made.stubbed, *made.left} <= known
    assert not {one.id for one in made.messages} & set(made.left)
    assert made.messages[-1].id == messages[-1].id
    assert not set(made.carried) & (set(made.left) | set(made.stubbed))


@st.composite
def grown(draw: st.DrawFn) -> tuple[list[Message], list[Message]]:
    """A conversation, and the same one after its answer and one more question."""
    messages = [one._replace(failed=False, seen=True) for one in draw(conversations())]
    words = st.one_of(texts, st.just("(no instruction)"))
    messages[-1] = said(messages[-1].id, draw(words))
    number = len(messages)
    more = [answered(number + 1, draw(texts))]
    more += [attached(number + 2)] if draw(st.booleans()) else []
    return messages, [*messages, *more, said(number + 3, draw(words))]


@pytest.mark.parametrize("style", HISTORY_STYLES)
@settings(deadline=None, max_examples=40)
@given(pair=grown())
def test_the_next_request_begins_like_the_one_before(
    style: Style, pair: tuple[list[Message], list[Message]]
) -> None:
    settings = changed(aging={"turns": 1000})
    first, second = (_history(request_of(one, style, settings=settings), style) for one in pair)
    if style == "runs" or (first and pair[0][-1].text.strip()):
        assert second[: len(first)] == first


def _history(request: dict[str, list[object]], style: Style) -> list[object]:
    names = {"responses": "input", "runs": "conversation_history"}
    return request[names.get(style, "messages")]


def test_a_request_shares_its_prefix_with_the_next_until_a_page_ages_once() -> None:
    messages: list[Message] = [attached(1, LONG), attached(2, "newer")]
    requests = []
    for number in range(3, 19, 2):
        messages.append(said(number, f"question {number}"))
        requests.append(json.dumps(request_of(messages)["messages"])[:-1])
        messages.append(answered(number + 1, f"answer {number}"))
    kept = [two.startswith(one) for one, two in pairwise(requests)]
    assert kept == [True, True, False, True, True, True, True]


def test_settings_come_from_a_hello() -> None:
    said_so = Settings(
        attachmentPrefix="[P]",
        condenseFrom=5,
        aging={"turns": 1},
        overflow={"chars": 2},
        texts={"noInstruction": "(none)", "unknown": "x"},
    )
    made = RequestSettings.of(said_so)
    assert (made.prefix, made.prefixes) == ("[P]", (DEFAULTS.prefix, "[P]"))
    assert (made.condense_from, made.overflow.chars) == (5, 2)
    assert (made.aging.turns, made.aging.chars) == (1, 8000)
    assert (made.texts.no_instruction, made.texts.aging) == ("(none)", DEFAULTS.texts.aging)
    assert RequestSettings.of(None) == RequestSettings.of(Settings()) == DEFAULTS


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidParams, match="aging"):
        RequestSettings.of(Settings(aging={"turns": -1}))


def test_wordings_with_a_number_have_it_filled_in() -> None:
    assert DEFAULTS.texts.condensed_note(123456) == (
        "[browsa: auto-condensed from 123456 chars — some detail may be lost]"
    )
    odd = changed(texts={"condensed": "{n.__class__} {x} {n}", "imageLabel": "Fig {n}"}).texts
    assert odd.condensed_note(5) == "{n.__class__} {x} 5"
    assert odd.picture_name(2) == "Fig 2"
