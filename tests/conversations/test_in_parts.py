"""Entries with pictures so big that they travel in parts, through every call that takes entries."""

from __future__ import annotations

from typing import Any

from tests.conversations.chat import Chat, assistant, image, picture, text, user
from tests.harness import Call

BIG = 400_000


def entry(seed: int, **fields: Any) -> dict[str, Any]:
    """Return an entry with two big pictures, a small one, and long text between them."""
    shots = [picture(seed, BIG), picture(seed + 1, 5_000), picture(seed + 2, BIG)]
    parts = [text(f"{seed}"), image(shots[0]), text("é" * 50_000), *map(image, shots[1:])]
    return user(parts, **fields)


async def test_every_call_that_takes_entries_takes_them_in_parts(chat: Chat) -> None:
    ids = await chat.append(entry(10), assistant("a"), entry(20))
    assert await chat.history() == [entry(10), assistant("a"), entry(20)]
    await chat.call("history.update", id=ids[0], entry=entry(30))
    await chat.call("history.update", id=ids[1], merge={"shot": picture(1, BIG), "more": [1]})
    merged = {**assistant("a"), "more": [1], "shot": picture(1, BIG)}
    assert await chat.history() == [entry(30), merged, entry(20)]
    revision = (await chat.listed(limit=0))["revision"]
    replaced = await chat.call(
        "history.replace",
        entries=[{"entry": entry(40)}, {"id": ids[2], "entry": entry(20)}, {"entry": entry(50)}],
        expect=revision,
    )
    assert replaced["ids"][1] == ids[2]
    assert await chat.history() == [entry(40), entry(20), entry(50)]
    row = await chat.call("sessions.save")
    await chat.call("sessions.append", id=row["id"], entries=[assistant("b"), entry(60)])
    body = await chat.plain(f"session_{row['id']}")
    assert body == [entry(40), entry(20), entry(50), assistant("b"), entry(60)]
    assert row["bytes"]["shared"] == 6 * BIG + 3 * 5_000


async def test_plain_keys_take_arrays_in_parts(chat: Chat) -> None:
    area = {"area": "local"}
    await chat.host.set({"history": [entry(10), entry(20)], "session_a": [entry(10)]})
    ids = await chat.ids()
    await chat.host.set({"history": [entry(10), entry(20, seen=True), entry(30)]})
    assert (await chat.ids())[:2] == ids
    await chat.host.call("storage.update", {**area, "key": "session_a", "push": entry(40)})
    await chat.host.call("storage.update", {**area, "key": "session_b", "push": entry(40)})
    await chat.host.call("storage.update", {**area, "key": "session_c", "value": [entry(50), 1]})
    assert await chat.host.get() == {
        "history": [entry(10), entry(20, seen=True), entry(30)],
        "session_a": [entry(10), entry(40)],
        "session_b": [entry(40)],
        "session_c": [entry(50), 1],
    }


async def test_tokens_beside_strings_that_arrive_apart_are_pictures(chat: Chat) -> None:
    shots = [picture(number, 30_000) for number in range(3)]
    ids = await chat.append(*[user([image(shot)]) for shot in shots])
    listed = [one["entry"] for one in (await chat.listed(pixels="none"))["entries"]]
    new = user([image(picture(9, BIG))])
    mixed = user([*listed[0]["content"], text("é" * 40_000), *listed[1]["content"]])
    await chat.host.set({"history": [new, *listed, mixed, new]})
    old = [user([image(shot)]) for shot in shots]
    whole = user([image(shots[0]), text("é" * 40_000), image(shots[1])])
    assert await chat.history() == [new, *old, whole, new]
    assert (await chat.ids())[1:4] == ids
    assert (await chat.host.status())["blobs"] == 5


async def test_old_rows_in_parts_are_split(chat: Chat) -> None:
    rows = [
        {"id": "a", "name": "n", "createdAt": 1, "history": [entry(10), assistant("x")]},
        {"id": "b", "name": "m", "createdAt": 2, "history": [entry(10)], "cover": picture(9, BIG)},
    ]
    await chat.host.set({"savedSessions": rows})
    assert await chat.plain("savedSessions") == rows
    assert [row["entries"] for row in await chat.sessions()] == [1, 2]
    assert await chat.plain("session_a") == [entry(10), assistant("x")]
    assert await chat.plain("session_b") == [entry(10)]
    assert (await chat.plain("savedSessions"))[1]["cover"] == picture(9, BIG)
    (found, _) = await chat.sessions()
    assert (found["bytes"]["own"], found["bytes"]["shared"]) == (0, 2 * BIG + 5_000)


async def test_a_call_that_fails_leaves_the_others_of_its_frame_alone(chat: Chat) -> None:
    ids = await chat.append(user("a"), user("b"))
    area = {"area": "local"}
    results = await chat.host.batch(
        [
            Call("history.append", {"entries": [entry(10)]}),
            Call("sessions.save", {"name": "first"}),
            Call("history.update", {"id": "e999", "entry": 1}),
            Call("history.append", {"entries": [user("late")], "conversation": "another"}),
            Call("history.truncate", {"from": ids[1]}),
            Call("storage.set", {**area, "items": {"savedSessions": "text"}}),
            Call("sessions.save", {"name": "second"}),
            Call("sessions.load", {"id": "nobody"}),
            Call("history.undo", {}),
            Call("storage.remove", {**area, "keys": "savedSessions"}),
            Call("sessions.save", {"name": "third"}),
        ]
    )
    kinds = [getattr(result, "kind", None) for result in results]
    assert kinds == [
        *[None] * 2,
        "notFound",
        "conflict",
        *[None] * 2,
        "conflict",
        "conflict",
        *[None] * 3,
    ]
    assert await chat.history() == [user("a"), user("b"), entry(10)]
    assert [row["name"] for row in await chat.sessions()] == ["third"]
