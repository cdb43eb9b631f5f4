"""Listeners: ids for those who follow conversations, arrays for those who listen to plain keys."""

from __future__ import annotations

from typing import Any

from tests.conversations.chat import Chat, assistant, user
from tests.harness import Call
from tests.harness.sidekeep_host import Sandbox, SidekeepHost


async def told(host: SidekeepHost, count: int) -> list[tuple[str, str, list[str]]]:
    """Wait for so many notifications about conversations and return them in short."""
    await host.until(lambda: len(_all(host)) >= count)
    await host.ping()
    found = _all(host)
    assert len(found) == count, found
    host.notifications.clear()
    return [(one["method"], one["params"]["what"], one["params"]["ids"]) for one in found]


def _all(host: SidekeepHost) -> list[dict[str, Any]]:
    return [one for one in host.notifications if not one["method"].startswith("storage.")]


async def test_each_kind_of_change_is_told_with_ids(chat: Chat) -> None:
    await chat.call("history.watch")
    ids = await chat.append(user("a"), assistant("b"), user("c"))
    assert await told(chat.host, 1) == [("history.changed", "append", ids)]
    await chat.call("history.update", id=ids[1], merge={"x": 1})
    await chat.call("history.remove", index=0)
    await chat.host.set({"history": [user("new"), user("c")]})
    await chat.call("history.clear")
    found = await told(chat.host, 4)
    assert [what for _, what, _ in found] == ["update", "remove", "replace", "clear"]
    assert found[0][2] == [ids[1]]
    assert found[1][2] == [ids[0]]
    assert found[3][2][1] == ids[2]


async def test_sessions_are_told_by_their_ids_whichever_way_they_change(chat: Chat) -> None:
    await chat.append(user("a"))
    await chat.call("history.watch")
    row = await chat.call("sessions.save")
    await chat.call("sessions.pin", id=row["id"], pinned=True)
    await chat.call("sessions.append", id=row["id"], entries=[user("more")])
    await chat.host.set({"savedSessions": [*await chat.plain("savedSessions"), {"id": "x"}]})
    await chat.host.set({"session_x": [user("b")]})
    await chat.call("sessions.delete", id=row["id"])
    assert await told(chat.host, 6) == [
        ("sessions.changed", "save", [row["id"]]),
        ("sessions.changed", "update", [row["id"]]),
        ("sessions.changed", "update", [row["id"]]),
        ("sessions.changed", "save", ["x"]),
        ("sessions.changed", "update", ["x"]),
        ("sessions.changed", "delete", [row["id"]]),
    ]


async def test_a_listener_of_the_plain_key_gets_old_and_new_arrays(chat: Chat) -> None:
    await chat.append(user("a"))
    await chat.call("storage.watch", areas=["local"], keys=["history"])
    await chat.append(assistant("b"))
    await chat.call("history.remove", index=0)
    await chat.host.set({"history": "text"})
    await chat.host.set({"history": [1]})
    await chat.host.remove("history")
    await chat.host.until(lambda: len(chat.host.notifications) == 5)
    states: list[Any] = [[user("a")], [user("a"), assistant("b")], [assistant("b")], "text", [1]]
    changes = [one["params"]["changes"]["history"] for one in chat.host.notifications]
    assert [change["oldValue"] for change in changes] == states
    assert [change.get("newValue") for change in changes] == [*states[1:], None]


async def test_several_changes_of_one_frame_are_told_one_by_one(chat: Chat) -> None:
    await chat.call("storage.watch", areas=["local"])
    calls = [Call("history.append", {"entries": [user(str(n))]}) for n in range(3)]
    await chat.host.batch(calls)
    await chat.host.until(lambda: len(chat.host.notifications) == 3)
    lengths = [
        (len(change.get("oldValue", [])), len(change["newValue"]))
        for one in chat.host.notifications
        for change in [one["params"]["changes"]["history"]]
    ]
    assert lengths == [(0, 1), (1, 2), (2, 3)]


async def test_what_was_missed_is_told_from_the_journal(chat: Chat, sandbox: Sandbox) -> None:
    first = await chat.call("history.watch")
    ids = await chat.append(user("a"))
    async with sandbox.open() as other:
        panel = Chat(other)
        await panel.call("history.watch", since=first["revision"], store=first["store"])
        assert await told(other, 1) == [("history.changed", "append", ids)]
        more = await chat.append(user("b"))
        assert await told(other, 1) == [("history.changed", "append", more)]
        await chat.call("trash.empty")
        await panel.call("history.watch", since=first["revision"])
        assert await told(other, 2) == [
            ("history.changed", "gap", []),
            ("sessions.changed", "gap", []),
        ]
        await panel.call("history.watch", since=first["revision"], store="another")
        await other.until(lambda: len(_all(other)) == 2)
