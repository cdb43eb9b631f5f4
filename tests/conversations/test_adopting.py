"""Data outlives the extension: a new profile finds the older store and may take it over."""

from __future__ import annotations

import asyncio

import pytest

from tests.conversations.chat import Chat, image, picture, user
from tests.harness.messages import RpcError
from tests.harness.sidekeep_host import Sandbox, assert_kind, refused


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


async def test_what_others_write_while_adopting_is_in_the_copy_or_in_the_store(
    sandbox: Sandbox,
) -> None:
    await filled(sandbox)
    async with sandbox.open("after") as host, sandbox.open("after") as other:
        await host.set({"bulk": "x" * 20_000_000})  # so that copying it takes a while
        counted = [0]
        ended = asyncio.Event()

        async def count() -> None:
            update = {"area": "local", "key": "n", "increment": 1}
            while not ended.is_set():
                try:
                    counted.append((await other.call("storage.update", update))["value"])
                except RpcError as error:  # the adoption took longer than a writer waits
                    assert_kind(error, "busy")

        counting = asyncio.create_task(count())
        await other_has_written(counted)
        adopted = await host.call("host.adopt", {"profile": "before"})
        await other_has_written(counted)
        ended.set()
        await counting
        after = counted[-1]
        cut = counted.index(1, 2)  # the other store has no such key, so it began again
        assert await host.get("n") == {"n": after}
        again = await host.call("host.adopt", {"undo": adopted["undo"]})
        assert await host.get("n") == {"n": counted[cut - 1]}
        await host.call("host.adopt", {"undo": again["undo"]})
        assert await host.get(["setting", "n"]) == {"setting": 1, "n": after}


async def other_has_written(counted: list[int]) -> None:
    """Wait until a few more changes are acknowledged."""
    enough = len(counted) + 3
    while len(counted) < enough:
        await asyncio.sleep(0.01)


async def test_an_adoption_whose_answer_was_lost_is_answered_again_and_not_repeated(
    sandbox: Sandbox,
) -> None:
    await filled(sandbox)
    request = {"profile": "before", "replace": True}
    async with sandbox.open("after", client="tab") as host:
        await Chat(host).append(user("mine"))
        adopted = await host.call("host.adopt", request, op=1)
        host.kill()
    async with sandbox.open("after", client="tab") as host:
        await host.set({"setting": 2}, op=2)
        assert await host.call("host.adopt", request, op=1) == adopted
        assert await host.get("setting") == {"setting": 2}
        back = await host.call("host.adopt", {"undo": adopted["undo"]}, op=3)
        assert await Chat(host).history() == [user("mine")]
        host.kill()
    async with sandbox.open("after", client="tab") as host:
        await host.set({"setting": 3}, op=4)
        assert await host.call("host.adopt", {"undo": adopted["undo"]}, op=3) == back
        assert await host.get("setting") == {"setting": 3}
    assert len(copies(sandbox)) == 2


async def test_results_of_others_outlive_an_adoption(sandbox: Sandbox) -> None:
    await filled(sandbox)
    update = {"area": "local", "key": "n", "increment": 1}
    async with (
        sandbox.open("after", client="one") as one,
        sandbox.open("after", client="two") as two,
    ):
        first = await one.call("host.adopt", {"profile": "before"}, op=1)
        counted = await one.call("storage.update", update, op=2)
        second = await two.call("host.adopt", {"profile": "before", "replace": True}, op=1)
        assert await one.call("host.adopt", {"profile": "before"}, op=1) == first
        assert await one.call("storage.update", update, op=2) == counted
        assert await one.get("n") == {}
        await two.call("host.adopt", {"undo": second["undo"]}, op=2)
        assert await one.get("n") == {"n": 1}
        assert (await one.call("host.verify", {}))["ok"]


async def test_adopting_with_a_number_needs_a_client(sandbox: Sandbox) -> None:
    await filled(sandbox)
    async with sandbox.host() as host:
        await host.call("host.hello", {"protocol": 1, "profile": "after"})
        with refused("invalidRequest"):
            await host.call("host.adopt", {"profile": "before"}, op=1)
        assert await host.get() == {}


async def test_each_adoption_keeps_a_copy_of_its_own_however_soon_it_follows(
    sandbox: Sandbox,
) -> None:
    await filled(sandbox)
    request = {"profile": "before", "replace": True}
    async with sandbox.open("after") as host, sandbox.open("after") as panel:
        await host.set({"setting": 2})
        words = [(await host.call("host.adopt", request))["undo"] for _ in range(3)]
        both = await asyncio.gather(
            host.call("host.adopt", request), panel.call("host.adopt", request)
        )
        words += [adopted["undo"] for adopted in both]
        assert copies(sandbox) == {f"before-adopt-{word}.mdb" for word in words}
        await host.call("host.adopt", {"undo": words[0]})
        assert await host.get() == {"setting": 2}


async def test_a_copy_under_a_word_without_letters_can_be_put_back(sandbox: Sandbox) -> None:
    await filled(sandbox)
    async with sandbox.open("after") as host:
        await host.set({"setting": 2})
        adopted = await host.call("host.adopt", {"profile": "before"})
        (copy,) = sandbox.data.rglob("before-adopt-*.mdb")
        copy.rename(copy.with_name("before-adopt-20250102030405.mdb"))
        with refused("notFound"):
            await host.call("host.adopt", {"undo": adopted["undo"]})
        await host.call("host.adopt", {"undo": "20250102030405"})
        assert await host.get() == {"setting": 2}


async def test_an_adoption_that_is_refused_leaves_no_copy(sandbox: Sandbox) -> None:
    await filled(sandbox)
    async with sandbox.open("after") as host:
        await Chat(host).append(user("mine"))
        with refused("conflict"):
            await host.call("host.adopt", {"profile": "before"})
        assert await Chat(host).history() == [user("mine")]
    assert copies(sandbox) == set()


def copies(sandbox: Sandbox) -> set[str]:
    """Return the names of the files with what was there before adoptions."""
    return {path.name for path in sandbox.data.rglob("before-adopt-*")}
