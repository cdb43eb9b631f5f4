"""The live conversation: ids, positions, revisions, undo, and the array under ``history``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conversations.chat import PREFIX, Chat, assistant, attachment, image, picture, text, user
from tests.harness.sidekeep_host import refused


async def test_appended_entries_are_the_array_under_history(chat: Chat) -> None:
    first = await chat.call("history.append", entries=[user("a")])
    second = await chat.call("history.append", entries=[assistant("b")])
    assert (first["length"], second["length"]) == (1, 2)
    assert second["revision"] > first["revision"]
    assert await chat.history() == [user("a"), assistant("b")]
    assert await chat.plain("history") == [user("a"), assistant("b")]


async def test_nothing_is_dropped_by_count_or_size(chat: Chat) -> None:
    await chat.append(*[user(f"m{n}") for n in range(60)])
    result = await chat.call(
        "history.append", entries=[attachment("https://a", "A", "x" * 350_000)]
    )
    assert result["length"] == 61
    big = [user("x" * 150_000), assistant("x" * 150_000), user("x" * 150_000)]
    await chat.host.set({"history": big})
    assert await chat.history() == big


@pytest.mark.parametrize("entry", [None, 5, "text", [], {}, [1, {"role": None}], {"role": "user"}])
async def test_an_entry_may_be_any_json_value(chat: Chat, entry: Any) -> None:
    await chat.append(user("a"), entry)
    assert await chat.history() == [user("a"), entry]
    await chat.host.set({"history": [entry, user("a")]})
    assert await chat.history() == [entry, user("a")]


async def test_absent_and_empty_are_distinct(chat: Chat) -> None:
    assert await chat.host.get("history") == {}
    assert (await chat.listed())["total"] == 0
    await chat.host.set({"history": []})
    assert await chat.host.get("history") == {"history": []}
    await chat.host.remove("history")
    assert await chat.host.get("history") == {}


async def test_another_value_under_history_is_a_plain_item(chat: Chat) -> None:
    ids = await chat.append(user("a"))
    await chat.host.set({"history": {"no": "array"}})
    assert await chat.plain("history") == {"no": "array"}
    with refused("conflict"):
        await chat.append(user("b"))
    with refused("conflict"):
        await chat.listed()
    restored = await chat.call("trash.list")
    assert restored["items"][0]["entries"] == 1
    await chat.host.remove("history")
    assert (await chat.call("history.undo"))["restored"] == ids


@pytest.mark.parametrize("index", [-1, 2, 99, 1.5, None, "0", True])
async def test_an_index_out_of_range_is_refused_and_changes_nothing(
    chat: Chat,
    index: Any,
) -> None:
    await chat.append(user("a"), user("b"))
    with refused("invalidParams"):
        await chat.call("history.remove", index=index)
    with refused("notFound" if index == "0" else "invalidParams"):
        await chat.call("history.truncate", from_=index)
    assert await chat.history() == [user("a"), user("b")]


async def test_removing_by_id_index_and_attach_id(chat: Chat) -> None:
    page = attachment("https://a.com", "A", "x", attachId="i")
    ids = await chat.append(user("a"), user("b"), page, user("c"))
    assert await chat.call("history.remove", id=ids[1]) == {
        "removed": True,
        "index": 1,
        "undo": (await chat.call("trash.list"))["items"][0]["undo"],
    }
    assert (await chat.call("history.remove", attachId="i"))["index"] == 1
    assert (await chat.call("history.remove", index=1))["index"] == 1
    assert await chat.history() == [user("a")]
    for nothing in ({"id": "e999"}, {"attachId": "nope"}, {"attachId": ""}, {"id": "x"}):
        result = await chat.call("history.remove", **nothing)
        assert result == {"removed": False, "index": -1, "undo": None}


async def test_an_answer_with_the_prefix_is_no_attachment(chat: Chat) -> None:
    await chat.append(assistant(PREFIX + "\nx", attachId="i"))
    assert (await chat.call("history.remove", attachId="i"))["removed"] is False


async def test_truncating_takes_the_entry_and_what_follows(chat: Chat) -> None:
    ids = await chat.append(user("a"), user("b"), user("c"))
    result = await chat.call("history.truncate", from_=ids[1])
    assert (result["removed"], result["length"]) == (2, 1)
    assert (await chat.call("history.undo"))["restored"] == ids[1:]
    assert (await chat.call("history.truncate", from_=0))["removed"] == 3
    assert await chat.history() == []
    with refused("notFound"):
        await chat.call("history.undo", undo=result["undo"])


async def test_emptying_sets_the_active_session_to_nothing(chat: Chat) -> None:
    await chat.append(user("a"))
    await chat.host.set({"activeSessionId": "s2"})
    await chat.call("history.clear")
    assert await chat.plain("history") == []
    assert await chat.plain("activeSessionId") == ""
    await chat.host.set({"activeSessionId": "s3"})
    await chat.host.set({"history": [user("z")]})
    assert await chat.plain("activeSessionId") == "s3"
    await chat.call("history.truncate", from_=0)
    assert await chat.plain("activeSessionId") == ""


async def test_clearing_begins_another_conversation_and_undo_goes_back(chat: Chat) -> None:
    word = (await chat.listed())["conversation"]
    assert word == chat.host.greeting["conversation"]
    ids = await chat.append(user("a"), assistant("b"))
    cleared = await chat.call("history.clear")
    assert cleared["conversation"] != word
    with refused("conflict") as caught:
        await chat.call("history.append", entries=[user("late")], conversation=word)
    assert caught.value.data["conversation"] == cleared["conversation"]
    assert (await chat.call("history.undo", undo=cleared["undo"]))["restored"] == ids
    assert (await chat.listed())["conversation"] == word
    await chat.call("history.append", entries=[user("c")], conversation=word)


async def test_a_stale_revision_is_refused(chat: Chat) -> None:
    first = await chat.call("history.append", entries=[user("a")])
    await chat.append(user("b"))
    for method, params in (
        ("history.append", {"entries": [user("c")]}),
        ("history.update", {"id": first["ids"][0], "merge": {"imagesSeen": True}}),
        ("history.remove", {"index": 0}),
        ("history.replace", {"entries": []}),
    ):
        with refused("conflict") as caught:
            await chat.call(method, **params, expect=first["revision"])
        assert caught.value.data["revision"] == (await chat.listed())["revision"]
    assert await chat.history() == [user("a"), user("b")]


async def test_updating_keeps_the_id(chat: Chat) -> None:
    ids = await chat.append(user("a"), assistant("b"))
    await chat.call("history.update", id=ids[0], merge={"imagesSeen": True, "content": "A"})
    await chat.call("history.update", id=ids[1], entry=assistant("B"))
    assert await chat.history() == [user("A", imagesSeen=True), assistant("B")]
    assert await chat.ids() == ids
    before = (await chat.listed())["revision"]
    assert (await chat.call("history.update", id=ids[1], entry=assistant("B")))[
        "revision"
    ] == before
    with refused("notFound"):
        await chat.call("history.update", id="e999", entry=user("x"))
    with refused("invalidParams"):
        await chat.call("history.update", id=ids[0])


async def test_replacing_keeps_named_entries_and_can_be_undone(chat: Chat) -> None:
    ids = await chat.append(user("a"), user("b"), user("c"))
    revision = (await chat.listed())["revision"]
    result = await chat.call(
        "history.replace",
        entries=[
            {"id": ids[2], "entry": user("c")},
            {"entry": user("new")},
            {"id": ids[0], "entry": user("A")},
        ],
        expect=revision,
    )
    assert result["ids"][0] == ids[2]
    assert result["ids"][2] == ids[0]
    assert await chat.history() == [user("c"), user("new"), user("A")]
    assert (await chat.call("history.undo", undo=result["undo"]))["restored"] == [ids[1]]
    with refused("notFound"):
        await chat.call(
            "history.replace",
            entries=[{"id": "e999", "entry": 1}],
            expect=(await chat.listed())["revision"],
        )


async def test_writing_the_whole_array_keeps_the_ids_of_what_is_the_same(chat: Chat) -> None:
    shot = picture(1)
    ids = await chat.append(user("a"), assistant("b"), user([text("see"), image(shot)]), user("d"))
    array = await chat.plain("history")
    array[2]["imagesSeen"] = True
    array[1]["content"] = "b and more"
    array.append(user("e"))
    await chat.host.set({"history": array})
    after = await chat.ids()
    assert after[:4] == ids
    assert len(set(after)) == 5
    await chat.host.set({"history": [array[4], *array[:2], user("between"), array[2]]})
    moved = await chat.ids()
    assert moved[0] == after[4]
    assert moved[1:3] == ids[:2]
    assert moved[4] == ids[2]
    assert await chat.history() == [array[4], *array[:2], user("between"), array[2]]


async def test_a_stale_array_over_newer_entries_is_recoverable(chat: Chat) -> None:
    old = [user("a"), assistant("b")]
    await chat.host.set({"history": old})
    ids = await chat.append(user("c"), assistant("d"))
    await chat.host.set({"history": [*old, user("x")]})
    assert await chat.history() == [*old, user("x")]
    assert (await chat.call("history.undo"))["restored"] == ids
    assert await chat.history() == [*old, user("c"), assistant("d"), user("x")]


async def test_clearing_the_area_is_recoverable_for_conversations(chat: Chat) -> None:
    await chat.append(user("a"), user("b"))
    await chat.call("sessions.save", id=None, name="kept")
    await chat.host.clear()
    assert await chat.host.get() == {}
    (item,) = (await chat.call("trash.list"))["items"]
    assert item["what"] == "storage.clear"
    assert len(item["sessions"]) == 1
    await chat.call("history.undo", undo=item["undo"])
    assert await chat.history() == [user("a"), user("b")]
    (row,) = await chat.sessions()
    assert (row["name"], row["entries"]) == ("kept", 2)


async def test_a_page_of_entries(chat: Chat) -> None:
    ids = await chat.append(*[user(str(n)) for n in range(10)])

    async def page(**params: Any) -> str:
        return "".join(one["entry"]["content"] for one in (await chat.listed(**params))["entries"])

    assert await page(offset=3, limit=2) == "34"
    assert await page(limit=3) == "012"
    assert await page(offset=-3) == "789"
    assert await page(offset=-3, limit=2) == "78"
    assert await page(before=ids[5], limit=2) == "34"
    assert await page(after=ids[5], limit=2) == "67"
    assert await page(before=ids[0], limit=2) == ""
    assert await page(offset=10) == ""
    assert await page(limit=0) == ""
    await chat.call("history.remove", id=ids[5])
    assert await page(before=ids[5], limit=2) == "34"
    assert await page(after=ids[5], limit=2) == "67"
    assert await page(offset=4, limit=2) == "46"
    for wrong in ({"before": ids[1], "offset": 2}, {"limit": -1}, {"before": "x"}):
        with refused("invalidParams"):
            await chat.listed(**wrong)


async def test_pushing_to_history_is_an_append(chat: Chat) -> None:
    await chat.append(user("a"))
    result = await chat.host.call(
        "storage.update", {"area": "local", "key": "history", "push": assistant("b")}
    )
    listed = await chat.listed()
    assert result["revision"] == listed["revision"]
    assert await chat.history() == [user("a"), assistant("b")]
    with refused("conflict"):
        await chat.host.call("storage.update", {"area": "local", "key": "history", "increment": 1})


async def test_bytes_in_use_are_those_of_the_array(chat: Chat) -> None:
    entries = [user("a"), assistant("<b>"), user([text("é"), image(picture(1))]), 1e12]
    await chat.append(*entries)
    counted = await chat.host.bytes_in_use("history")
    total = await chat.host.bytes_in_use()
    await chat.host.set({"copy": entries})
    assert counted == await chat.host.bytes_in_use("copy") - len("copy") + len("history")
    assert total == counted
    await chat.call("history.remove", index=2)
    await chat.host.set({"copy": [entries[0], entries[1], entries[3]]})
    assert await chat.host.bytes_in_use("history") == await chat.host.bytes_in_use("copy") + 3
