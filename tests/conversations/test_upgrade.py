"""A store from before conversations were kept entry by entry."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec

from sidekeep.model.frame import Frame
from sidekeep.store import documents, rope
from sidekeep.store.environment import Store
from sidekeep.store.founding import write_about
from sidekeep.store.journal import AnyChange
from sidekeep.store.transaction import Transaction
from tests.conversations.chat import Chat, assistant, check_store, image, picture, user
from tests.harness.native import many
from tests.harness.sidekeep_host import EXTENSION_ID, Sandbox


def make_old(sandbox: Sandbox, items: dict[str, Any]) -> None:
    """Write items as format 1 did: each a plain document."""
    file = sandbox.store_file()
    store = Store(str(file.parent), extension=EXTENSION_ID, profile="profile")

    def put(transaction: Transaction, revision: int) -> tuple[list[AnyChange], bytes]:
        changes: list[AnyChange] = []
        for key, value in items.items():
            text = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
            change = documents.put(transaction, key, rope.build(text), revision)
            assert change is not None
            changes.append(change)
        return changes, b"{}"

    def job(transaction: Transaction) -> None:
        frame = Frame(transaction, None)
        frame.mutate(put, None)
        frame.finish(watched=False)
        transaction.put(b"v", b"0123456789abcdef", b"an old header")
        write_about(transaction, msgspec.structs.replace(store.about, format=1))

    try:
        store.write(job)
    finally:
        store.close()


async def test_arrays_of_format_1_become_conversations_after_a_copy(sandbox: Sandbox) -> None:
    items: dict[str, Any] = {
        "history": [user([image(picture(1))]), assistant("b")],
        "savedSessions": [{"id": "s", "name": "n", "createdAt": 1, "pinned": False}],
        "session_s": [user("x")],
        "session_t": "no array",
        "other": [1, 2],
    }
    async with sandbox.open():
        pass
    make_old(sandbox, items)
    async with sandbox.open() as host:
        chat = Chat(host)
        assert await host.get() == items
        assert await chat.history() == items["history"]
        assert [row["entries"] for row in await chat.sessions()] == [1]
        await chat.append(user("more"))
    check_store(sandbox)
    (copy,) = sandbox.store_file().parent.glob("before-format-2-*.mdb")
    assert copy.stat().st_size > 0
    async with sandbox.open() as host:
        assert len(await Chat(host).history()) == 3


async def test_hosts_that_upgrade_the_same_store_at_once_all_answer(sandbox: Sandbox) -> None:
    async with sandbox.open():
        pass
    history = [user([image(picture(number))]) for number in range(20)]
    make_old(sandbox, {"history": history})
    hosts = [sandbox.host() for _ in range(6)]
    async with many(hosts):
        await asyncio.gather(*[host.hello() for host in hosts])
        for host in hosts:
            assert await Chat(host).history() == history
    check_store(sandbox)
