"""Attached pages: header, pictures at their anchors, taking back, condensing, changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversations.chat import PREFIX, Chat, assistant, attachment, image, picture, text, user
from tests.harness.sidekeep_host import refused

PAGE: dict[str, Any] = {"url": "https://a.com", "title": "A", "mode": "reader"}


async def test_an_attachment_is_an_entry_with_a_header(chat: Chat) -> None:
    added = await chat.call("attachments.add", **PAGE, text="body")
    assert added["condense"] is None
    expected = attachment("https://a.com", "A", "body", attachId=added["attachId"])
    assert await chat.history() == [expected]
    assert await chat.ids() == [added["id"]]


async def test_the_header_has_its_lines_in_order(chat: Chat) -> None:
    await chat.call(
        "attachments.add",
        url="https://user:secret@a.com/?token=abc&x=1",
        title="A",
        mode="full",
        format="html",
        block="arXiv: 1\n",
        fallback=True,
        changedSince="2026-01-02 03:04",
        text="see https://u:p@b.com/",
    )
    content = (await chat.history())[0]["content"]
    assert "secret" not in content
    assert "abc" not in content
    assert ":p@" not in content
    lines = content.split("\n")
    assert lines[0] == PREFIX
    assert lines[1].startswith("URL: https://")
    assert lines[2:5] == ["Title: A", "arXiv: 1", "Mode: full | html (fallback to full)"]
    assert lines[5] == (
        "Note: this page's content has changed since it was last attached"
        " (previously attached 2026-01-02 03:04)."
    )
    assert lines[6:8] == ["---", ""]


async def test_pictures_stand_at_their_anchors_with_their_labels(chat: Chat) -> None:
    shots = [picture(1), picture(2), picture(3)]
    body = "x\n[图2]\ny\n## Figures\n1. First\n2. Second"
    await chat.call("attachments.add", **PAGE, text=body, images=shots)
    content = (await chat.history())[0]["content"]
    urls = [part["image_url"]["url"] for part in content if "image_url" in part]
    assert urls == [shots[1], shots[0], shots[2]]
    labels = [part.get("label") for part in content if "image_url" in part]
    assert labels == ["Second", "First", None]
    assert content[0]["text"].endswith("x\n[图2]")


@pytest.mark.parametrize(
    "params",
    [{"text": "", "mode": "pdf"}, {"text": "t", "mode": "screenshot"}, {"text": " "}],
)
async def test_what_holds_nothing_is_refused(chat: Chat, params: dict[str, Any]) -> None:
    with refused("invalidParams"):
        await chat.call("attachments.add", **{**PAGE, **params})
    assert await chat.history() == []


@pytest.mark.parametrize("mode", ["reader", "screenshot"])
@pytest.mark.parametrize(
    "url", ["", "  ", "javascript:alert(1)", "ftp://a/b.png", "data:text/html,x", "sidekeep:x"]
)
async def test_pictures_that_could_not_be_sent_are_refused(chat: Chat, mode: str, url: str) -> None:
    for params in ({"text": ""}, {"text": "t"}, {"text": "t", "images": [picture(1), url]}):
        with refused("invalidParams"):
            await chat.call("attachments.add", **{**PAGE, "images": [url], "mode": mode, **params})
    assert await chat.history() == []


async def test_pictures_of_an_attachment_are_urls_or_tokens(chat: Chat) -> None:
    await chat.append(user([image(picture(1))]))
    token = (await chat.listed(pixels="none"))["images"][0]["ref"]
    given = [" https://a.com/x.png\n", "HTTP://a.com", "data:image/svg+xml,x", token]
    await chat.call("attachments.add", **PAGE, text="", images=given)
    content = (await chat.history())[1]["content"]
    urls = [part["image_url"]["url"] for part in content if "image_url" in part]
    assert urls == ["https://a.com/x.png", "HTTP://a.com", "data:image/svg+xml,x", picture(1)]


async def test_an_attachment_is_taken_back_by_id_or_as_the_last(chat: Chat) -> None:
    first = await chat.call("attachments.add", **PAGE, text="one")
    await chat.append(assistant(PREFIX + "\nnot one"), user(PREFIX + "\nold"))
    assert (await chat.call("attachments.undo", last=True))["index"] == 2
    assert (await chat.call("attachments.undo", attachId=first["attachId"]))["index"] == 0
    nothing = {"removed": False, "index": -1, "undo": None}
    assert await chat.call("attachments.undo", last=True) == nothing
    assert await chat.call("attachments.undo", attachId="nope") == nothing


async def test_a_long_page_comes_with_a_plan(chat: Chat) -> None:
    exact = await chat.call("attachments.add", **PAGE, text="x" * 100_000)
    assert exact["condense"] is None
    body = "\n\n".join(f"# {n}\n" + "word " * 400 for n in range(60))
    longer = await chat.call("attachments.add", **PAGE, text=body)
    assert longer["condense"]["chars"] == len(body)
    assert max(map(len, longer["condense"]["chunks"])) <= 12_000
    plan = await chat.call("attachments.plan", attachId=exact["attachId"])
    assert plan["condense"]["chars"] == 100_000


async def test_condensing_keeps_pictures_and_the_text_that_was_there(chat: Chat) -> None:
    shot = picture(1)
    added = await chat.call("attachments.add", **PAGE, text="long\n[图1]\nlonger", images=[shot])
    await chat.append(user("meanwhile"))
    saved = await chat.call("sessions.save")
    result = await chat.call(
        "attachments.condense", attachId=added["attachId"], summary="short\n[图1]\nend"
    )
    assert result == {"entries": 2}
    entry, other = await chat.history()
    assert other == user("meanwhile")
    assert entry["summarized"] is True
    assert entry["originalText"] == "long\n[图1]\nlonger"
    assert entry["attachId"] == added["attachId"]
    first, second, last = entry["content"]
    assert first["text"].startswith(PREFIX)
    assert "[browsa: auto-condensed from " in first["text"]
    assert second == image(shot)
    assert last == text("end")
    assert (await chat.plain(f"session_{saved['id']}"))[0] == entry
    again = await chat.call("attachments.condense", attachId=added["attachId"], summary="shorter")
    assert again == {"entries": 2}
    assert (await chat.history())[0]["originalText"] == "long\n[图1]\nlonger"


async def test_pictures_keep_order_and_labels_when_one_is_removed(chat: Chat) -> None:
    urls = [f"https://a.com/{number}.png" for number in (1, 2, 3)]
    body = "a\n[图1]\nb\n[图2]\nc\n[图3]"
    added = await chat.call("attachments.add", **PAGE, text=body, images=urls)
    (entry,) = await chat.history()
    entry["content"] = [part for part in entry["content"] if part != image(urls[0])]
    await chat.call("history.update", id=added["id"], entry=entry)
    for _ in range(2):
        turn = await chat.call("turns.begin", text="q", target={"style": "chat"})
        await chat.call("turns.complete", turnId=turn["turnId"], content="x")
    sent = turn["request"]["messages"][0]["content"]
    assert [part["text"] for part in sent][1:] == ["b\n[图2]", "[图2]", "c\n[图3]", "[图3]"]
    await chat.call("attachments.condense", attachId=added["attachId"], summary="S")
    assert (await chat.history())[0]["content"][1:] == [image(urls[1]), image(urls[2])]


async def test_condensing_replaces_only_the_text_of_the_page(chat: Chat) -> None:
    page = attachment("u", "t", "body\n[图2]")["content"]
    kept: list[Any] = [
        {"type": "image", "source": {"type": "base64", "data": picture(2)}},
        image(picture(3)),
        {"type": "file", "text": "name", "file": {"data": "KEEP"}},
        text(picture(4)),
        "odd",
        None,
        image(picture(1)),
        7,
    ]
    entry = user([text(page), *kept, {"type": "input_text", "text": "more"}], attachId="a")
    await chat.append(entry)
    saved = await chat.call("sessions.save")
    plan = await chat.call("attachments.plan", attachId="a")
    assert plan["condense"]["chunks"] == ["body\n[图2]\nmore"]
    assert await chat.call("attachments.condense", attachId="a", summary="S") == {"entries": 2}
    (now,) = await chat.history()
    assert now["originalText"] == "body\n[图2]\nmore"
    assert now["content"][0]["text"].endswith("\n\nS")
    # The second picture has the first number: the other one stood at the anchor of number 2.
    assert now["content"][1:] == [kept[0], *kept[6:], *kept[1:6]]
    assert await chat.plain(f"session_{saved['id']}") == [now]


@pytest.mark.parametrize("content", [None, 7, {"data": "KEEP"}, [], "whole", picture(1), ...])
async def test_an_attachment_of_odd_content_is_condensed_without_a_loss(
    chat: Chat, content: Any
) -> None:
    entry = {**user(content), "attachId": "a"}
    if content is ...:
        del entry["content"]
    await chat.append(entry)
    await chat.call("attachments.plan", attachId="a")
    assert await chat.call("attachments.condense", attachId="a", summary="S") == {"entries": 1}
    (now,) = await chat.history()
    said, *others = now["content"] if isinstance(now["content"], list) else [text(now["content"])]
    assert said["text"].endswith("\n\nS")
    expected: list[Any] = [content] if content == 7 or isinstance(content, dict) else []
    assert others == ([text(content)] if content == picture(1) else expected)
    assert now["originalText"] == ("whole" if content == "whole" else "")


async def test_a_summary_that_comes_after_a_switch_finds_its_session(chat: Chat) -> None:
    added = await chat.call("attachments.add", **PAGE, text="long")
    saved = await chat.call("sessions.save")
    await chat.call("history.clear")
    await chat.call("attachments.condense", attachId=added["attachId"], summary="short")
    body = await chat.plain(f"session_{saved['id']}")
    assert body[0]["content"].endswith("short")
    for wrong in ({"attachId": "nope", "summary": "x"}, {"attachId": "x", "summary": " "}):
        with refused("notFound" if wrong["summary"].strip() else "invalidParams"):
            await chat.call("attachments.condense", **wrong)


@pytest.mark.parametrize("since", [1e20, 8.64e15, -1e20])
async def test_a_time_that_no_calendar_has_is_refused(chat: Chat, since: float) -> None:
    with refused("invalidParams"):
        await chat.call("attachments.add", **PAGE, text="body", changedSince=since)
    assert await chat.history() == []


async def test_no_plan_holds_what_must_not_reach_a_model(chat: Chat) -> None:
    added = await chat.call(
        "attachments.add", **PAGE, text="see https://u:hidden@b.com/?token=hidden " * 9_000
    )
    planned = await chat.call("attachments.plan", attachId=added["attachId"])
    assert added["condense"] == planned["condense"]
    assert "hidden" not in str(planned)


async def test_a_text_that_came_after_condensing_is_kept_when_it_is_condensed_too(
    chat: Chat,
) -> None:
    added = await chat.call("attachments.add", **PAGE, text="first")
    condense = {"attachId": added["attachId"], "summary": "short"}
    await chat.call("attachments.condense", **condense)
    await chat.call("attachments.condense", **condense)
    (entry,) = await chat.history()
    assert entry["originalText"] == "first", "a summary is no text of the page"
    header = entry["content"].partition("---\n\n")[0] + "---\n\n"
    await chat.call("history.update", id=added["id"], entry={**entry, "content": header + "second"})
    await chat.call("attachments.condense", **condense)
    assert (await chat.history())[0]["originalText"] == "first\n\nsecond"


async def test_a_page_that_changed_is_noticed(chat: Chat) -> None:
    page = {"url": "https://a.com", "mode": "reader"}
    long = "x" * 60
    assert await chat.call("attachments.changed", **page, text=long) == {"changed": False}
    assert await chat.call("attachments.changed", **page, text=long) == {"changed": False}
    found = await chat.call("attachments.changed", **page, text=long + "y")
    assert (found["changed"], found["previousLength"]) == (True, 60)
    assert await chat.call("attachments.changed", **page, text="short") == {"changed": False}
    for number in range(51):
        await chat.call("attachments.changed", url=f"https://{number}", mode="m", text=long)
    kept = await chat.plain("browsaAttachSnapshots")
    assert len(kept) == 50
    assert "m::https://0" not in kept


async def test_an_attachment_for_another_conversation_is_refused(chat: Chat) -> None:
    word = (await chat.listed())["conversation"]
    await chat.call("history.clear")
    with refused("conflict"):
        await chat.call("attachments.add", **PAGE, text="late", conversation=word)
