"""Saved sessions: index and bodies, saving and loading, names, order, undo."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversations.chat import (
    PREFIX,
    Chat,
    assistant,
    attachment,
    image,
    picture,
    text,
    user,
)
from tests.harness.sidekeep_host import refused


async def test_an_empty_history_is_not_saved(chat: Chat) -> None:
    assert await chat.call("sessions.save", name="n") is None
    await chat.host.set({"history": []})
    assert await chat.call("sessions.save") is None
    assert await chat.host.keys() == ["history"]


async def test_a_saved_session_is_a_row_and_a_body(chat: Chat) -> None:
    await chat.append(user("Hello"), assistant("World"))
    row = await chat.call("sessions.save")
    (plain,) = await chat.plain("savedSessions")
    assert plain == {
        "createdAt": row["createdAt"],
        "id": row["id"],
        "name": "Hello",
        "pinned": False,
        "textDigest": "hello\nworld\n",
    }
    assert await chat.plain(f"session_{row['id']}") == [user("Hello"), assistant("World")]
    assert row["entries"] == 2
    assert row["bytes"]["own"] == row["bytes"]["shared"] == 0
    assert await chat.plain("activeSessionId") is None


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        ([user(PREFIX + "\ndump"), user("What is the capital of France?")], None),
        ([user("a" * 49)], "a" * 48 + "…"),
        ([user("a" * 48)], "a" * 48),
        ([user("a" + "😀" * 60)], "a" + "😀" * 39 + "…"),
        ([user([text("look"), image("u")])], "look"),
        ([assistant("x"), user("  two \n words ")], "two words"),
    ],
)
async def test_the_first_question_names_a_session(
    chat: Chat, entries: list[Any], name: str | None
) -> None:
    await chat.append(*entries)
    row = await chat.call("sessions.save")
    assert row["name"] == (name or "What is the capital of France?")


async def test_without_a_question_the_date_names_it(chat: Chat) -> None:
    await chat.append(user("  "), attachment("https://a", "A", "x"))
    name = (await chat.call("sessions.save"))["name"]
    assert len(name) == len("2026-12-01 12:00")
    assert name[4] == "-"


async def test_pinned_first_then_the_newest(chat: Chat) -> None:
    await chat.append(user("x"))
    first = await chat.call("sessions.save", name="First")
    await chat.call("sessions.save", name="Second")
    assert [row["name"] for row in await chat.sessions()] == ["Second", "First"]
    pinned = await chat.call("sessions.pin", id=first["id"], pinned=True)
    assert pinned["row"]["pinned"] is True
    assert [row["name"] for row in await chat.sessions()] == ["First", "Second"]
    assert [row["name"] for row in await chat.sessions(offset=1, limit=1)] == ["Second"]
    assert all("hit" not in row and "history" not in row for row in await chat.sessions())


async def test_saving_into_a_session_keeps_its_name_date_and_pin(chat: Chat) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save", name="My session")
    await chat.call("sessions.pin", id=row["id"], pinned=True)
    await chat.append(assistant("a"))
    again = await chat.call("sessions.save", id=row["id"])
    assert (again["id"], again["name"], again["createdAt"], again["pinned"]) == (
        row["id"],
        "My session",
        row["createdAt"],
        True,
    )
    (plain,) = await chat.plain("savedSessions")
    assert plain["textDigest"] == "q\na\n"
    assert await chat.plain(f"session_{row['id']}") == [user("q"), assistant("a")]


async def test_an_unknown_id_makes_a_new_session(chat: Chat) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save", id="deleted")
    assert row["id"] != "deleted"
    assert len(await chat.sessions()) == 1


async def test_fields_of_others_in_a_row_stay(chat: Chat) -> None:
    rows: list[Any] = [
        {"id": "s1", "name": "A", "createdAt": 1, "pinned": False, "agentContextId": "c"},
        None,
        {"name": "no id"},
        "text",
    ]
    await chat.host.set({"savedSessions": rows, "session_s1": [user("x")]})
    await chat.call("sessions.rename", id="s1", name="B")
    await chat.call("sessions.append", id="s1", entries=[assistant("Y")])
    changed = await chat.plain("savedSessions")
    assert changed[0] == {**rows[0], "name": "B", "textDigest": "x\ny\n"}
    assert changed[1:] == rows[1:]
    (row,) = await chat.sessions()
    assert (row["name"], row["entries"]) == ("B", 2)


async def test_loading_puts_the_body_in_place_and_saves_what_was_there(chat: Chat) -> None:
    shot = picture(1)
    first = [user([text("see"), image(shot)], imagesSeen=True), assistant("a")]
    ids = await chat.append(*first)
    saved = await chat.call("sessions.save", name="first")
    await chat.call("history.clear")
    await chat.append(user("other"))
    result = await chat.call("sessions.load", id=saved["id"])
    assert result["length"] == 2
    assert await chat.history() == first
    assert await chat.ids() == ids
    assert await chat.plain("activeSessionId") == saved["id"]
    other = (await chat.call("sessions.get", id=result["savedAs"]))["entries"]
    assert [one["entry"] for one in other] == [user("other")]
    await chat.append(user("more"))
    back = await chat.call("sessions.load", id=result["savedAs"])
    assert back["savedAs"] == saved["id"]
    assert len(await chat.sessions()) == 2
    body = await chat.plain(f"session_{saved['id']}")
    assert body == [*first, user("more")]


async def test_a_conversation_keeps_its_word_when_saved_and_loaded(chat: Chat) -> None:
    word = (await chat.listed())["conversation"]
    await chat.append(user("a"))
    saved = await chat.call("sessions.save")
    await chat.call("history.clear")
    loaded = await chat.call("sessions.load", id=saved["id"], saveCurrent=False)
    assert loaded["conversation"] == word
    assert loaded["savedAs"] is None


async def test_loading_what_is_not_there_changes_nothing(chat: Chat) -> None:
    await chat.append(user("a"))
    await chat.host.set({"savedSessions": [{"id": "s1", "name": "n", "createdAt": 1}]})
    for missing in ("nobody", "s1"):
        with refused("notFound"):
            await chat.call("sessions.load", id=missing)
    assert await chat.history() == [user("a")]
    assert len(await chat.sessions()) == 1
    await chat.host.set({"session_s1": []})
    assert (await chat.call("sessions.load", id="s1"))["length"] == 0


async def test_names_are_cut_and_may_be_empty(chat: Chat) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save")
    renamed = await chat.call("sessions.rename", id=row["id"], name="z" * 200)
    assert renamed["row"]["name"] == "z" * 80
    assert (await chat.call("sessions.rename", id=row["id"], name=""))["row"]["name"] == ""
    with refused("notFound"):
        await chat.call("sessions.rename", id="nobody", name="x")
    with refused("notFound"):
        await chat.call("sessions.append", id="nobody", entries=[user("x")])


async def test_fifty_and_more_sessions_all_stay(chat: Chat) -> None:
    await chat.append(user("q"))
    for _ in range(55):
        row = await chat.call("sessions.save")
        await chat.call("sessions.pin", id=row["id"], pinned=True)
    assert len(await chat.sessions()) == 55


async def test_a_deleted_session_comes_back_whole(chat: Chat) -> None:
    shot = picture(2)
    await chat.append(user([text("see"), image(shot)]), assistant("a"))
    row = await chat.call("sessions.save", name="one")
    await chat.call("sessions.save", name="two")
    deleted = await chat.call("sessions.delete", id=row["id"])
    assert [one["name"] for one in await chat.sessions()] == ["two"]
    assert f"session_{row['id']}" not in await chat.host.keys()
    (item,) = (await chat.call("trash.list"))["items"]
    assert (item["undo"], item["what"], item["entries"]) == (
        deleted["undo"],
        "sessions.delete",
        2,
    )
    assert item["sessions"] == [{"id": row["id"], "name": "one"}]
    restored = await chat.call("sessions.restore", id=row["id"])
    assert restored["row"]["name"] == "one"
    body = await chat.plain(f"session_{row['id']}")
    assert body[0]["content"][1] == image(shot)
    assert [one["name"] for one in await chat.plain("savedSessions")] == ["one", "two"]
    assert (await chat.call("trash.list"))["items"] == []
    with refused("notFound"):
        await chat.call("sessions.restore", id=row["id"])


@pytest.mark.parametrize("by", ["id", "undo"])
async def test_deleting_a_session_takes_all_its_rows_and_brings_the_one_that_counts_back(
    chat: Chat, by: str
) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save", name="one")
    await chat.call("sessions.save", name="between")
    first, between = await chat.plain("savedSessions")
    twice = [{**first, "name": "two"}, between, first, {**first, "name": "three"}]
    await chat.host.set({"savedSessions": twice})
    undo = (await chat.call("sessions.delete", id=row["id"]))["undo"]
    assert await chat.plain("savedSessions") == [between]
    assert f"session_{row['id']}" not in await chat.host.keys()
    await chat.call("sessions.restore", **({"id": row["id"]} if by == "id" else {"undo": undo}))
    names = [one["name"] for one in await chat.plain("savedSessions")]
    assert names == ["between", "three"]
    assert await chat.plain(f"session_{row['id']}") == [user("q")]


async def test_what_is_appended_to_a_session_without_a_digest_makes_one_of_its_whole_body(
    chat: Chat,
) -> None:
    await chat.append(user("apples"))
    row = await chat.call("sessions.save")
    (stored,) = await chat.plain("savedSessions")
    del stored["textDigest"]
    await chat.host.set({"savedSessions": [stored]})
    await chat.call("sessions.append", id=row["id"], entries=[user("pears")])
    (stored,) = await chat.plain("savedSessions")
    assert "apples" in stored["textDigest"]
    assert "pears" in stored["textDigest"]


async def test_one_of_many_cleared_sessions_comes_back(chat: Chat) -> None:
    await chat.append(user("q"))
    rows = [await chat.call("sessions.save", name=str(n)) for n in range(3)]
    undo = (await chat.call("sessions.clear"))["undo"]
    assert await chat.plain("savedSessions") == []
    assert await chat.host.keys() == ["history", "savedSessions"]
    await chat.call("sessions.restore", id=rows[1]["id"])
    assert [row["name"] for row in await chat.sessions()] == ["1"]
    await chat.call("sessions.restore", undo=undo)
    assert sorted(row["name"] for row in await chat.sessions()) == ["0", "1", "2"]


async def test_the_pointer_to_a_deleted_session_stays(chat: Chat) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save")
    await chat.call("sessions.load", id=row["id"])
    await chat.call("sessions.delete", id=row["id"])
    assert await chat.plain("activeSessionId") == row["id"]
    again = await chat.call("sessions.save", id=row["id"])
    assert again["id"] != row["id"]


async def test_bytes_tell_own_pictures_from_shared_ones(chat: Chat) -> None:
    await chat.append(user([image(picture(1, 50_000))]))
    row = await chat.call("sessions.save")
    assert row["bytes"]["shared"] == 50_000
    await chat.call("history.clear")
    (row,) = await chat.sessions()
    assert (row["bytes"]["own"], row["bytes"]["shared"]) == (50_000, 0)
    totals = (await chat.host.status())["conversations"]
    assert (totals["own"], totals["shared"]) == (50_000, 0)
    await chat.append(user([image(picture(1, 50_000))]), user([image(picture(2, 10_000))]))
    (row,) = await chat.sessions()
    assert (row["bytes"]["own"], row["bytes"]["shared"]) == (0, 50_000)
    totals = (await chat.host.status())["conversations"]
    assert (totals["own"], totals["shared"]) == (10_000, 50_000)


async def test_emptying_the_trash_frees_the_pictures(chat: Chat) -> None:
    await chat.append(user([image(picture(1, 900_000))]), user("stays"))
    await chat.call("sessions.save", name="s")
    await chat.call("history.clear")
    await chat.call("sessions.clear")
    held = (await chat.host.status())["blobBytes"]
    freed = await chat.call("trash.empty")
    assert freed == {"items": 2, "bytes": held}
    assert (await chat.host.status())["blobBytes"] == 0
    with refused("notFound"):
        await chat.call("history.undo")


async def test_the_digest_ends_at_its_cap(chat: Chat) -> None:
    await chat.append(user("A" * 100_000), user("needle"))
    row = await chat.call("sessions.save")
    (plain,) = await chat.plain("savedSessions")
    assert plain["textDigest"] == "a" * 100_000
    await chat.call("sessions.append", id=row["id"], entries=[user("more")])
    (plain,) = await chat.plain("savedSessions")
    assert plain["textDigest"] == "a" * 100_000


async def test_the_old_kind_of_rows_is_split_at_the_first_call(chat: Chat) -> None:
    legacy = [
        {"id": "s1", "name": "A", "createdAt": 1, "history": [user("Hi")]},
        None,
        {"id": "new", "name": "N", "createdAt": 2, "pinned": True, "textDigest": "x\ny\n"},
        {"name": "no id", "createdAt": 3, "history": [user("lost?")]},
        {"id": "there", "name": "T", "createdAt": 4, "history": [user("older")]},
    ]
    await chat.host.set(
        {"savedSessions": legacy, "session_new": [user("y")], "session_there": [user("body")]}
    )
    assert await chat.plain("savedSessions") == legacy
    rows = await chat.sessions()
    assert [row["name"] for row in rows] == ["N", "T", "no id", "A"]
    plain = await chat.plain("savedSessions")
    assert plain[0] == {
        "id": "s1",
        "name": "A",
        "createdAt": 1,
        "pinned": False,
        "textDigest": "hi\n",
    }
    assert plain[1:3] == legacy[1:3]
    assert await chat.plain("session_s1") == [user("Hi")]
    assert await chat.plain("session_new") == [user("y")]
    assert await chat.plain(f"session_{plain[3]['id']}") == [user("lost?")]
    assert await chat.plain("session_there") == [user("body")]
    (item,) = (await chat.call("trash.list"))["items"]
    assert item["entries"] == 1
    before = (await chat.host.status())["journal"]["last"]
    await chat.sessions()
    assert (await chat.host.status())["journal"]["last"] == before


@pytest.mark.parametrize("first", ["pin", "rename", "delete", "load", "append", "get", "save"])
async def test_every_first_call_after_an_upgrade_works(chat: Chat, first: str) -> None:
    rows: list[Any] = [
        {"id": "s1", "name": "A", "createdAt": 1, "history": [user("Hi"), assistant("x")]}
    ]
    await chat.host.set({"savedSessions": rows, "history": [user("live")]})
    fields: dict[str, dict[str, Any]] = {
        "pin": {"pinned": True},
        "rename": {"name": "B"},
        "append": {"entries": [user("more")]},
    }
    await chat.call(f"sessions.{first}", id="s1", **fields.get(first, {}))
    if first == "delete":
        await chat.call("sessions.restore", id="s1")
    body = await chat.plain("session_s1")
    assert body[:2] == [user("Hi"), assistant("x")] or first == "save"
    assert "history" not in (await chat.plain("savedSessions"))[0]
