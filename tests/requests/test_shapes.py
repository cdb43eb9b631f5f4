"""The forms in which servers expect a request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from sidekeep.requests.agent import TRANSCRIPT_LIMIT, transcript
from sidekeep.requests.form import Message, Picture
from sidekeep.requests.plan import plan
from sidekeep.requests.settings import Style, Target
from sidekeep.requests.shapes import build, carried
from sidekeep.wire.messages import Cut
from tests.requests.making import (
    DEFAULTS,
    NO_LIMITS,
    STYLES,
    answered,
    attached,
    conversations,
    said,
    stored,
    written,
)

NEW = Picture("data:image/png;base64,NEW", "")
TALK = [said(1, "q"), answered(2, "a"), said(3, "next")]


def test_chat_has_the_system_text_first() -> None:
    assert written(TALK, "chat", system="S") == {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "next"},
        ]
    }
    assert written(TALK[2:], "chat") == {"messages": [{"role": "user", "content": "next"}]}


def test_chat_takes_pictures_in_parts() -> None:
    assert written([said(1, "look", NEW, stored(7))], "chat")["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,NEW"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,<7>"}},
            ],
        }
    ]


def test_chat_leaves_out_what_has_no_parts() -> None:
    messages = [Message(1, "user", (), plain=False), Message(2, "system", ("s",)), said(3, "")]
    assert written(messages, "chat")["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": ""},
    ]


def test_responses_has_input_parts_and_answers_as_strings() -> None:
    messages = [said(1, "q", stored(1)), answered(2, "a", NEW), said(3, NEW), said(4, "next")]
    assert written(messages, "responses", system="S") == {
        "instructions": "S",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "q"},
                    {"type": "input_image", "image_url": "data:image/png;base64,<1>"},
                ],
            },
            {"role": "assistant", "content": "a\n[图1]"},
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "data:image/png;base64,NEW"}],
            },
            {"role": "user", "content": [{"type": "input_text", "text": "next"}]},
        ],
    }


def test_responses_leaves_out_blank_and_system_messages() -> None:
    messages = [said(1, " "), answered(2, "\n"), Message(3, "system", ("s",)), said(4, "q")]
    assert written(messages, "responses") == {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]
    }


def test_anthropic_has_the_system_text_apart() -> None:
    assert written(TALK, "anthropic", system="S") == {
        "system": "S",
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "next"},
        ],
    }


@pytest.mark.parametrize(
    ("picture", "block"),
    [
        pytest.param(
            NEW,
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "NEW"},
            },
            id="data",
        ),
        pytest.param(
            stored(5, "data:image/webp;base64,"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/webp", "data": "<5>"},
            },
            id="stored",
        ),
        pytest.param(
            stored(5, "data:image/JPG;charset=x;base64,"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/jpeg", "data": "<5>"},
            },
            id="another spelling",
        ),
        pytest.param(
            Picture("https://a.com/p.png", ""),
            {"type": "image", "source": {"type": "url", "url": "https://a.com/p.png"}},
            id="URL",
        ),
        pytest.param(
            Picture("data:image/svg+xml,<svg/>", "Figure 1: a"),
            {"type": "text", "text": "[Figure 1: a]"},
            id="no base64",
        ),
        pytest.param(
            stored(5, "data:image/svg+xml;base64,"), {"type": "text", "text": "[图1]"}, id="SVG"
        ),
        pytest.param(Picture("blob:x", ""), {"type": "text", "text": "[图1]"}, id="no data"),
    ],
)
def test_anthropic_takes_pictures_that_its_server_knows(
    picture: Picture, block: dict[str, Any]
) -> None:
    messages = [said(1, "look", picture)]
    (found,) = written(messages, "anthropic")["messages"]
    assert found["content"] == [{"type": "text", "text": "look"}, block]
    assert carried(messages, "anthropic") == ([1] if block["type"] == "image" else [])


def test_anthropic_begins_with_the_user() -> None:
    made = written(
        [answered(1, "orphan"), said(2, "q"), answered(3, "a"), said(4, "n")], "anthropic"
    )
    assert [one["content"] for one in made["messages"]] == ["q", "a", "n"]


def test_anthropic_keeps_a_history_of_answers_only() -> None:
    made = written([answered(1, "only"), answered(2, "two"), said(3, "n")], "anthropic")
    assert made["messages"] == [
        {"role": "user", "content": DEFAULTS.texts.placeholder},
        {"role": "assistant", "content": "only"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "n"},
    ]


def test_anthropic_leaves_out_what_is_blank() -> None:
    messages = [said(1, " "), said(2, "", " ", stored(1)), answered(3, ""), said(4, "q")]
    made = written(messages, "anthropic")["messages"]
    assert [one["role"] for one in made] == ["user", "user"]
    assert len(made[0]["content"]) == 1


def test_anthropic_has_no_pictures_in_answers() -> None:
    messages = [said(1, "q"), answered(2, "a", stored(1)), said(3, "n")]
    made = written(messages, "anthropic")["messages"]
    assert made[1]["content"][1] == {"type": "text", "text": "[图1]"}
    assert carried(messages, "anthropic") == []


def test_runs_has_a_history_of_texts() -> None:
    messages = [
        said(1, "q", stored(1), "more"),
        answered(2, "a"),
        said(3, " "),
        Message(4, "system", ("s",)),
        said(5, "next"),
    ]
    assert written(messages, "runs", system="S") == {
        "input": "next",
        "conversation_history": [
            {"role": "user", "content": "q\n[image]\nmore"},
            {"role": "assistant", "content": "a"},
        ],
    }
    assert carried(messages, "runs") == []


def test_runs_has_the_pictures_of_the_question() -> None:
    messages = [attached(1, "page", stored(1)), said(2, "look", stored(2))]
    assert written(messages, "runs")["input"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,<2>"}},
            ],
        }
    ]
    assert carried(messages, "runs") == [2]


def test_an_agent_is_told_what_nobody_has_answered() -> None:
    pages = [attached(3, "one", stored(1)), attached(4, "two", stored(2))]
    question = said(5, "look", stored(3))
    messages = [said(1, "q"), answered(2, "a"), *pages, question]
    note = DEFAULTS.texts.agent_note
    assert written(messages, "agent", system="S") == {
        "text": f"{pages[0].text}\n\n{pages[1].text}\n\n{note}\n\nlook",
        "images": [f"data:image/png;base64,<{number}>" for number in (3, 1, 2)],
    }
    assert carried(messages, "agent") == [3, 4, 5]
    assert written(TALK, "agent") == {"text": "next", "images": []}


def test_an_agent_gets_all_texts_of_an_attachment() -> None:
    page = Message(1, "user", ("one", stored(1), "two"), plain=False, attachment=True)
    assert written([page, said(2, "q")], "agent")["text"].startswith("one\ntwo\n\n")


def test_backfill_puts_a_transcript_before() -> None:
    messages = [said(1, "q", stored(1)), answered(2, "a"), attached(3, "page"), said(4, "next")]
    text = written(messages, "agent", backfill=True)["text"]
    assert text.startswith("User: q\n[image]\n\nAssistant: a\n\n[Page context")
    assert text.endswith("\n\nnext")
    assert written([said(1, "q")], "agent", backfill=True)["text"] == "q"


@pytest.mark.parametrize("letter", ["a", "😀"])
def test_a_transcript_has_200000_characters_at_most(letter: str) -> None:
    said_long = [said(1, "first " + letter * TRANSCRIPT_LIMIT), answered(2, "last")]
    text = transcript(said_long)
    assert text.endswith("\n\nAssistant: last")
    assert TRANSCRIPT_LIMIT - 1 <= len(text.encode("utf-16-le")) // 2 <= TRANSCRIPT_LIMIT


def test_a_long_text_may_travel_apart() -> None:
    long = "語" * 40_000 + '"\\😀'
    pieces = build([said(1, long)], Target("chat"), DEFAULTS, _none, ("result",))
    (cut,) = [piece for piece in pieces if isinstance(piece, Cut)]
    assert cut.path == ("result", "messages", 0, "content")
    text = b"".join(cut.read())
    assert len(text) == cut.length
    assert json.loads(b'"%b"' % text) == long
    short = build([said(1, "short")], Target("chat"), DEFAULTS, _none, ("result",))
    assert short == [b'{"messages":[{"role":"user","content":"short"}]}']


def _none(*_: object) -> Cut:
    raise AssertionError("there is no picture")


def names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(names, value.values()))
    return set().union(*map(names, value)) if isinstance(value, list) else set()


ALLOWED: dict[Style, set[str]] = {
    "chat": {"messages", "role", "content", "type", "text", "image_url", "url"},
    "responses": {"input", "role", "content", "type", "text", "image_url"},
    "anthropic": {
        *("messages", "role", "content", "type", "text", "source", "media_type", "data", "url"),
    },
    "runs": {
        *("input", "conversation_history", "role", "content", "type", "text", "image_url", "url"),
    },
    "agent": {"text", "images"},
}


@pytest.mark.parametrize("style", STYLES)
@settings(deadline=None, max_examples=40)
@given(messages=conversations())
def test_only_role_and_content_leave(style: Style, messages: list[Message]) -> None:
    made = written(messages, style)
    assert names(made) <= ALLOWED[style]


@pytest.mark.parametrize("style", STYLES)
@settings(deadline=None, max_examples=40)
@given(messages=conversations())
def test_carried_are_exactly_those_whose_pixels_are_in_the_request(
    style: Style, messages: list[Message]
) -> None:
    # Give each picture an address of its own, so that it can be found in the request.
    own = []
    for one in messages:
        parts = tuple(
            Picture(f"https://a.com/{one.id}/", "") if isinstance(part, Picture) else part
            for part in one.parts
        )
        own.append(one._replace(parts=parts))
    made = plan(own, Target(style), DEFAULTS, NO_LIMITS)
    text = json.dumps(written(made.messages, style))
    assert made.carried == [one.id for one in own if f"https://a.com/{one.id}/" in text]


@pytest.mark.parametrize("style", STYLES)
@settings(deadline=None, max_examples=40)
@given(messages=conversations())
def test_the_same_conversation_gives_the_same_bytes(style: Style, messages: list[Message]) -> None:
    target = Target(style, "S", backfill=True)
    texts = []
    for given_messages in (messages, [Message(*one) for one in messages]):
        made = plan(given_messages, target, DEFAULTS, NO_LIMITS)
        pieces = build(made.messages, target, DEFAULTS, _token, ())
        texts.append([piece if isinstance(piece, bytes) else piece.length for piece in pieces])
    assert texts[0] == texts[1]


def _token(path: tuple[str | int, ...], blob: Any, whole: bool) -> Cut:
    return Cut(path, blob.hash[0] * 2 + whole)
