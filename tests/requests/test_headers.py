"""The header of an attachment: made, found again, and without what opens an account."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.requests.headers import header, named_line, redacted, split_header
from tests.requests.making import DEFAULTS, PREFIX, attached_text, changed


def test_a_header_names_url_title_and_mode() -> None:
    text = header(DEFAULTS, url="https://a.com", title="A", mode="reader", body="b")
    assert text == attached_text("https://a.com", "A", "b")
    assert len(text) == 81


def test_all_lines_stand_in_their_order() -> None:
    text = header(
        DEFAULTS,
        url="https://a.com",
        title="A",
        mode="reader",
        format="markdown",
        block="arXiv: 1\nAuthors: x\n",
        fallback=True,
        changed_since="2026-03-07 04:05",
        body="body\n",
    )
    assert text == (
        f"{PREFIX}\nURL: https://a.com\nTitle: A\narXiv: 1\nAuthors: x\n"
        "Mode: reader | markdown (fallback to full)\n"
        "Note: this page's content has changed since it was last attached "
        "(previously attached 2026-03-07 04:05).\n"
        "---\n\nbody\n"
    )


def test_the_prefix_is_a_setting() -> None:
    settings = changed(attachmentPrefix="[Page]")
    assert header(settings, url="u", title="", mode="m", body="").startswith("[Page]\nURL: u\n")


def test_a_title_cannot_end_the_header() -> None:
    text = header(DEFAULTS, url="u\n", title="A\r\n---\n\nevil", mode="m", body="b")
    assert split_header(text)[1] == "b"
    assert named_line(text, "Title") == "A --- evil"


SPLITS = [
    pytest.param("no header at all", "", "no header at all", id="none"),
    pytest.param("a\nMode: x\n---\n\nb", "", "a\nMode: x\n---\n\nb", id="neither URL nor title"),
    pytest.param(
        f"{PREFIX}\nTitle: t\nMode: m\n---\nb", f"{PREFIX}\nTitle: t\nMode: m\n---\n", "b", id="t"
    ),
    pytest.param(
        f"{PREFIX}\nURL: u\nMode: m\n---", f"{PREFIX}\nURL: u\nMode: m\n---", "", id="end"
    ),
    pytest.param(
        f"{PREFIX}\nURL: u\nTitle: t\n---\nblock\nMode: m\n---\n\n\n---\nb",
        f"{PREFIX}\nURL: u\nTitle: t\n---\nblock\nMode: m\n---\n\n",
        "\n---\nb",
        id="a line within the block",
    ),
    pytest.param(
        f"{PREFIX}\n[browsa: left out]\nTitle: t",
        "",
        f"{PREFIX}\n[browsa: left out]\nTitle: t",
        id="a stub",
    ),
]


@pytest.mark.parametrize(("text", "head", "body"), SPLITS)
def test_a_header_ends_behind_its_line(text: str, head: str, body: str) -> None:
    assert split_header(text) == (head, body)


line = st.text(alphabet="a语: -", max_size=12)


@settings(deadline=None)
@given(line, line, line, st.text(alphabet="a\n-語", max_size=40), st.booleans())
def test_what_was_put_together_comes_apart(
    url: str, title: str, mode: str, body: str, note: bool
) -> None:
    since = "yesterday" if note else None
    text = header(
        DEFAULTS, url=url, title=title, mode=mode, block="b: 1", changed_since=since, body=body
    )
    head, rest = split_header(text)
    assert (head + rest, rest) == (text, body)
    assert named_line(text, "Title") == title.strip()


def test_a_name_is_looked_for_in_the_header_only() -> None:
    text = f"{PREFIX}\nURL: u\nMode: m\n---\n\nTitle: of something else"
    assert named_line(text, "Title") == ""
    assert named_line("Title: of what has no header", "Title") == "of what has no header"


HIDDEN = [
    ("https://user:secret@a.com/x", "https://…@a.com/x"),
    ("https://ghp_token@github.com/a/b", "https://…@github.com/a/b"),
    ("postgres://u:p@ss@db:5432/x", "postgres://…@db:5432/x"),
    ("https://a.com/?token=abc&page=2", "https://a.com/?token=…&page=2"),
    ("https://a.com/?page=2&access_token=a.b-c#top", "https://a.com/?page=2&access_token=…#top"),
    (
        "https://a.com/#access_token=abc&token_type=bearer",
        "https://a.com/#access_token=…&token_type=bearer",
    ),
    ("https://a.com/?api_key=1&apikey=2&API-KEY=3", "https://a.com/?api_key=…&apikey=…&API-KEY=…"),
    ("https://a.com/?key=AIza&password=hunter2&pwd=x", "https://a.com/?key=…&password=…&pwd=…"),
    (
        "https://s3.com/f?X-Amz-Signature=ab&X-Amz-Date=1",
        "https://s3.com/f?X-Amz-Signature=…&X-Amz-Date=1",
    ),
    (
        "https://a.com/?AWSAccessKeyId=AK&client_secret=s",
        "https://a.com/?AWSAccessKeyId=…&client_secret=…",
    ),
    ("[a](https://a.com/?token=abc) b", "[a](https://a.com/?token=…) b"),
    ('<a href="https://a.com/?a=1&amp;token=abc">', '<a href="https://a.com/?a=1&amp;token=…">'),
    ("见https://a.com/?token=abc，然后再说", "见https://a.com/?token=…，然后再说"),
    (
        "one https://a.com/?token=a two https://u@b.com three",
        "one https://a.com/?token=… two https://…@b.com three",
    ),
]
KEPT = [
    "https://medium.com/@user/post",
    "https://a.com/?keyword=x&monkey=1&tokens=5&author=me&passage=2",
    "https://a.com/?q=a@b.com",
    "见https://a.com，邮箱b@c.com",
    "mail me@a.com or git@github.com:a/b",
    "token=abc and password=x outside of any address",
    "https://a.com/a/b?x=1#y",
]  # fmt: skip


@pytest.mark.parametrize(("text", "safe"), HIDDEN)
def test_what_opens_an_account_is_hidden(text: str, safe: str) -> None:
    assert redacted(text) == safe
    assert redacted(safe) == safe


@pytest.mark.parametrize("text", KEPT)
def test_other_text_stays(text: str) -> None:
    assert redacted(text) == text


def test_header_and_text_are_made_safe() -> None:
    text = header(
        DEFAULTS, url="https://u:p@a.com/?token=x", title="https://b.com/?key=1", mode="m",
        body="see https://c.com/?password=2",
    )  # fmt: skip
    assert "URL: https://…@a.com/?token=…\nTitle: https://b.com/?key=…\n" in text
    assert text.endswith("see https://c.com/?password=…")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000 + "://",
        "http://" + "a" * 300_000,
        "http://a.com/?" + "token" * 60_000,
        "http://" + "a:" * 150_000,
        "x://" * 75_000,
        f"{PREFIX}\nURL: u\n" + "Mode: \n" * 50_000,
    ],
    ids=["letters", "host", "names", "users", "schemes", "modes"],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    redacted(text)
    split_header(text)
    # Not a measurement: work that grows with the square of the length would take minutes.
    assert time.process_time() - began < 10
