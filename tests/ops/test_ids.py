"""Extension ids as people paste them."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidekeep.errors import InvalidParams
from sidekeep.ops.ids import (
    CHROMIUM,
    DEMO_IDS,
    FIREFOX,
    ExtensionId,
    origin,
    parse_extension_id,
    unite,
)
from tests.ops.machine import ROOT

LETTERS = "abcdefghijklmnopabcdefghijklmnop"


@pytest.mark.parametrize(
    "text",
    [
        LETTERS,
        LETTERS.upper(),
        f"chrome-extension://{LETTERS}/",
        f"chrome-extension://{LETTERS}",
        f"CHROME-EXTENSION://{LETTERS.upper()}/",
        f"  {LETTERS}\n",
    ],
)
def test_every_way_to_write_a_chromium_id_gives_its_letters(text: str) -> None:
    assert parse_extension_id(text) == ExtensionId(CHROMIUM, LETTERS)


@pytest.mark.parametrize(
    "text", ["panel@example.org", "@panel", "{0f1a2b3c-0000-4000-8000-0123456789ab}", "A@B.c"]
)
def test_a_firefox_id_is_kept_as_it_is(text: str) -> None:
    assert parse_extension_id(text) == ExtensionId(FIREFOX, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("*", "wildcard"),
        ("chrome-extension://*/", "wildcard"),
        ("*@example.org", "wildcard"),
        (LETTERS[:31], "31 letters instead of 32"),
        (LETTERS + "a", "33 letters instead of 32"),
        ("q" + LETTERS[1:], "outside a-p: q"),
        ("z" * 32, "outside a-p: z"),
        (f"chrome-extension://{LETTERS}//", "characters"),
        (f"chrome-extension://{LETTERS}/page.html", "characters"),
        (f"https://{LETTERS}/", "characters"),
        ("{0f1a2b3c}", "characters"),
        ("name host@example.org", "characters"),
        (f"{LETTERS},{LETTERS}", "characters"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        parse_extension_id(text)
    assert reason in caught.value.message
    assert caught.value.next


@given(st.text())
def test_whatever_passes_is_exactly_an_id(text: str) -> None:
    try:
        parsed = parse_extension_id(text)
    except InvalidParams:
        return
    if parsed.family == CHROMIUM:
        assert len(parsed.value) == 32
        assert set(parsed.value) <= set("abcdefghijklmnop")
    else:
        assert "*" not in parsed.value
        assert "@" in parsed.value or parsed.value.startswith("{")


def test_an_origin_ends_in_a_slash() -> None:
    assert origin(LETTERS) == f"chrome-extension://{LETTERS}/"


def test_uniting_keeps_the_order_and_drops_doubles() -> None:
    assert unite(["b", "a"], ["a", "c"]) == ["b", "a", "c"]


def test_the_demo_ids_are_those_of_the_shipped_extension() -> None:
    manifest = json.loads((ROOT / "extension_stub" / "manifest.json").read_bytes())
    digest = hashlib.sha256(base64.b64decode(manifest["key"])).hexdigest()[:32]
    # Chromium's id: the first half of the hash of the key, with the letters a-p for hex digits.
    assert "".join(chr(ord("a") + int(digit, 16)) for digit in digest) == DEMO_IDS[CHROMIUM]
    assert manifest["browser_specific_settings"]["gecko"]["id"] == DEMO_IDS[FIREFOX]
