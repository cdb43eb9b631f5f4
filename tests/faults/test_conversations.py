"""Chats as the field lost them: stale panels, dead hosts, deleted pages, long histories."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sidekeep.store import backup
from sidekeep.store.environment import Store
from tests.conversations.chat import Chat, assistant, check_store, image, picture, text, user
from tests.harness.sidekeep_host import EXTENSION_ID, Sandbox, refused

Entry = dict[str, Any]
MIB = 1 << 20


def size(value: object) -> int:
    """Return the bytes of a value's JSON text."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def digest(value: str) -> str:
    """Return the hash by which pictures are compared."""
    return hashlib.sha256(value.encode()).hexdigest()


# A panel that stayed open while the host was restarted


@pytest.mark.parametrize("saved", ["empty", "only the new message", "an old copy"])
@pytest.mark.parametrize("way", ["history.replace", "storage.set with expect", "storage.set"])
async def test_a_panel_that_saves_what_it_remembers_costs_no_message(
    sandbox: Sandbox, saved: str, way: str
) -> None:
    messages = [user(f"message {number}") for number in range(60)]
    async with sandbox.open() as host:
        panel = Chat(host)
        await panel.append(*messages[:40])
        remembered = (await panel.listed())["revision"]
        await panel.append(*messages[40:])
    new = user("new")
    stale: list[Entry] = {
        "empty": [],
        "only the new message": [new],
        "an old copy": [*messages[:40], new],
    }[saved]
    async with sandbox.open() as host:
        panel = Chat(host)
        if way == "history.replace":
            with refused("conflict"):
                entries = [{"entry": one} for one in stale]
                await panel.call(way, entries=entries, expect=remembered)
        elif way == "storage.set with expect":
            with refused("conflict"):
                await host.call(
                    "storage.set",
                    {
                        "area": "local",
                        "items": {"history": stale},
                        "expect": {"history": remembered},
                    },
                )
        else:  # what chrome.storage does; the messages can be brought back
            await host.set({"history": stale})
            await panel.call("history.undo")
        if new not in await panel.history():
            await panel.append(new)
        history = await panel.history()
        assert sorted(map(str, history)) == sorted(map(str, [*messages, new]))
        assert [one for one in history if one != new] == messages
    check_store(sandbox)


async def test_everything_acknowledged_is_there_after_a_death_right_behind_it(
    sandbox: Sandbox,
) -> None:
    expected: list[Entry] = []
    for number in range(12):
        host = await sandbox.host().__aenter__()
        await host.hello()
        chat = Chat(host)
        assert await chat.history() == expected
        entry = user([text(str(number)), image(picture(number, 50_000))])
        await chat.append(entry)
        host.kill()
        await host.close()
        expected.append(entry)
        if number == 5:
            async with sandbox.open() as other:
                row = await Chat(other).call("sessions.save")
                await Chat(other).call("sessions.load", id=row["id"])
    async with sandbox.open() as host:
        assert await Chat(host).history() == expected
        assert await Chat(host).plain("activeSessionId") == row["id"]
    check_store(sandbox)


# Size of what is read


@pytest.mark.parametrize(
    ("chats", "pictures", "length"),
    [(300, 1, 20_000), pytest.param(300, 5, 1_000_000, marks=pytest.mark.long)],
)
async def test_the_list_of_chats_and_an_opened_chat_carry_no_pictures(
    sandbox: Sandbox, chats: int, pictures: int, length: int
) -> None:
    async with sandbox.open() as host:
        chat = Chat(host)
        for number in range(chats):
            await chat.call("history.clear")
            shots = [picture(number * 10 + one, length) for one in range(pictures)]
            await chat.append(
                user([text(f"question {number}"), *map(image, shots)]), assistant("answer")
            )
            row = await chat.call("sessions.save")
        rows = await chat.call("sessions.list")
        assert len(rows["rows"]) == chats
        assert size(rows) <= 300_000
        before = host.bytes_received
        opened = await chat.call("sessions.get", id=row["id"], pixels="thumbnail")
        assert host.bytes_received - before < 10_000
        assert len(opened["images"]) == pictures
        for one, shot in zip(opened["images"], shots, strict=True):
            assert (await chat.call("images.get", ref=one["ref"]))["url"] == shot
    check_store(sandbox)


@pytest.mark.parametrize("messages", [10_000])
async def test_pages_of_a_long_chat_have_no_gaps_while_messages_arrive(
    sandbox: Sandbox, messages: int
) -> None:
    entries = [user(f"message {number} " + "x" * 200) for number in range(messages)]
    async with sandbox.open() as writer, sandbox.open() as host:
        for start in range(0, messages, 1000):
            await Chat(writer).append(*entries[start : start + 1000])
        before = host.bytes_received
        page = (await Chat(host).listed(offset=-50))["entries"]
        assert host.bytes_received - before <= 50 * (size(entries[-1]) + 100)
        seen = page
        arrived = 0
        while page:
            if arrived < 20:
                await Chat(writer).append(user(f"later {arrived}"))
                arrived += 1
            page = (await Chat(host).listed(before=seen[0]["id"], limit=250))["entries"]
            seen = page + seen
        assert [one["entry"] for one in seen] == entries
        assert len({one["id"] for one in seen}) == messages
        after = (await Chat(host).listed(after=seen[-1]["id"]))["entries"]
        assert [one["entry"] for one in after] == [user(f"later {n}") for n in range(arrived)]
    check_store(sandbox)


