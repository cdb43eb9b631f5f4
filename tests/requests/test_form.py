"""Entries as messages: what a model could be sent of them."""

from __future__ import annotations

from typing import Any

import pytest

from sidekeep.requests.form import Message, Picture, message
from sidekeep.store import tokens
from sidekeep.store.layout import KIND_BASE64
from sidekeep.store.rope import Blob
from tests.requests.making import DEFAULTS, PREFIX

BLOB = Blob(KIND_BASE64, bytes(32), 8000, b"data:image/png;base64,", None)
FILE = Blob(KIND_BASE64, bytes(32), 8000, b"data:application/pdf;base64,", None)
BLOBS = {tokens.write(blob).decode(): blob for blob in (BLOB, FILE)}
TOKEN, FILE_TOKEN = BLOBS


def read(entry: dict[str, Any]) -> Message | None:
    return message(7, entry, BLOBS, DEFAULTS.prefixes)


PARTS = [
    pytest.param("x", ("x",), True, id="a string"),
    pytest.param("", ("",), True, id="an empty string"),
    pytest.param([], (), False, id="no parts"),
    pytest.param([{"type": "text", "text": "x"}], ("x",), False, id="a text part"),
    pytest.param([{"type": "input_text", "text": "x"}], ("x",), False, id="an input_text part"),
    pytest.param(
        [{"type": "image_url", "image_url": {"url": "https://a.com/p"}, "label": " L "}],
        (Picture("https://a.com/p", "L"),),
        False,
        id="a picture with a label",
    ),
    pytest.param(
        [{"type": "image_url", "image_url": "https://a.com/p"}],
        (Picture("https://a.com/p", ""),),
        False,
        id="a bare URL",
    ),
    pytest.param(
        [{"type": "image_url", "image_url": {"url": TOKEN}}],
        (Picture(BLOB, ""),),
        False,
        id="a stored picture",
    ),
    pytest.param(TOKEN, (Picture(BLOB, ""),), False, id="a picture as the whole content"),
    pytest.param(FILE_TOKEN, ("data:application/pdf;base64,…",), False, id="a file as content"),
    pytest.param(
        [None, 5, "x", {}, {"type": "text"}, {"text": 5}, {"image_url": {}}, {"image_url": 5}],
        (),
        False,
        id="what is no part",
    ),
    pytest.param(
        [{"type": "input_audio", "input_audio": {"data": "x"}}, {"type": "text", "text": "y"}],
        ("y",),
        False,
        id="a part of another kind",
    ),
]


@pytest.mark.parametrize(("content", "parts", "plain"), PARTS)
def test_content_is_texts_and_pictures(
    content: object, parts: tuple[object, ...], plain: bool
) -> None:
    found = read({"role": "user", "content": content})
    assert found == Message(7, "user", parts, plain=plain)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "entry",
    [
        {"role": "tool", "content": "x"},
        {"content": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "assistant", "content": 5},
        {"role": 5, "content": "x"},
    ],
)
def test_what_is_no_message_is_none(entry: dict[str, Any]) -> None:
    assert read(entry) is None


def test_marks_are_read_from_fields() -> None:
    fields = {"imagesSeen": True, "sendAsStub": True, "failed": "abort", "attachId": "a-1"}
    found = read({"role": "user", "content": "x", **fields})
    assert found == Message(
        7, "user", ("x",), plain=True, attachment=True, seen=True, stub=True, failed=True
    )
    fields = {"imagesSeen": False, "sendAsStub": None, "failed": None, "attachId": ""}
    assert read({"role": "user", "content": "x", **fields}) == Message(7, "user", ("x",))


@pytest.mark.parametrize(
    ("role", "content", "attachment"),
    [
        ("user", f"{PREFIX}\nold", True),
        ("user", [{"image_url": "https://a.com/p"}, {"text": f"{PREFIX}\nx"}], True),
        ("user", f"not {PREFIX}", False),
        ("assistant", f"{PREFIX}\nx", False),
    ],
)
def test_an_attachment_is_known_by_its_header(role: str, content: object, attachment: bool) -> None:
    found = read({"role": role, "content": content})
    assert found is not None
    assert found.attachment is attachment


def test_length_is_counted_in_utf16_units_over_all_texts() -> None:
    one = Message(1, "user", ("a😀", Picture("https://a.com/p", ""), "语"), plain=False)
    assert one.text_length == 4
    assert one.text == "a😀\n语"
