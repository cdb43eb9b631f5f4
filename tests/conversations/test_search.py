"""Searching saved sessions: names, text, attachments; every script; where the hit is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversations.chat import Chat, assistant, attachment, text, user


async def saved(chat: Chat, *entries: Any, name: str = "-") -> str:
    """Save a session of its own and return its id."""
    await chat.call("history.clear")
    await chat.append(*entries)
    row = await chat.call("sessions.save", name=name)
    identity = row["id"]
    assert isinstance(identity, str)
    return identity


async def test_names_come_before_text_and_text_before_attachments(chat: Chat) -> None:
    page = attachment("https://a", "A", "a needle in a haystack")
    in_page = await saved(chat, page, user("q"))
    in_text = await saved(chat, page, assistant("The Needle."))
    in_name = await saved(chat, assistant("needle"), name="My NEEDLE")
    await saved(chat, user("nothing"))
    result = await chat.call("sessions.list", query="  needle  ")
    assert result["total"] == 3
    hits = {row["id"]: row["hit"] for row in result["rows"]}
    assert [row["id"] for row in result["rows"]] == [in_name, in_text, in_page]
    assert hits[in_name] == {"in": "name", "entryId": None, "excerpt": "My NEEDLE"}
    assert hits[in_text]["in"] == "text"
    assert hits[in_text]["excerpt"] == "The Needle."
    assert hits[in_page]["in"] == "attachment"
    assert "needle in a haystack" in hits[in_page]["excerpt"]
    second = (await chat.call("sessions.get", id=in_text))["entries"][1]["id"]
    assert hits[in_text]["entryId"] == second


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("The system was testing it", "est"),
        ("a TEST", "test"),
        ("我们正在测试这个系统", "测试"),
        ("このシステムをテストしています", "テス"),
        ("이 시스템을 테스트하고 있습니다", "스트"),
        ("เรากำลังทดสอบระบบนี้", "ทดสอบ"),
        ("ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("cafe\u0301", "CAFÉ"),
        ("party 🎉🎉", "🎉"),
        ("100% a_b .* [x]", "% a_b .* ["),
        ("Straße", "STRASSE"),
    ],
)
async def test_every_script_is_found_literally(chat: Chat, content: str, query: str) -> None:
    one = await saved(chat, user([text("x"), text(content)]))
    await saved(chat, user("other"))
    rows = await chat.sessions(query=query)
    assert [row["id"] for row in rows] == [one]


async def test_text_behind_a_long_page_and_beyond_the_digest_is_found(chat: Chat) -> None:
    one = await saved(chat, attachment("https://a", "A", "y" * 120_000), user("needle"))
    two = await saved(chat, user("A" * 100_000), user("needle"))
    assert {row["id"] for row in await chat.sessions(query="needle")} == {one, two}


async def test_the_live_conversation_is_not_among_the_hits(chat: Chat) -> None:
    await chat.append(user("needle"))
    assert await chat.call("sessions.list", query="needle") == {"rows": [], "total": 0}
    await chat.call("sessions.save")
    assert len(await chat.sessions(query="needle")) == 1
    await chat.call("sessions.delete", id=(await chat.sessions())[0]["id"])
    assert await chat.sessions(query="needle") == []


async def test_hits_are_paged_like_the_list(chat: Chat) -> None:
    for number in range(5):
        await saved(chat, user("needle"), name=str(number))
    result = await chat.call("sessions.list", query="needle", offset=1, limit=2)
    assert result["total"] == 5
    assert [row["name"] for row in result["rows"]] == ["3", "2"]
    assert all(row["hit"]["excerpt"] == "needle" for row in result["rows"])


async def test_an_own_prefix_of_attachments_is_respected(chat: Chat) -> None:
    await saved(chat, user("[My page]\nneedle"))
    (row,) = await chat.sessions(query="needle")
    assert row["hit"]["in"] == "text"