# Pictures and turns


def attached() -> list[str]:
    """Return data URLs of the types and sizes that people attach, from 1 byte to 12 MB."""
    dice = random.Random(75)
    types = ["image/png", "image/jpeg", "image/webp", "image/gif"]
    sizes = [1, 100, 3_000, 3_100, 70_000, 300_000, 12_000_000]
    urls = []
    for number, length in enumerate(sizes):
        content = base64.b64encode(dice.randbytes(length)).decode()
        urls.append(f"data:{types[number % len(types)]};base64,{content}")
    drawing = "<svg xmlns='http://www.w3.org/2000/svg'>" + "<g/>" * 3_000 + "</svg>"
    urls.append("data:image/svg+xml;utf8," + drawing)
    urls.append("data:image/svg+xml;base64," + base64.b64encode(drawing.encode()).decode())
    return urls


async def test_attached_pictures_stay_as_sent_through_answers_edits_and_restarts(
    sandbox: Sandbox,
) -> None:
    urls = attached()
    hashes = list(map(digest, urls))
    entries = [user([text(f"picture {n}"), image(url)]) for n, url in enumerate(urls)]
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.append(*entries, user("what is on them?"))
        (answer,) = await chat.append(assistant("a first answer"))
        await chat.call("history.truncate", from_=answer)  # regenerated
        await chat.append(assistant("another answer"))
        listed = (await chat.listed(pixels="none"))["entries"]
        for one in listed[: len(urls)]:  # edited by a panel that has only tokens
            parts = one["entry"]["content"]
            edited = [text(parts[0]["text"] + ", edited"), *parts[1:]]
            await chat.call("history.update", id=one["id"], merge={"content": edited})
        row = await chat.call("sessions.save")
        host.kill()
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.call("history.clear")
        await chat.call("trash.empty")
        await chat.call("sessions.load", id=row["id"])
        history = await chat.history()
        assert [one["content"][0]["text"] for one in history[: len(urls)]] == [
            f"picture {n}, edited" for n in range(len(urls))
        ]
        found = [one["content"][1]["image_url"]["url"] for one in history[: len(urls)]]
        assert list(map(digest, found)) == hashes
        assert history[-1] == assistant("another answer")
    check_store(sandbox)


async def test_regenerating_and_editing_leave_each_message_once(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        chat = Chat(host)
        (question,) = await chat.append(user("question"))
        undo = []
        seen = {question}
        for number in range(4):
            (answer,) = await chat.append(assistant(f"answer {number}"))
            assert answer not in seen
            seen.add(answer)
            if number < 3:
                undo.append((await chat.call("history.truncate", from_=answer))["undo"])
        assert await chat.history() == [user("question"), assistant("answer 3")]
        undo.append((await chat.call("history.truncate", from_=question))["undo"])
        (edited,) = await chat.append(user("question, edited"))
        assert edited not in seen
        await chat.append(assistant("answer to it"))
        assert await chat.history() == [user("question, edited"), assistant("answer to it")]
        versions = (await chat.call("trash.list"))["items"]
        assert [item["undo"] for item in versions] == undo[::-1]
        assert [item["entries"] for item in versions] == [2, 1, 1, 1]
    check_store(sandbox)


# Two panels


async def test_two_panels_that_change_one_chat_lose_and_revive_nothing(sandbox: Sandbox) -> None:
    async with sandbox.open() as one, sandbox.open() as two:
        ids = await Chat(one).append(*[user(f"message {n}") for n in range(1, 6)])
        for host in (one, two):
            await Chat(host).call("history.watch")
        added = await Chat(one).append(user("A1"), user("A2"))
        await two.until(lambda: bool(two.notifications))
        assert two.notifications[0]["params"]["ids"] == added
        await Chat(two).call("history.remove", id=ids[2])
        await one.until(lambda: len(one.notifications) == 2)
        assert one.notifications[1]["params"]["what"] == "remove"
        assert one.notifications[1]["params"]["ids"] == [ids[2]]
        expected = [user(f"message {n}") for n in (1, 2, 4, 5)] + [user("A1"), user("A2")]
        assert await Chat(one).history() == await Chat(two).history() == expected
    async with sandbox.open() as host:
        assert await Chat(host).history() == expected
    check_store(sandbox)


# Search


SENTENCES = {
    "English": ("The system was testing it today", "est", "TEST"),
    "Chinese": ("我们今天正在测试这个系统的功能", "测试", "系统"),
    "Japanese": ("今日このシステムをテストしています", "テス", "システ"),
    "Korean": ("오늘 이 시스템을 테스트하고 있습니다", "스트", "테스"),
    "Thai": ("วันนี้เรากำลังทดสอบระบบนี้อยู่", "สอบ", "ระบบ"),
}


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("where", ["user", "assistant", "title"])
async def test_words_inside_a_sentence_are_found_with_chat_and_message(
    sandbox: Sandbox, language: str, where: str
) -> None:
    sentence, *words = SENTENCES[language]
    async with sandbox.open() as host:
        chat = Chat(host)
        (first,) = await chat.append(user("other" if where != "user" else sentence))
        (second,) = await chat.append(assistant("other" if where != "assistant" else sentence))
        name = sentence if where == "title" else "other"
        row = await chat.call("sessions.save", name=name)
        await chat.call("history.clear")
        await chat.append(user("nothing of it"))
        await chat.call("sessions.save", name="nothing")
        for word in words:
            (found,) = await chat.sessions(query=word)
            assert found["id"] == row["id"]
            wanted = {"user": first, "assistant": second, "title": None}[where]
            assert found["hit"]["entryId"] == wanted
            assert found["hit"]["in"] == ("name" if where == "title" else "text")


# Deleting


MARKER = "Zebra-Marmalade-4711-Quokka"


def forms(marker: str) -> list[bytes]:
    """Return what a text may look like in a file: as it is, folded, or within base64."""
    found = [marker.encode(), marker.lower().encode()]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + marker.encode())
        found.append(encoded[4:-4])  # the ends depend on what is beside it
    return found


