"""Data outlives the extension: a new profile finds the older store and may take it over."""

from __future__ import annotations

import pytest

from tests.conversations.chat import Chat, image, picture, user
from tests.harness.sidekeep_host import Sandbox, refused


async def filled(sandbox: Sandbox) -> None:
    """Fill the store of an earlier install."""
    async with sandbox.open("before") as host:
        chat = Chat(host)
        await chat.append(user([image(picture(1))]))
        await chat.call("sessions.save", name="kept")
        await host.set({"setting": 1})


async def test_a_new_profile_is_told_and_takes_nothing_by_itself(sandbox: Sandbox) -> None:
    await filled(sandbox)
    async with sandbox.open("after") as host:
        (notice,) = host.greeting["notices"]
        assert (notice["kind"], notice["profiles"]) == ("otherStores", ["before"])
        assert await host.get() == {}
        (found,) = (await host.call("host.profiles", {}))["profiles"]
        assert (found["profile"], found["entries"]) == ("before", 4)
        assert found["bytes"] > 60_000
    async with sandbox.open("after") as host:
        assert len(host.greeting["notices"]) == 1
        await host.call("host.acknowledge", {"notice": "otherStores"})
    async with sandbox.open("after") as host:
        assert host.greeting["notices"] == []
    async with sandbox.open("before") as host:
        assert host.greeting["notices"] == []


async def test_adopting_copies_everything_and_can_be_undone(sandbox: Sandbox) -> None:
    await filled(sandbox)
    async with sandbox.open("after") as host, sandbox.open("after") as panel:
        await host.set({"setting": 2, "new": True})
        await panel.call("storage.watch", {"areas": ["local"]})
        await panel.call("history.watch", {})
        adopted = await host.call("host.adopt", {"profile": "before"})
        assert (adopted["entries"], adopted["sessions"]) == (4, 1)
        assert await host.get("setting") == {"setting": 1}
        assert await Chat(host).history() == [user([image(picture(1))])]
        await panel.until(lambda: len(panel.notifications) == 3)
        assert panel.notifications[0]["method"] == "storage.gap"
        await Chat(panel).append(user("more"))
        with refused("conflict"):
            await host.call("host.adopt", {"profile": "before"})
        back = await host.call("host.adopt", {"undo": adopted["undo"]})
        assert back["entries"] == 2
        assert await host.get() == {"new": True, "setting": 2}
    async with sandbox.open("before") as host:
        assert len(await host.keys()) == 4


async def test_adopting_what_is_not_there_changes_nothing(sandbox: Sandbox) -> None:
    async with sandbox.open("after") as host:
        await host.set({"a": 1})
        with refused("notFound"):
            await host.call("host.adopt", {"profile": "nobody"})
        with refused("notFound"):
            await host.call("host.adopt", {"undo": "../../x"})
        with refused("invalidParams"):
            await host.call("host.adopt", {})
        assert await host.get() == {"a": 1}


@pytest.mark.parametrize("extension", ["b" * 32])
async def test_stores_of_other_extensions_are_not_found(sandbox: Sandbox, extension: str) -> None:
    sandbox.extensions.append(extension)
    sandbox.write()
    async with sandbox.host(arguments=(f"chrome-extension://{extension}/",)) as other:
        await other.hello("before")
        await other.set({"secret": 1})
    async with sandbox.open("after") as host:
        assert host.greeting["notices"] == []
        assert (await host.call("host.profiles", {}))["profiles"] == []
