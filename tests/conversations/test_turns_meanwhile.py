"""Turns whose conversation, or whose question, is not what it was when they began."""

from __future__ import annotations

from typing import Any

import lmdb
import pytest

from sidekeep.store.locks import FileLock
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
from tests.harness.sidekeep_host import Sandbox, refused

CHAT = {"style": "chat"}
TURN = {"text": "q", "target": CHAT}


@pytest.mark.parametrize(("again", "params"), [("edit", {"text": "q, edited"}), ("regenerate", {})])
async def test_an_answer_that_was_cut_off_has_no_place_behind_the_question_asked_anew(
    sandbox: Sandbox, again: str, params: dict[str, Any]
) -> None:
    async with sandbox.open(client="dead") as host:
        cut_off = await host.call("turns.begin", TURN)
    async with sandbox.open(client="new") as host:
        chat = Chat(host)
        turn = await chat.call(f"turns.{again}", entryId=cut_off["entryId"], target=CHAT, **params)
        await chat.call("turns.complete", turnId=turn["turnId"], content="right")
        with refused("conflict"):
            await chat.call("turns.complete", turnId=cut_off["turnId"], content="late")
        assert await chat.history() == [user(params.get("text", "q")), assistant("right")]
    check_store(sandbox)


async def test_a_turn_that_was_cut_off_before_the_edited_question_still_takes_its_answer(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open(client="dead") as host:
        cut_off = await host.call("turns.begin", TURN)
    async with sandbox.open(client="new") as host:
        chat = Chat(host)
        (later,) = await chat.append(user("later"))
        turn = await chat.call("turns.edit", entryId=later, target=CHAT, text="anew")
        await chat.call("turns.complete", turnId=cut_off["turnId"], content="late")
        await chat.call("turns.complete", turnId=turn["turnId"], content="right")
        assert await chat.history() == [
            user("q"),
            user("anew"),
            assistant("late"),
            assistant("right"),
        ]


async def test_a_picture_that_came_while_a_turn_ran_was_not_seen_and_is_sent_next(
    chat: Chat,
) -> None:
    page = attachment("http://a", "A", "body")
    page["content"] = [text(page["content"]), image(picture(1))]
    (identity,) = await chat.append(page)
    turn = await chat.call("turns.begin", **TURN)
    page["content"].append(image(picture(2)))
    await chat.call("history.update", id=identity, entry=page)
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == []
    after = await chat.call("turns.begin", **TURN)
    assert picture(2) in str(after["request"])
    done = await chat.call("turns.complete", turnId=after["turnId"], content="b")
    assert done["seen"] == [identity]
    assert "base64" not in str((await chat.call("turns.begin", **TURN))["request"])


async def test_pictures_that_were_sent_are_seen_though_the_text_beside_them_changed(
    chat: Chat,
) -> None:
    (identity,) = await chat.append(user([text("look"), image(picture(1)), image(picture(2))]))
    turn = await chat.call("turns.begin", **TURN)
    changed = user([image(picture(2)), text("look here"), image(picture(1))])
    await chat.call("history.update", id=identity, entry=changed)
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == [identity]


@pytest.mark.parametrize("name", ["content", "role"])
async def test_stamps_cannot_take_the_place_of_the_answer(chat: Chat, name: str) -> None:
    turn = await chat.call("turns.begin", **TURN)
    with refused("invalidParams"):
        await chat.call("turns.complete", turnId=turn["turnId"], content="a", stamps={name: None})
    await chat.call("turns.complete", turnId=turn["turnId"], content="a", stamps={"n": 1})
    assert await chat.history() == [user("q"), assistant("a", n=1)]


async def test_a_writer_that_does_not_end_keeps_nobody_from_the_store_at_the_hello(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open(client="dead") as host:
        turn = await host.call("turns.begin", TURN)
    lock = FileLock(str(sandbox.store_file().parent / "write.lock"), "a test")
    lock.acquire()
    async with sandbox.open(client="new") as host:
        (notice,) = host.greeting["notices"]
        assert notice["kind"] == "unsettledTurns"
        assert await host.get("history") == {"history": [user("q")]}
        lock.close()
        await host.call("host.acknowledge", {"notice": notice["id"]})
        await host.set({"a": 1})
    async with sandbox.open(client="new") as host:
        (notice,) = host.greeting["notices"]
        assert (notice["kind"], notice["turnId"]) == ("interruptedTurn", turn["turnId"])
        assert await Chat(host).history() == [user("q", failed="interrupted")]


async def test_a_damaged_row_of_a_turn_is_told_and_keeps_nobody_from_the_store(
    sandbox: Sandbox,
) -> None:
    async with sandbox.open(client="dead") as host:
        turn = await host.call("turns.begin", TURN)
    path = str(sandbox.store_file())
    with lmdb.open(path, subdir=False) as environment, environment.begin(write=True) as change:
        (key,) = [key for key, _ in change.cursor() if key.endswith(turn["turnId"].encode())]
        row = change.get(key)
        assert row is not None
        change.put(key, b"x" + row[1:])
    async with sandbox.open(client="new") as host:
        (notice,) = host.greeting["notices"]
        assert notice["kind"] == "unsettledTurns"
        assert "checksum" in notice["text"]
        assert await host.get("history") == {"history": [user("q")]}


ODD: list[Any] = [None, 5, {}, [], ["s", None, 5], [[1]], [{"text": 5}], [{"image_url": 5}]]


@pytest.mark.parametrize("content", ODD, ids=str)
async def test_a_question_of_odd_content_can_be_edited_and_asked_again(
    chat: Chat, content: object
) -> None:
    parts = content if isinstance(content, list) else [] if content is None else [content]
    others = [part for part in parts if part != {"image_url": 5}]
    for params, kept in (({"text": "hi"}, parts), ({"text": "hi", "images": []}, others)):
        (identity,) = await chat.append(user(content))
        turn = await chat.call("turns.edit", entryId=identity, target=CHAT, **params)
        await chat.call("turns.fail", turnId=turn["turnId"], reason="drop")
        stored = (await chat.history())[-1]["content"]
        assert stored == ([text("hi"), *kept] if kept else "hi")
    again: list[tuple[str, dict[str, Any]]] = [
        ("turns.regenerate", {}),
        ("turns.edit", {"images": []}),
    ]
    for method, more in again:
        (identity,) = await chat.append(user(content))
        turn = await chat.call(method, entryId=identity, target=CHAT, **more)
        await chat.call("turns.fail", turnId=turn["turnId"], reason="drop")
        if not more:
            assert (await chat.history())[-1]["content"] == content


async def test_a_question_without_content_is_asked_again_as_it_is(chat: Chat) -> None:
    (identity,) = await chat.append({"role": "user"})
    turn = await chat.call("turns.regenerate", entryId=identity, target=CHAT)
    await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert await chat.history() == [{"role": "user"}, assistant("a")]


async def test_other_parts_of_a_question_stay_when_its_text_is_edited(chat: Chat) -> None:
    part = {"type": "file", "file": {"name": "a.pdf", "data": "x" * 5000}}
    (identity,) = await chat.append(user([text("old"), part, image(picture(1))]))
    await chat.call("turns.edit", entryId=identity, target=CHAT, text="new")
    assert await chat.history() == [user([text("new"), part, image(picture(1))])]


async def test_parts_that_are_more_than_text_stay_when_a_question_is_edited(chat: Chat) -> None:
    document = {"type": "document", "text": "of a file", "title": "d"}
    inline = text(picture(1))
    for params, kept in (({"text": "new"}, "new"), ({"images": []}, "q")):
        (identity,) = await chat.append(user([text("q"), document, inline]))
        turn = await chat.call("turns.edit", entryId=identity, target=CHAT, **params)
        await chat.call("turns.fail", turnId=turn["turnId"], reason="drop")
        assert (await chat.history())[-1]["content"] == [text(kept), document, inline]


async def test_an_attachment_condensed_while_it_is_answered_is_sent_as_its_summary(
    chat: Chat,
) -> None:
    page = {"url": "http://a", "title": "t", "mode": "full"}
    added = await chat.call("attachments.add", text="word " * 4_000, **page)
    turn = await chat.call("turns.begin", **TURN)
    rescued = await chat.call("turns.rescue", turnId=turn["turnId"], error={"status": 413})
    assert rescued["stubbed"] == [added["id"]]
    await chat.call("attachments.condense", attachId=added["attachId"], summary="THE SUMMARY")
    await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert "sendAsStub" not in (await chat.history())[0]
    assert "THE SUMMARY" in str((await chat.call("turns.begin", **TURN))["request"])


async def test_a_rescued_request_counts_the_pictures_left_out_like_the_first(chat: Chat) -> None:
    page = {"url": "http://a", "title": "t", "mode": "full"}
    await chat.call("attachments.add", text="word " * 4_000, **page)
    urls = [f"https://p/{number}.png" for number in range(10)]
    turn = await chat.call("turns.begin", images=urls, **TURN)
    rescued = await chat.call("turns.rescue", turnId=turn["turnId"], error={"status": 413})
    assert turn["left"] == rescued["left"] == {"images": 2, "entries": []}


async def test_a_page_known_by_its_own_prefix_hands_its_video_on(sandbox: Sandbox) -> None:
    video = {"platform": "p", "tabId": 3}
    async with sandbox.host() as host:
        hello = {"protocol": 1, "profile": "profile", "settings": {"attachmentPrefix": "[Mine]"}}
        await host.call("host.hello", hello)
        chat = Chat(host)
        await chat.append(user("[Mine]\nURL: u\n---\n\nbody", videoSrc=video))
        turn = await chat.call("turns.begin", **TURN)
        await chat.call("turns.complete", turnId=turn["turnId"], content="a")
        assert (await chat.history())[-1] == assistant("a", videoSrc=video)


async def test_a_repeated_begin_tells_its_turn_also_when_the_question_is_gone(chat: Chat) -> None:
    turn = await chat.host.call("turns.begin", TURN, op=7)
    again = await chat.host.call("turns.begin", TURN, op=7)
    assert again == turn
    await chat.call("history.remove", id=turn["entryId"])
    with refused("notFound") as caught:
        await chat.host.call("turns.begin", TURN, op=7)
    assert caught.value.data["turnId"] == turn["turnId"]
    await chat.call("turns.fail", turnId=turn["turnId"], reason="drop")
