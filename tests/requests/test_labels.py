"""Seen pictures go as their labels, and labels are found where they stand."""

from __future__ import annotations

import pytest

from sidekeep.requests.form import Message, Picture
from sidekeep.requests.labels import figure_labels, labels, without_pixels
from tests.requests.making import DEFAULTS, attached, changed, said, stored

FIGURES = [
    pytest.param("", [], id="no text"),
    pytest.param("Figures\n1. a", [], id="no heading"),
    pytest.param("## Figures\n1. Fig A\n2. Fig B", ["Fig A", "Fig B"], id="a list"),
    pytest.param("## Figures\n\n1. Fig A\n\n2.  Fig B \n", ["Fig A", "Fig B"], id="blank lines"),
    pytest.param(
        "## Figures\n1. Fig A\n\nNote: x\n1. other list", ["Fig A"], id="ends at other text"
    ),
    pytest.param("## Figures\n1. Fig A\n## More\n1. b", ["Fig A"], id="ends at a heading"),
    pytest.param(
        "## Figures\n1. page\n2. list\n\ntext\n## Figures\n1. Fig A",
        ["Fig A"],
        id="the last heading counts",
    ),
    pytest.param("## Figures\r\n1. Fig A\r\n2. Fig B\r\n", ["Fig A", "Fig B"], id="CR LF"),
    pytest.param("### Figures\n1. a\n# Figures\n1. b", [], id="another level"),
    pytest.param("## Figures of speech\n1. a", [], id="another heading"),
    pytest.param("## Figures\n1.a\n1. b", [], id="no space behind the dot ends the list"),
]


@pytest.mark.parametrize(("text", "captions"), FIGURES)
def test_captions_are_those_of_the_last_list(text: str, captions: list[str]) -> None:
    assert figure_labels(text) == captions


def test_pictures_become_numbered_labels_in_their_places() -> None:
    one = said(1, "x", stored(1), "y", stored(2))
    compact = without_pixels(one, DEFAULTS.texts)
    assert compact.parts == ("x", "[图1]", "y", "[图2]")
    assert without_pixels(compact, DEFAULTS.texts) is compact


@pytest.mark.parametrize(
    "one",
    [Message(1, "user", ("text",)), Message(1, "user", ("a", "b"), plain=False)],
    ids=["string", "parts"],
)
def test_a_message_without_pictures_is_the_same(one: Message) -> None:
    assert without_pixels(one, DEFAULTS.texts) is one
    assert labels(one, DEFAULTS.texts) == []


def test_a_stored_label_comes_before_the_list_and_the_list_before_the_number() -> None:
    body = "text\n\n## Figures\n1. from the list\n2. also"
    one = attached(1, body, stored(1, label="Figure 3: caption"), stored(2), stored(3))
    assert labels(one, DEFAULTS.texts) == ["[Figure 3: caption]", "[also]", "[图3]"]


def test_a_label_stands_in_one_line() -> None:
    assert labels(said(1, stored(1, label="a\n b")), DEFAULTS.texts) == ["[a b]"]


def test_the_wording_is_a_setting() -> None:
    settings = changed(texts={"imageLabel": "image {n}"})
    assert labels(said(1, stored(1), stored(2)), settings.texts) == ["[image 1]", "[image 2]"]


def test_a_number_is_that_of_the_anchor_in_an_attachment() -> None:
    parts = ("first\n[图2]", Picture("https://a.com/2.png", ""), "rest", stored(1))
    page = Message(1, "user", parts, plain=False, attachment=True)
    assert labels(page, DEFAULTS.texts) == ["[图2]", "[图1]"]
    question = page._replace(attachment=False)
    assert labels(question, DEFAULTS.texts) == ["[图1]", "[图2]"]
