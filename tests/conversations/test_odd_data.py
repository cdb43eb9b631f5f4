"""What nobody plans for and data holds: rows twice, odd ids, text that looks like a token."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversations.chat import Chat, assistant, check_store, image, picture, text, user
from tests.harness.sidekeep_host import Sandbox, refused


@pytest.mark.parametrize(
    "sentence",
    ["sidekeep:" + " " * 70, "sidekeep:" + "你好" * 40, "sidekeep:AAAA" + "!" * 70],
    ids=["blanks", "Chinese", "marks"],
)
async def test_a_sentence_after_the_word_of_tokens_is_text(chat: Chat, sentence: str) -> None:
    await chat.append(user(sentence))
    await chat.host.set({"draft": sentence})
    assert await chat.history() == [user(sentence)]
    assert await chat.plain("draft") == sentence


async def test_a_token_that_was_edited_is_text(chat: Chat) -> None:
    await chat.append(user([image(picture(1))]))
    (left,) = (await chat.listed(pixels="none"))["images"]
    edited = left["ref"][:20] + " " + left["ref"][20:]
    await chat.append(user(edited))
    assert (await chat.history())[1] == user(edited)


async def test_a_row_that_is_there_twice_is_there_once_when_the_other_goes(chat: Chat) -> None:
    first = {"id": "a", "name": "first", "createdAt": 1}
    second = {"id": "a", "name": "second", "createdAt": 2}
    await chat.host.set({"savedSessions": [first, second], "session_a": [user("x")]})
    assert [row["name"] for row in await chat.sessions()] == ["second"]
    await chat.host.set({"savedSessions": [{**first, "name": "renamed"}, second]})
    assert [row["name"] for row in await chat.sessions()] == ["second"]
    await chat.host.set({"savedSessions": [first]})
    assert [row["name"] for row in await chat.sessions()] == ["first"]
    await chat.host.set({"savedSessions": []})
    assert await chat.sessions() == []


@pytest.mark.parametrize("history", [None, [user("old")]], ids=["with a body", "of the old kind"])
async def test_an_id_too_long_for_a_key_names_no_session(chat: Chat, history: Any) -> None:
    row = {"id": "i" * 500, "name": "n", "createdAt": 1}
    if history is not None:
        row["history"] = history
    await chat.host.set({"savedSessions": [row], "history": [user("a")]})
    saved = await chat.call("sessions.save", id="i" * 500)
    assert saved["id"] != "i" * 500
    assert len(await chat.host.keys()) == (3 if history is None else 4)
    plain = await chat.plain("savedSessions")
    if history is None:
        assert plain[0] == row
    else:  # split under an id that was made for it, like a row without one
        assert await chat.plain(f"session_{plain[0]['id']}") == history


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("list", {}),
        ("load", {"id": "a"}),
        ("get", {"id": "a"}),
        ("append", {"id": "a", "entries": [1]}),
        ("rename", {"id": "a", "name": "x"}),
        ("pin", {"id": "a", "pinned": True}),
        ("delete", {"id": "a"}),
        ("clear", {}),
        ("save", {}),
    ],
)
async def test_calls_for_sessions_are_refused_while_the_index_is_no_array(
    chat: Chat, method: str, params: dict[str, Any]
) -> None:
    await chat.host.set({"savedSessions": "text", "history": [user("a")], "session_a": [1]})
    with refused("conflict"):
        await chat.call(f"sessions.{method}", **params)
    assert await chat.host.get() == {
        "savedSessions": "text",
        "history": [user("a")],
        "session_a": [1],
    }


async def test_an_old_row_whose_body_is_no_array_holds_the_others_not_up(chat: Chat) -> None:
    rows: list[Any] = [
        {"id": name, "name": name, "createdAt": 1, "history": [user(name)]} for name in "ab"
    ]
    await chat.host.set({"savedSessions": rows, "session_a": "text"})
    (one,) = (await chat.call("sessions.get", id="b"))["entries"]
    assert one["entry"] == user("b")
    assert await chat.plain("session_a") == "text"
    assert (await chat.plain("savedSessions"))[0] == rows[0]
    with refused("conflict"):
        await chat.call("sessions.get", id="a")
    await chat.host.remove("session_a")
    (one,) = (await chat.call("sessions.get", id="a"))["entries"]
    assert one["entry"] == user("a")


async def test_what_an_old_row_held_beside_its_body_comes_back_in_order(chat: Chat) -> None:
    history = [user(str(number)) for number in range(5)]
    row = {"id": "a", "name": "n", "createdAt": 1, "history": history}
    await chat.host.set({"savedSessions": [row], "session_a": [user("BODY")]})
    await chat.sessions()
    assert (await chat.plain("savedSessions"))[0]["textDigest"] == "body\n"
    await chat.call("sessions.restore", id="a")
    assert await chat.plain("session_a") == [*history, user("BODY")]


async def test_one_session_of_many_comes_back_when_only_the_trash_holds_them(chat: Chat) -> None:
    ids = []
    for number in range(3):
        await chat.append(user([image(picture(number, 3_000_000))]))
        ids.append((await chat.call("sessions.save"))["id"])
        await chat.call("history.clear")
    await chat.call("sessions.clear")
    for number in range(3):  # the journal forgets what weighs as much
        await chat.host.set({"x": str(number) * 3_000_000})
    assert (await chat.host.status())["journal"]["rows"] < 4
    for number, session in enumerate(ids):
        await chat.call("sessions.restore", id=session)
        body = await chat.plain(f"session_{session}")
        assert body == [user([image(picture(number, 3_000_000))])]
    assert len(await chat.sessions()) == 3


async def test_restoring_a_session_that_was_written_again_gives_no_second_row(chat: Chat) -> None:
    await chat.append(user("x"))
    row = await chat.call("sessions.save", name="one")
    plain = await chat.plain("savedSessions")
    await chat.call("sessions.delete", id=row["id"])
    await chat.host.set({"savedSessions": plain})
    await chat.call("sessions.restore", id=row["id"])
    assert await chat.plain("savedSessions") == plain
    assert await chat.plain(f"session_{row['id']}") == [user("x")]


async def test_an_entry_of_another_shape_is_not_taken_for_a_change_of_a_former_one(
    chat: Chat,
) -> None:
    old: list[dict[str, Any]] = [
        {"role": "user", "parts": ["a"]},
        {"role": "model", "parts": ["b"]},
        {"text": "c"},
    ]
    await chat.host.set({"history": old})
    ids = await chat.ids()
    await chat.host.set({"history": [{**old[0], "seen": True}, *old[1:]]})
    assert await chat.ids() == ids
    await chat.host.set({"history": [{"role": "user", "parts": ["new"]}, {"text": "new"}]})
    assert (await chat.call("history.undo"))["restored"] == ids
    history = await chat.history()
    assert all(entry in history for entry in old[1:])


async def test_an_entry_that_lost_its_picture_is_not_taken_for_the_one_that_had_it(
    chat: Chat,
) -> None:
    entry = user([text("see"), image(picture(1))])
    ids = await chat.append(entry, user("b"))
    await chat.host.set({"history": [user([text("see"), text("[image 1]")]), user("b")]})
    assert (await chat.ids())[1] == ids[1]
    assert (await chat.call("history.undo"))["restored"] == ids[:1]
    history = await chat.history()
    assert entry in history


async def test_entries_that_all_changed_keep_their_ids_however_many_went_before_them(
    chat: Chat,
) -> None:
    entries = [user(f"m{number}") for number in range(300)]
    ids = await chat.append(*entries)
    await chat.host.set({"history": [{**entry, "seen": True} for entry in entries[150:]]})
    assert await chat.ids() == ids[150:]


async def test_undo_leaves_another_conversation_out_of_the_live_one(chat: Chat) -> None:
    await chat.append(user("A"), assistant("a"))
    first = await chat.call("sessions.save")
    await chat.call("history.clear")
    ids = await chat.append(user("B"))
    await chat.call("sessions.load", id=first["id"])
    assert (await chat.call("history.undo"))["restored"] == []  # of A, and there already
    with refused("notFound"):
        await chat.call("history.undo")
    assert await chat.history() == [user("A"), assistant("a")]
    await chat.call("history.remove", index=0)
    await chat.call("history.undo")
    assert await chat.history() == [user("A"), assistant("a")]
    await chat.call("history.clear")
    await chat.call("history.undo")
    assert await chat.history() == [user("A"), assistant("a")]
    assert all(
        item["what"] != "history.remove" for item in (await chat.call("trash.list"))["items"]
    )
    assert ids[0] not in await chat.ids()


async def test_an_empty_history_that_becomes_another_value_is_told(chat: Chat) -> None:
    await chat.host.set({"history": []})
    await chat.call("history.watch")
    await chat.host.set({"history": "text"})
    await chat.host.until(lambda: bool(chat.host.notifications))
    assert chat.host.notifications[0]["params"]["what"] == "clear"


async def test_saving_what_was_changed_and_changed_back_is_no_change(chat: Chat) -> None:
    (identity,) = await chat.append(user("a"))
    row = await chat.call("sessions.save")
    await chat.call("history.update", id=identity, entry=user("b"))
    await chat.call("history.update", id=identity, entry=user("a"))
    before = (await chat.host.status())["journal"]["last"]
    assert await chat.call("sessions.save", id=row["id"]) == row
    assert (await chat.host.status())["journal"]["last"] == before


async def test_the_newest_snapshot_of_a_conversation_is_the_one_that_keeps_its_word(
    chat: Chat,
) -> None:
    await chat.append(user("a"))
    older = await chat.call("sessions.save")
    await chat.append(user("b"))
    word = (await chat.listed())["conversation"]
    loaded = await chat.call("sessions.load", id=older["id"])
    assert loaded["conversation"] != word
    assert await chat.history() == [user("a")]
    back = await chat.call("sessions.load", id=loaded["savedAs"])
    assert back["conversation"] == word
    assert await chat.history() == [user("a"), user("b")]


async def test_pictures_that_are_no_base64_have_no_thumbnail_and_the_host_lives(
    sandbox: Sandbox,
) -> None:
    sandbox.libraries.append("PIL")
    sandbox.write()
    bodies = ["A" * 5_001, "A" * 5_002, "é" * 5_002, '\\"' * 5_002, "%" * 5_002, " " * 5_000]
    entries = [
        user([image(f"data:image/png{coding},{body}")])
        for body in bodies
        for coding in (";base64", "")
    ]
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.append(*entries)
        for one in (await chat.listed(pixels="thumbnail"))["images"]:
            assert (await chat.call("images.thumbnail", ref=one["ref"]))["none"].strip()
        assert await chat.history() == entries
    check_store(sandbox)
