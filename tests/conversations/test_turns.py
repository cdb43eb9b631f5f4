"""Turns: one question is one entry, whatever becomes of it; what is sent, and what is stamped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conversations.chat import Chat, assistant, attachment, image, picture, text, user
from tests.harness.sidekeep_host import Sandbox, refused

CHAT = {"style": "chat"}


async def begin(chat: Chat, question: str, **params: Any) -> dict[str, Any]:
    """Begin a turn for a chat."""
    result = await chat.call("turns.begin", **{"text": question, "target": CHAT, **params})
    assert isinstance(result, dict)
    return result


async def test_a_turn_appends_the_question_and_the_answer(chat: Chat) -> None:
    await chat.append(user("q"), assistant("a"))
    turn = await begin(chat, "next", target={"style": "chat", "system": "S"})
    assert turn["request"] == {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "next"},
        ]
    }
    assert turn["left"] == {"images": 0, "entries": []}
    assert await chat.history() == [user("q"), assistant("a"), user("next")]
    done = await chat.call(
        "turns.complete", turnId=turn["turnId"], content="yo", stamps={"providerLabel": "P"}
    )
    assert (await chat.history())[2:] == [user("next"), assistant("yo", providerLabel="P")]
    again = await chat.call("turns.complete", turnId=turn["turnId"], content="other")
    assert again == done
    assert (await chat.ids())[2:] == [turn["entryId"], done["id"]]


async def test_only_one_turn_at_a_time_unless_parallel(chat: Chat) -> None:
    first = await begin(chat, "one")
    with refused("busy") as caught:
        await begin(chat, "two")
    assert caught.value.data["turnId"] == first["turnId"]
    second = await begin(chat, "two", parallel=True)
    await chat.call("turns.complete", turnId=second["turnId"], content="2")
    await chat.call("turns.complete", turnId=first["turnId"], content="1")
    assert await chat.history() == [user("one"), user("two"), assistant("2"), assistant("1")]


@pytest.mark.parametrize(
    ("reason", "progress", "partial", "kept"),
    [
        ("error", None, None, None),
        ("abort", None, None, None),
        ("abort", "half an", None, "half an"),
        ("abort", "half an", "half an ans", "half an ans"),
        ("drop", "half an", None, None),
        ("error", "half an", None, "half an"),
    ],
)
async def test_a_failed_turn_marks_its_question_and_keeps_what_came(
    chat: Chat, reason: str, progress: str | None, partial: str | None, kept: str | None
) -> None:
    turn = await begin(chat, "q")
    if progress is not None:
        await chat.call("turns.progress", turnId=turn["turnId"], text=progress)
    failed = await chat.call("turns.fail", turnId=turn["turnId"], reason=reason, partial=partial)
    expected = [user("q", failed=reason)]
    if kept is not None:
        expected.append(assistant(kept, interrupted=True))
    assert await chat.history() == expected
    assert failed["id"] == ((await chat.ids())[1] if kept else None)
    assert await chat.call("turns.fail", turnId=turn["turnId"], reason="error") == failed
    with refused("conflict"):
        await chat.call("turns.complete", turnId=turn["turnId"], content="late")
    again = await chat.call("turns.regenerate", entryId=turn["entryId"], target=CHAT)
    assert again["request"]["messages"] == [{"role": "user", "content": "q"}]
    assert await chat.history() == [user("q")]
    await chat.call("turns.complete", turnId=again["turnId"], content="a")
    assert await chat.history() == [user("q"), assistant("a")]


async def test_editing_replaces_the_question_and_what_followed(chat: Chat) -> None:
    ids = await chat.append(user("U1"), assistant("A1"), user("U2"), assistant("A2"))
    turn = await chat.call("turns.edit", entryId=ids[0], text="x", target=CHAT)
    assert await chat.history() == [user("x")]
    await chat.call("turns.complete", turnId=turn["turnId"], content="y")
    assert await chat.history() == [user("x"), assistant("y")]
    await chat.call("history.undo", undo=turn["undo"])
    assert len(await chat.history()) == 6


async def test_regenerating_while_it_streams_ends_the_stream_first(chat: Chat) -> None:
    first = await begin(chat, "q")
    second = await chat.call("turns.regenerate", entryId=first["entryId"], target=CHAT)
    with refused("conflict"):
        await chat.call("turns.complete", turnId=first["turnId"], content="old")
    await chat.call("turns.complete", turnId=second["turnId"], content="new")
    assert await chat.history() == [user("q"), assistant("new")]


async def test_pictures_of_the_question_are_sent_again(chat: Chat) -> None:
    shots = [picture(1), picture(2)]
    turn = await begin(chat, "see", images=shots)
    content = [text("see"), image(shots[0]), image(shots[1])]
    assert turn["request"]["messages"] == [{"role": "user", "content": content}]
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == [turn["entryId"]]
    assert (await chat.history())[0] == user(content, imagesSeen=True)
    edited = await chat.call("turns.edit", entryId=turn["entryId"], text="look", target=CHAT)
    sent = edited["request"]["messages"][0]["content"]
    assert sent == [text("look"), image(shots[0]), image(shots[1])]
    other = await chat.call("turns.edit", entryId=edited["entryId"], images=[shots[1]], target=CHAT)
    assert other["request"]["messages"][0]["content"] == [text("look"), image(shots[1])]


async def test_seen_pictures_become_labels_and_unseen_ones_go(chat: Chat) -> None:
    old, new = picture(1), picture(2)
    ids = await chat.append(
        user([text("see"), image(old)], imagesSeen=True), assistant("a"), user([image(new)])
    )
    turn = await begin(chat, "q")
    messages = turn["request"]["messages"]
    assert messages[0]["content"] == [text("see"), text("[图1]")]
    assert messages[2]["content"] == [image(new)]
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == [ids[2]]
    stamped = [entry.get("imagesSeen") for entry in await chat.history()]
    assert stamped == [True, None, True, None, None]


async def test_what_is_attached_while_the_answer_streams_is_not_seen(chat: Chat) -> None:
    turn = await begin(chat, "q", images=[picture(1)])
    await chat.append(user([image(picture(2))], attachId="late"))
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == [turn["entryId"]]
    assert "imagesSeen" not in (await chat.history())[1]


async def test_a_style_that_sends_no_pixels_stamps_nothing(chat: Chat) -> None:
    await chat.append(user([text("see"), image(picture(1))]))
    turn = await begin(chat, "q", target={"style": "runs"})
    assert "data:" not in str(turn["request"])
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["seen"] == []


async def test_the_answer_follows_its_conversation(chat: Chat) -> None:
    turn = await begin(chat, "q")
    saved = await chat.call("sessions.save", name="there")
    await chat.call("history.clear")
    await chat.append(user("elsewhere"))
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert done["session"] == saved["id"]
    assert await chat.history() == [user("elsewhere")]
    assert await chat.plain(f"session_{saved['id']}") == [user("q"), assistant("a")]
    (row,) = await chat.plain("savedSessions")
    assert row["textDigest"] == "q\na\n"


async def test_the_answer_to_a_deleted_conversation_is_recovered(chat: Chat) -> None:
    turn = await begin(chat, "q")
    await chat.call("history.clear")
    await chat.call("trash.empty")
    done = await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    (row,) = await chat.sessions()
    assert (row["name"], row["id"]) == ("Recovered", done["session"])
    assert await chat.plain(f"session_{row['id']}") == [user("q"), assistant("a")]
    assert await chat.history() == []


async def test_the_newest_attachment_with_a_video_stamps_the_answer(chat: Chat) -> None:
    old = {"platform": "youtube", "url": "https://v/1", "tabId": 1}
    new = {"platform": "bilibili", "url": "https://v/2", "tabId": 2}
    await chat.append(
        attachment("https://v/1", "V", "x", attachId="1", videoSrc=old),
        attachment("https://v/2", "V", "y", attachId="2", videoSrc=new),
        attachment("https://p", "P", "z", attachId="3"),
    )
    turn = await begin(chat, "notes")
    await chat.call("turns.complete", turnId=turn["turnId"], content="[0:10] …")
    assert (await chat.history())[-1] == assistant("[0:10] …", videoSrc=new)
    assert turn["request"]["messages"][0] == {
        "role": "user",
        "content": attachment("https://v/1", "V", "x")["content"],
    }


async def test_limits_on_pictures_are_told(chat: Chat) -> None:
    shots = [picture(n, 6_000) for n in range(12)]
    turn = await begin(chat, "many", images=shots)
    assert turn["left"]["images"] == 4
    assert len(turn["request"]["messages"][0]["content"]) == 9
    await chat.call("turns.fail", turnId=turn["turnId"], reason="drop")
    other = await begin(chat, "big", images=[picture(1, 3_000_000), shots[0], "file:///x"])
    assert other["left"]["images"] == 2


@pytest.mark.parametrize(
    ("question", "images", "stored", "sent"),
    [
        ("", [], "(no instruction)", "(no instruction; just respond to the page context)"),
        ("  ", ["https://i/1.png"], "(no instruction)", "Describe these images."),
    ],
)
async def test_a_question_without_text(
    chat: Chat, question: str, images: list[str], stored: str, sent: str
) -> None:
    turn = await begin(chat, question, images=images)
    content = turn["request"]["messages"][0]["content"]
    assert (content[0]["text"] if images else content) == sent
    kept = (await chat.history())[0]["content"]
    assert (kept[0]["text"] if images else kept) == stored


async def test_overflow_is_rescued_once_and_noted_only_after_success(chat: Chat) -> None:
    page = attachment("https://a.com", "A", "p" * 67_801, attachId="a-1")
    ids = await chat.append(page)
    turn = await begin(chat, "q")
    before = await chat.history()
    error = {"status": 400, "message": "maximum context length is 16385 tokens"}
    rescued = await chat.call("turns.rescue", turnId=turn["turnId"], error=error)
    assert rescued["overflow"] is True
    assert rescued["stubbed"] == [ids[0]]
    stub = rescued["request"]["messages"][0]["content"]
    assert "https://a.com" in stub
    assert len(stub) < 600
    assert rescued["request"]["messages"][1]["content"] == "q"
    assert await chat.history() == before
    second = await chat.call("turns.rescue", turnId=turn["turnId"], error=error)
    assert (second["overflow"], second["request"]) == (True, None)
    await chat.call("turns.complete", turnId=turn["turnId"], content="a")
    assert (await chat.history())[0] == {**page, "sendAsStub": True}
    following = await begin(chat, "more")
    assert following["request"]["messages"][0]["content"] == stub


@pytest.mark.parametrize(
    "error",
    [
        {"status": 429, "message": "Rate limit reached: too many tokens per minute"},
        {"status": 500, "message": "oops"},
        {},
    ],
)
async def test_other_errors_are_not_rescued(chat: Chat, error: dict[str, Any]) -> None:
    await chat.append(attachment("https://a.com", "A", "p" * 9_000, attachId="a"))
    turn = await begin(chat, "q")
    assert await chat.call("turns.rescue", turnId=turn["turnId"], error=error) == {
        "overflow": False,
        "request": None,
        "stubbed": [],
        "left": {"images": 0, "entries": []},
    }


async def test_a_budget_leaves_out_whole_turns_and_says_which(chat: Chat) -> None:
    ids = await chat.append(
        *[entry for n in range(5) for entry in (user(f"{n}" * 1_000), assistant("a" * 1_000))]
    )
    turn = await begin(chat, "q", limits={"chars": 4_500})
    assert turn["left"]["entries"] == ids[:6]
    assert len(turn["request"]["messages"]) == 5
    assert len(await chat.history()) == 11


async def test_the_same_conversation_gives_the_same_bytes(chat: Chat) -> None:
    await chat.append(user([text("see"), image(picture(1))], imagesSeen=True), assistant("a"))
    first = await begin(chat, "q")
    await chat.call("turns.complete", turnId=first["turnId"], content="b")
    second = await begin(chat, "r")
    prefix = first["request"]["messages"]
    assert second["request"]["messages"][: len(prefix)] == prefix


async def test_a_turn_whose_host_was_killed_is_found_at_the_next_start(sandbox: Sandbox) -> None:
    async with sandbox.open(client="panel-1") as host:
        chat = Chat(host)
        turn = await begin(chat, "q")
        await chat.call("turns.progress", turnId=turn["turnId"], text="half an")
        await asyncio.to_thread(lambda: __import__("os").kill(host.pid, 9))
        await host.close(check=False)
    async with sandbox.open(client="panel-2") as host:
        chat = Chat(host)
        (notice,) = host.greeting["notices"]
        assert (notice["kind"], notice["entryId"]) == ("interruptedTurn", turn["entryId"])
        assert await chat.history() == [
            user("q", failed="interrupted"),
            assistant("half an", interrupted=True),
        ]
        late = await chat.call("turns.complete", turnId=turn["turnId"], content="half an answer")
        assert await chat.history() == [user("q"), assistant("half an answer")]
        assert late["id"] == (await chat.ids())[1]
    async with sandbox.open(client="panel-3") as host:
        assert host.greeting["notices"] == []


async def test_a_context_that_lost_its_port_goes_on_with_its_turn(sandbox: Sandbox) -> None:
    async with sandbox.open(client="worker") as host:
        turn = await begin(Chat(host), "q")
    async with sandbox.open(client="worker") as host:
        assert host.greeting["notices"] == []
        chat = Chat(host)
        async with sandbox.open(client="panel") as other:
            assert other.greeting["notices"] == []
            with refused("busy"):
                await begin(Chat(other), "r")
        await chat.call("turns.complete", turnId=turn["turnId"], content="a")
        assert await chat.history() == [user("q"), assistant("a")]


async def test_a_notice_repeats_until_it_is_acknowledged(sandbox: Sandbox) -> None:
    async with sandbox.open(client="one") as host:
        await begin(Chat(host), "q")
    for _ in range(2):
        async with sandbox.open(client="two") as host:
            (notice,) = host.greeting["notices"]
    async with sandbox.open(client="two") as host:
        await host.call("host.acknowledge", {"notice": notice["id"]})
    async with sandbox.open(client="two") as host:
        assert host.greeting["notices"] == []


@pytest.mark.parametrize(
    "params",
    [
        {"target": {"style": "nonsense"}},
        {"target": {}},
        {"limits": {"images": "many"}},
        {"images": "one"},
    ],
)
async def test_a_turn_that_cannot_be_sent_is_refused(chat: Chat, params: dict[str, Any]) -> None:
    with refused("invalidParams"):
        await begin(chat, "q", **params)
    assert await chat.history() == []
