"""Large attachments become stubs, which stay the same to the last letter."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sidekeep.requests.form import Message, Picture
from sidekeep.requests.stubs import aged, aging_stub, marked, overflow_stub, overflow_stubs
from tests.requests.making import (
    DEFAULTS,
    PREFIX,
    answered,
    attached,
    attached_text,
    changed,
    conversations,
    said,
    stored,
)

LONG = "y" * 9000
AGED = (
    "[Attached page context trimmed to keep replies fast — sent in full in an earlier turn]\n"
    "Title: A\nURL: https://a.com\n"
    "Original size: ~9080 chars. If you need exact details from this page, "
    "ask the user to re-attach it."
)
OMITTED = (
    f"{PREFIX}\n"
    "[browsa: this attachment was too large for the model's context window and was omitted "
    "so the conversation could continue]\n"
    "Title: A\nURL: https://a.com\n"
    "Original size: ~9080 chars. If you need exact details from this page, "
    "ask the user to re-attach it."
)


def questions(*numbers: int) -> list[Message]:
    return [one for at in numbers for one in (said(at, "q"), answered(at + 1, "a"))]


def test_an_old_large_attachment_is_sent_as_a_stub() -> None:
    page, newer = attached(1, LONG), attached(9)
    made = aged([page, *questions(2, 4, 6), newer], DEFAULTS)
    assert made[0] == Message(1, "user", (AGED,), plain=True, attachment=True)
    assert made[1:] == [*questions(2, 4, 6), newer]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([attached(1, LONG), *questions(*range(2, 22, 2))], id="the newest"),
        pytest.param(
            [attached(1, LONG), *questions(2, 4), attached(6), said(7, "q")], id="two old"
        ),
        pytest.param(
            [attached(1, LONG), *questions(2, 4), attached(6), said(7, "q")],
            id="the question that is sent is not answered",
        ),
        pytest.param(
            [attached(at, LONG) for at in range(1, 5)] + [said(5, "q")], id="attached in a row"
        ),
        pytest.param(
            [
                attached(1, LONG),
                *(said(at, "f", failed=True) for at in (2, 3, 4)),
                attached(5),
                said(6, "q"),
            ],
            id="questions that failed",
        ),
        pytest.param(
            [attached(1, "y" * 7919), *questions(2, 4, 6), attached(8), said(9, "q")],
            id="one character too short",
        ),
        pytest.param(
            [answered(1, attached_text("u", "t", LONG)), *questions(2, 4, 6), attached(8)],
            id="an answer that looks like a page",
        ),
    ],
)
def test_others_are_sent_in_full(messages: list[Message]) -> None:
    assert aged(messages, DEFAULTS) == messages


def test_8000_characters_with_the_header_are_large() -> None:
    messages = [attached(1, "y" * 7920), *questions(2, 4, 6), attached(8), said(9, "q")]
    assert messages[0].text_length == 8000
    assert aged(messages, DEFAULTS)[0] == aging_stub(messages[0], DEFAULTS)


def test_a_failed_question_with_part_of_an_answer_counts() -> None:
    tried = [said(6, "f", failed=True), answered(7, "part")]
    messages = [attached(1, LONG), *questions(2, 4), *tried, attached(8), said(9, "q")]
    assert aged(messages, DEFAULTS)[0].text == AGED


def test_thresholds_are_settings() -> None:
    settings = changed(aging={"turns": 2, "chars": 100})
    messages = [attached(1, "y" * 500), *questions(2, 4), attached(6), said(7, "q")]
    assert aged(messages, settings)[0].text.startswith("[Attached page context trimmed")
    assert aged(messages, DEFAULTS) == messages


def test_all_texts_of_an_attachment_count() -> None:
    parts = (attached_text("https://a.com", "A", ""), stored(1), "y" * 4000, stored(2), "y" * 5000)
    page = Message(1, "user", parts, plain=False, attachment=True)
    stub = aged([page, *questions(2, 4, 6), attached(8), said(9, "q")], DEFAULTS)[0]
    assert stub.text == AGED
    assert stub.plain
    assert not stub.pictures
    assert overflow_stubs([page], DEFAULTS) == ([overflow_stub(page, DEFAULTS)], [1])


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{PREFIX}\nURL: u\nTitle: \nMode: m\n---\n\nTitle: b", ["URL: u"]),
        (f"{PREFIX}\nTitle: t\nMode: m\n---\n\nURL: b", ["Title: t"]),
        ("no header", []),
        ("no header\nURL: u\nTitle: t", ["Title: t", "URL: u"]),
    ],
)
def test_a_stub_names_what_the_header_names(text: str, lines: list[str]) -> None:
    page = Message(1, "user", (text,), attachment=True)
    assert aging_stub(page, DEFAULTS).text.split("\n")[1:-1] == lines
    assert overflow_stub(page, DEFAULTS).text.split("\n")[2:-1] == lines


def test_after_an_overflow_every_large_attachment_is_left_out() -> None:
    messages = [
        attached(1, LONG, Picture("https://a.com/p.png", "")),
        attached(2, "small"),
        said(3, "z" * 9000),
        attached(4, LONG),
        said(5, "q"),
    ]
    made, stubbed = overflow_stubs(messages, DEFAULTS)
    assert stubbed == [1, 4]
    assert [one.text for one in made] == [OMITTED, messages[1].text, "z" * 9000, OMITTED, "q"]
    assert made[0] == Message(1, "user", (OMITTED,), plain=True, attachment=True)


def test_nothing_large_is_nothing_to_leave_out() -> None:
    messages = [attached(1, "y" * 7919), said(2, "q" * 9000)]
    assert overflow_stubs([attached(1, "y" * 7920)], DEFAULTS)[1] == [1]
    assert overflow_stubs(messages, DEFAULTS) == (messages, [])
    assert overflow_stubs(messages, changed(overflow={"chars": 10}))[1] == [1]


def test_what_was_left_out_once_stays_out() -> None:
    page = attached(1, "short", stub=True)
    made = marked([page, said(2, "q", stub=True)], DEFAULTS)
    assert made[0] == overflow_stub(page, DEFAULTS)
    assert made[1] == said(2, "q", stub=True)


def test_the_texts_are_settings() -> None:
    settings = changed(attachmentPrefix="[P]", texts={"aging": "old", "overflow": "large"})
    page = attached(1, LONG)
    assert aging_stub(page, settings).text.startswith("old\nTitle: A\n")
    assert overflow_stub(page, settings).text.startswith("[P]\nlarge\nTitle: A\n")


@settings(deadline=None)
@given(conversations(), conversations())
def test_a_stub_depends_on_its_attachment_only(one: list[Message], two: list[Message]) -> None:
    shared = attached(1000, LONG, seen=True)
    long_ago = [*questions(1001, 1003, 1005), attached(1007), said(1008, "q")]
    first = aged([*one, shared, *long_ago], DEFAULTS)
    second = aged([*two, shared, *long_ago, *questions(1010), said(1012, "r")], DEFAULTS)
    stubs = [[found for found in made if found.id == 1000] for made in (first, second)]
    assert stubs[0] == stubs[1] == [aging_stub(shared, DEFAULTS)]


@settings(deadline=None)
@given(conversations())
def test_stubbing_again_changes_nothing(messages: list[Message]) -> None:
    for make in (aged, lambda given, settings: overflow_stubs(given, settings)[0]):
        once = make(messages, DEFAULTS)
        assert make(once, DEFAULTS) == once
        for before, after in zip(messages, once, strict=True):
            assert before._replace(parts=(), plain=True) == after._replace(parts=(), plain=True)
            assert before.attachment or before == after
