"""Drives hosts of one file and a model with the same calls, and compares them after each.

Rule: nothing here chooses what is called; the rules of ``test_model`` do.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.conversations.chat import check_store
from tests.conversations.model import (
    BODY,
    HISTORY,
    INDEX,
    Entries,
    Refused,
    canonical,
)
from tests.conversations.model_calls import DATE, NEW_SESSION, Calls
from tests.conversations.model_checks import (
    Items,
    Stored,
    check_told,
    opened,
    pictures_of,
    plain,
    rows_of,
    trash_of,
)
from tests.harness import HostGoneError, RpcError
from tests.harness.sidekeep_host import Sandbox, SidekeepHost

T = TypeVar("T")
HOSTS = 2
Where = tuple[int, "float | None"]
"""On which host a call is made, and after how many seconds that host is killed, if it is."""


class Panel:
    """A host with a client of its own, which survives the host."""

    def __init__(self, sandbox: Sandbox, name: str) -> None:
        self.sandbox = sandbox
        self.name = name
        self.op = 0

    async def start(self) -> None:
        """Start a host."""
        self.host: SidekeepHost = await self.sandbox.host().__aenter__()
        await self.host.hello(client=self.name)

    async def change(self, method: str, params: Items, delay: float | None) -> Any:
        """Make a call that changes something; with a delay, kill the host and make it again."""
        self.op += 1
        if delay is not None:
            work = asyncio.create_task(self.host.call(method, params, op=self.op))
            await asyncio.sleep(delay)
            self.host.kill()
            await asyncio.gather(work, return_exceptions=True)
            if not isinstance(work.exception(), HostGoneError | RpcError | None):
                raise AssertionError from work.exception()
            await self.host.close()
            await self.start()
        return await self.host.call(method, params, op=self.op)


class Listener:
    """A host that listens to everything, and the items as they follow from what it was told."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.items: Items = {}
        self.seq = 0
        self.store = ""
        self.awake = False

    async def start(self) -> None:
        """Begin to listen, or go on where it was."""
        self.host: SidekeepHost = await self.sandbox.host().__aenter__()
        await self.host.hello()
        since: Items = {"since": {"local": self.seq}, "store": self.store} if self.store else {}
        await self.host.call("storage.watch", {"areas": ["local"], **since})
        since = {"since": self.seq} if self.store else {}
        self.store = self.host.greeting["store"]
        await self.host.call("history.watch", {"store": self.store, **since})
        self.awake = True

    async def heard(self, seq: int) -> list[Items]:
        """Return everything told up to the change ``seq``."""

        def is_there() -> bool:
            return any(
                one["params"].get("seq") == seq
                for one in self.host.notifications
                if one["method"].startswith("storage.")
            )

        if seq > self.seq:
            await self.host.until(is_there)
        await self.host.ping()
        told = list(self.host.notifications)
        self.host.notifications.clear()
        for one in told:
            if one["method"] == "storage.changed":
                self._replay(one["params"])
        return told

    def _replay(self, event: Items) -> None:
        assert event["seq"] > self.seq
        self.seq = event["seq"]
        for key, change in event["changes"].items():
            assert ("oldValue" in change) == (key in self.items)
            if "oldValue" in change:
                assert canonical(change["oldValue"]) == canonical(self.items.pop(key))
            if "newValue" in change:
                self.items[key] = change["newValue"]