def files_with(folder: Path, marker: str) -> list[str]:
    """Return the files below a folder that hold the marker in any form."""
    return sorted(
        file.name
        for file in folder.rglob("*")
        if file.is_file() and any(form in file.read_bytes() for form in forms(marker))
    )


async def test_what_was_deleted_is_in_no_file_after_the_documented_purge(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """README, "purge what was deleted": ``trash.empty``, backup, restore, remove the dated file."""
    secret = random.Random(86).randbytes(30_000) + MARKER.encode() * 3
    marked = f"data:image/png;base64,{base64.b64encode(secret).decode()}"
    shared = picture(0, 400_000)
    own = [picture(number, 400_000) for number in range(1, 20)]
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.append(user([text("kept"), image(shared)]))
        kept = await chat.call("sessions.save", name="kept")
        await chat.call("history.clear")
        await chat.append(user([text(MARKER), image(marked), image(shared), *map(image, own)]))
        await chat.append(assistant(f"an answer about {MARKER}, at length: " + MARKER * 300))
        row = await chat.call("sessions.save", name=f"about {MARKER}")
        await chat.call("sessions.rename", id=row["id"], name=f"more about {MARKER}")
        await chat.sessions(query=MARKER)
        held = (await host.status())["blobBytes"]
        assert files_with(sandbox.data, MARKER) == ["store.mdb"]
        await chat.call("sessions.delete", id=row["id"])
        await chat.call("history.clear")
        await chat.call("trash.empty")
        assert (await host.status())["blobBytes"] <= held - 0.9 * 19 * 400_000
        (entry,) = (await chat.call("sessions.get", id=kept["id"]))["entries"]
        assert entry["entry"]["content"][1] == image(shared)
    file = sandbox.store_file()
    before = file.stat().st_size
    copy = tmp_path / "copy.mdb"
    with closing(Store(str(file.parent), extension=EXTENSION_ID, profile="profile")) as store:
        backup.create(store, str(copy))
    aside = backup.restore(str(file.parent), str(copy))
    assert aside is not None
    assert files_with(sandbox.data, MARKER) in ([], [Path(aside).name])
    Path(aside).unlink()
    assert files_with(sandbox.folder, MARKER) == []
    assert files_with(tmp_path, MARKER) == []
    assert file.stat().st_size < before / 5
    async with sandbox.open() as host:
        assert [one["id"] for one in await Chat(host).sessions()] == [kept["id"]]
    check_store(sandbox)


async def test_without_room_the_trash_stays_until_it_is_emptied(sandbox: Sandbox) -> None:
    sandbox.limits |= {"map_size": MIB, "max_size": 12 * MIB}
    sandbox.write()
    async with sandbox.open() as host:
        chat = Chat(host)
        await chat.append(user([image(picture(1, 5 * MIB))]), user("kept"))
        undo = (await chat.call("history.remove", index=0))["undo"]
        await chat.append(user([image(picture(2, 5 * MIB))]))
        with refused("quota"):
            await chat.append(user([image(picture(3, 3 * MIB))]))
        assert [item["undo"] for item in (await chat.call("trash.list"))["items"]] == [undo]
        await chat.call("trash.empty")
        await chat.append(user([image(picture(3, 3 * MIB))]))
        assert (await chat.history())[1:] == [
            user([image(picture(number, size * MIB))]) for number, size in ((2, 5), (3, 3))
        ]
    check_store(sandbox)
