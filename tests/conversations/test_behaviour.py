"""How conversations behave where the reference loses them: several hosts, no room, old data.

What the other files of this folder test of single calls is not repeated here.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from sidekeep.store import journal, trash
from tests.conversations.chat import (
    Chat,
    assistant,
    attachment,
    check_store,
    image,
    picture,
    text,
    user,
)
from tests.conversations.model_checks import opened
from tests.harness import RpcError
from tests.harness.sidekeep_host import Sandbox, refused

MIB = 1 << 20
DAY = 24 * 3600


async def test_appends_of_two_hosts_at_once_all_stay(sandbox: Sandbox) -> None:
    async with sandbox.open() as one, sandbox.open() as two:

        async def fill(chat: Chat, name: str) -> None:
            for number in range(40):
                if number % 2:
                    await chat.append(user(f"{name}{number}"))
                else:
                    params = {"area": "local", "key": "history", "push": user(f"{name}{number}")}
                    await chat.host.call("storage.update", params)

        await asyncio.gather(fill(Chat(one), "a"), fill(Chat(two), "b"))
        contents = [entry["content"] for entry in await Chat(one).history()]
        assert sorted(contents) == sorted(f"{name}{n}" for name in "ab" for n in range(40))
        for name in "ab":
            mine = [content for content in contents if content.startswith(name)]
            assert mine == [f"{name}{n}" for n in range(40)]
    check_store(sandbox)


async def test_reading_changing_and_replacing_with_the_revision_loses_nothing(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open() as one, sandbox.open() as two:

        async def add(chat: Chat, entry: Any) -> None:
            while True:
                listed = await chat.listed()
                try:
                    await chat.call(
                        "history.replace",
                        entries=[*listed["entries"], {"entry": entry}],
                        expect=listed["revision"],
                    )
                except RpcError as error:
                    assert error.kind == "conflict"
                else:
                    return

        async def fill(chat: Chat, name: str) -> None:
            for number in range(15):
                await add(chat, user(f"{name}{number}"))

        await asyncio.gather(fill(Chat(one), "a"), fill(Chat(two), "b"))
        assert len(await Chat(one).history()) == 30
    check_store(sandbox)


async def test_a_rename_and_a_deletion_while_another_host_splits_old_rows_stand(
    sandbox: Sandbox,
) -> None:
    rows = [
        {"id": f"s{n}", "name": str(n), "createdAt": n, "history": [user("x" * 3_000)] * 5}
        for n in range(30)
    ]
    async with sandbox.open() as one, sandbox.open() as two:
        await one.set({"savedSessions": rows})
        await asyncio.gather(
            Chat(one).sessions(),
            Chat(two).call("sessions.rename", id="s29", name="renamed"),
            Chat(one).call("sessions.delete", id="s3"),
            Chat(two).call("sessions.pin", id="s0", pinned=True),
        )
        found = await Chat(one).sessions()
        assert [row["id"] for row in found[:2]] == ["s0", "s29"]
        assert found[1]["name"] == "renamed"
        assert len(found) == 29
        assert {row["entries"] for row in found} == {5}
        assert "session_s3" not in await one.keys()
    check_store(sandbox)


async def test_saving_a_session_is_one_change(chat: Chat) -> None:
    await chat.append(user("Hello"), assistant("World"))
    await chat.call("storage.watch", areas=["local"])
    row = await chat.call("sessions.save")
    await chat.host.ping()
    (event,) = chat.host.notifications
    assert sorted(event["params"]["changes"]) == ["savedSessions", f"session_{row['id']}"]


async def test_a_session_that_was_saved_and_cleared_comes_back_equal(chat: Chat) -> None:
    entries = [user("q"), assistant("a")]
    ids = await chat.append(*entries)
    row = await chat.call("sessions.save")
    await chat.call("history.clear")
    loaded = await chat.call("sessions.load", id=row["id"])
    assert (loaded["length"], loaded["savedAs"]) == (2, None)
    assert await chat.history() == entries
    assert await chat.ids() == ids


@pytest.mark.parametrize("method", ["history.append", "sessions.append"])
async def test_appending_nothing_is_refused(chat: Chat, method: str) -> None:
    await chat.append(user("q"))
    row = await chat.call("sessions.save")
    params = {"id": row["id"]} if method == "sessions.append" else {}
    wrongs: list[dict[str, Any]] = [{"entries": []}, {}, {"entries": None}, {"entries": {"0": 1}}]
    for wrong in wrongs:
        with refused("invalidParams"):
            await chat.call(method, **params, **wrong)
    assert await chat.history() == [user("q")]


async def test_a_save_that_fails_keeps_the_live_conversation_from_being_replaced(
    chat: Chat,
) -> None:
    await chat.append(user("other"))
    row = await chat.call("sessions.save")
    await chat.call("history.clear")
    await chat.append(user("live"))
    current = await chat.call("sessions.save")
    # Nothing can be saved into what is no array.
    await chat.host.set({f"session_{current['id']}": "text", "activeSessionId": current["id"]})
    before = await chat.host.get()
    with refused("conflict"):
        await chat.call("sessions.load", id=row["id"])
    assert await chat.host.get() == before
    await chat.call("sessions.load", id=row["id"], saveCurrent=False)
    assert await chat.history() == [user("other")]


async def test_an_old_row_for_which_there_is_no_room_waits_and_the_others_are_split(
    sandbox: Sandbox,
) -> None:
    sandbox.limits |= {"map_size": MIB, "max_size": 4 * MIB}
    sandbox.write()
    rows: list[Any] = [
        {"id": "a", "name": "a", "createdAt": 1, "history": [user("first")]},
        {
            "id": "big",
            "name": "big",
            "createdAt": 2,
            "history": [user(str(n)) for n in range(30_000)],
        },
        {"id": "c", "name": "c", "createdAt": 3, "history": [user("last")]},
    ]
    async with sandbox.open() as host:
        chat = Chat(host)
        await host.set({"savedSessions": rows})
        assert [row["entries"] for row in await chat.sessions()] == [1, 0, 1]
        assert (await chat.plain("savedSessions"))[1] == rows[1]
        assert await chat.plain("session_c") == [user("last")]
        await chat.call("sessions.rename", id="c", name="served")
        with refused("notFound"):
            await chat.call("sessions.load", id="big")
    check_store(sandbox)
    sandbox.limits["max_size"] = 200 * MIB
    sandbox.write()
    async with sandbox.open() as host:
        assert [row["entries"] for row in await Chat(host).sessions()] == [1, 30_000, 1]
        assert await Chat(host).plain("session_big") == rows[1]["history"]
    check_store(sandbox)


async def test_pictures_do_not_count_as_text(chat: Chat) -> None:
    shot = picture(1, 300_000)
    entries = [user([text("hi"), image(shot)]), user("x")]
    await chat.append(*entries)
    row = await chat.call("sessions.save")
    assert row["bytes"]["text"] < 300
    assert await chat.history() == entries


async def test_a_picture_may_stand_anywhere_in_an_entry(chat: Chat) -> None:
    shots = [picture(number, 5_000) for number in range(4)]
    entry = {
        "content": [text("b"), {"type": "image_url", "image_url": shots[0]}],
        "role": "user",
        "sent": {"deep": [[shots[1]], {"er": shots[2]}]},
        "thumb": shots[3],
    }
    await chat.append(entry)
    images = (await chat.listed(pixels="none"))["images"]
    assert [one["path"] for one in images] == [
        ["content", 1, "image_url"],
        ["sent", "deep", 0, 0],
        ["sent", "deep", 1, "er"],
        ["thumb"],
    ]
    assert [(await chat.call("images.get", ref=one["ref"]))["url"] for one in images] == shots
    assert await chat.history() == [entry]


async def test_the_only_picture_is_delivered_whole_whatever_the_budget(chat: Chat) -> None:
    entry = user([image(picture(1, 900_000)), image(picture(2, 900_000))])
    await chat.append(user("before"), entry, assistant("after"))
    listed = await chat.listed(pixels="bounded", budget=10)
    assert [one["entry"] for one in listed["entries"]][1] == entry
    assert listed["images"] == []


async def test_a_picture_without_a_preview_loses_nothing_to_the_budget(chat: Chat) -> None:
    broken, newest = picture(1, 50_000), picture(2, 50_000)
    entries = [user([text("old"), image(broken)]), user([image(newest)])]
    await chat.append(*entries)
    listed = await chat.listed(pixels="bounded", budget=1_000)
    (left,) = listed["images"]
    assert left["state"] == "none"
    assert (await chat.call("images.get", ref=left["ref"]))["url"] == broken
    assert await chat.history() == entries


async def test_an_attached_page_of_any_length_displaces_nothing(chat: Chat) -> None:
    page = attachment("https://a", "A", "x" * 2_000_000, attachId="p")
    await chat.append(*[user(f"m{n}") for n in range(20)], page, user("after"))
    assert len(await chat.history()) == 22
    assert (await chat.call("history.remove", attachId="p"))["index"] == 20
    assert len(await chat.history()) == 21


async def test_what_lies_in_the_trash_for_thirty_days_is_forgotten(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.append(user([image(picture(1))]), user("b"))
        await chat.call("history.remove", index=0)
        (item,) = (await chat.call("trash.list"))["items"]
        assert item["until"] - item["time"] == 30 * DAY * 1000
        store = opened(sandbox.store_file())
        try:
            assert store.write(lambda one: trash.expire(one, now=time.time() + 29 * DAY)) == 0
            assert store.write(lambda one: trash.expire(one, now=time.time() + 31 * DAY)) == 1
            store.write(lambda one: journal.trim(one, keep=0))
        finally:
            store.close()
        assert (await chat.call("trash.list"))["items"] == []
        assert (await host.status())["blobs"] == 0
        with refused("notFound"):
            await chat.call("history.undo")
    check_store(sandbox)