class Machine(RuleBasedStateMachine):
    """Drives hosts and a model with the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sidekeep-model-")
        self.sandbox = Sandbox(Path(self.folder.name))
        self.loop = asyncio.new_event_loop()
        self.panels = [Panel(self.sandbox, f"panel-{number}") for number in range(HOSTS)]
        self.listener = Listener(self.sandbox)
        for panel in self.panels:
            self.run(panel.start())
        self.run(self.listener.start())
        self.store = opened(self.sandbox.store_file())
        self.model = Calls(live=Stored(self.store).live)
        self.seq = self.newest_id = 0
        self.states: dict[int, tuple[Calls, Calls]] = {}
        self.gap_after: int | None = None
        self.former: dict[str, list[list[Any]]] = {}
        self.tokens: dict[str, str] = {}

    def run(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        return self.loop.run_until_complete(awaited())

    # One call

    def do(
        self,
        method: str,
        params: Items,
        effect: Callable[[Calls], Any],
        where: Where,
    ) -> None:
        """Make a call on a host, its effect on the model, and compare everything."""
        before, after = self.model, self.model.copied()
        refusal, expected = None, None
        try:
            expected = effect(after)
        except Refused as refused:
            refusal, after = refused.kind, before.copied()
        panel = self.panels[where[0]]
        began = time.time() * 1000
        try:
            result = self.run(panel.change(method, params, where[1]))
        except RpcError as error:
            if error.kind == "notFound" and self.may_be_gone(params):
                after = before.copied()
                refusal = "notFound"
            assert error.kind == refusal, error
            result = None
        else:
            assert refusal is None, (refusal, result)
        self.settle(method, before, after, result, began)
        if isinstance(expected, dict) and refusal is None:
            for name, wanted in expected.items():
                assert wanted == NEW_SESSION or result[name] == wanted

    def may_be_gone(self, params: Items) -> bool:
        """Whether a token is given of a picture that no key and no removal holds."""
        text = canonical(params)
        held = set(pictures_of(plain(self.model.items)))
        for removal in self.model.trash.values():
            held |= set(
                pictures_of([gone.value for part in removal.parts for gone in part.entries])
            )
        return any(token in text and one not in held for one, token in self.tokens.items())

    def settle(self, method: str, before: Calls, after: Calls, result: Any, began: float) -> None:
        """Compare the file with the model, and take over what the host was free to choose."""
        stored = Stored(self.store)
        self.name_session(after, stored, result, began)
        after.settle_assigned(stored.lists)
        assert sorted(stored.lists) == sorted(
            key for key, one in after.items.items() if isinstance(one, Entries)
        )
        for key, actual in stored.lists.items():
            expected = after.items[key]
            assert canonical(actual.values) == canonical(expected.values), key
            for (identity, _), (wanted, _) in zip(actual, expected, strict=True):
                assert identity == wanted or (not wanted and identity > self.newest_id)
            after.items[key] = actual
        changed = self.shown(before) != self.shown(after)
        assert stored.seq == self.seq + changed
        undo = after.finish(method.replace("storage.update", "storage.set"), stored.seq)
        if result is not None and "undo" in result:
            assert result["undo"] == undo
        self.check_words(before, after, stored)
        ids = [identity for one in stored.lists.values() for identity, _ in one]
        self.newest_id = max([self.newest_id, *ids])
        for key, one in stored.lists.items():
            if canonical(one.values) not in map(canonical, self.former.setdefault(key, [])):
                self.former[key] = [*self.former[key][-5:], one.values]
        if changed:
            self.states[stored.seq] = (before, after)
        self.model, self.seq = after, stored.seq
        self.compare()

    def shown(self, model: Calls) -> str:
        """Return everything that a change is counted for."""
        return canonical(
            {
                key: [list(pair) for pair in one] if isinstance(one, Entries) else one
                for key, one in model.items.items()
            }
        )

    def name_session(self, after: Calls, stored: Stored, result: Any, began: float) -> None:
        """Give a new session the id and the time that the host gave it."""
        if BODY + NEW_SESSION not in after.items:
            return
        actual = stored.lists[INDEX].values[-1]
        assert result[("savedAs" if "savedAs" in result else "id")] == actual["id"]
        assert began - 1 <= actual["createdAt"] <= time.time() * 1000
        key = BODY + actual["id"]
        after.items[key] = after.items.pop(BODY + NEW_SESSION)
        after.words[key] = after.words.pop(BODY + NEW_SESSION)
        for _, row in after.items[INDEX]:
            if isinstance(row, dict) and row.get("id") == NEW_SESSION:
                row.update(id=actual["id"], createdAt=actual["createdAt"])
                if row["name"] == DATE:
                    assert actual["name"][4] == "-"
                    row["name"] = actual["name"]

    def check_words(self, before: Calls, after: Calls, stored: Stored) -> None:
        """Check which conversation each list is."""
        if after.fresh_word:
            known = {before.live, *before.words.values()}
            assert stored.live not in known
            after.live, after.fresh_word = stored.live, False
        bodies = [word for key, word in stored.words.items() if key.startswith(BODY)]
        assert len(set(bodies)) == len(bodies)
        assert stored.words.get(HISTORY, stored.live) == stored.live
        if after.loaded:
            after.live = stored.words[BODY + after.loaded]
            after.loaded = ""
        assert stored.live == after.live
        for key, word in after.words.items():
            if key.startswith(BODY) and word == before.live != before.words.get(key):
                assert stored.words[key] == word
        after.words = stored.words

    def compare(self) -> None:
        """Compare what hosts show with the model."""
        model = self.model
        host = self.panels[self.seq % HOSTS].host
        items = self.run(host.get())
        assert canonical(items) == canonical(plain(model.items))
        history = model.items.get(HISTORY, Entries())
        if isinstance(history, Entries):
            listed = self.run(host.call("history.list", {"pixels": "none"}))
            assert [one["id"] for one in listed["entries"]] == [f"e{one}" for one, _ in history]
            shots = [one for value in history.values for one in pictures_of(value)]
            assert [one["bytes"] for one in listed["images"]] == [
                len(one.encode()) for one in shots
            ]
            self.tokens |= {
                one: image["ref"] for one, image in zip(shots, listed["images"], strict=True)
            }
            assert listed["conversation"] == model.live
        if isinstance(model.items.get(INDEX, Entries()), Entries):
            rows = self.run(host.call("sessions.list", {}))["rows"]
            for row in rows:
                del row["updatedAt"]
            assert rows == rows_of(model)
        trash = self.run(host.call("trash.list", {}))["items"]
        for item in trash:
            del item["time"], item["until"], item["bytes"]
            item["sessions"] = [one["id"] for one in item["sessions"]]
        assert trash == trash_of(model)
        if self.listener.awake:
            self.compare_told()

    def compare_told(self) -> None:
        """Compare what the listener was told with what has changed since it last heard."""
        heard = self.listener.seq
        told = self.run(self.listener.heard(self.seq))
        gap = self.gap_after is not None and heard < self.gap_after
        self.gap_after = None
        if gap:
            assert {one["method"] for one in told if one["params"].get("what") != "gap"} == {
                "storage.gap"
            }
            self.listener.items, self.listener.seq = plain(self.model.items), self.seq
            return
        assert canonical(self.listener.items) == canonical(plain(self.model.items))
        for seq in range(heard + 1, self.seq + 1):
            mine = [one for one in told if one["params"].get("revision") == seq]
            check_told(mine, *self.states[seq])
        self.states.clear()

    def teardown(self) -> None:
        try:
            self.store.close()
            for panel in self.panels:
                self.run(panel.host.close())
            if self.listener.awake:
                self.run(self.listener.host.close())
            check_store(self.sandbox)
        finally:
            self.loop.close()
            self.folder.cleanup()
