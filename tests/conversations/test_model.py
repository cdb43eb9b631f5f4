"""Calls and plain keys together behave like lists, through other hosts, kills and restarts.

Random sequences of calls are made on hosts of one file and on a model side by side (``model``,
``model_calls``). After every call the plain keys, the calls that read, the trash and a listener of
everything are compared with the model, and in the end every reference in the file is counted. A
failure prints the shortest sequence found; ``--hypothesis-seed`` repeats a run, ``SIDEKEEP_LONG=1``
makes it longer.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.conversations.chat import check_store
from tests.conversations.model import (
    BODY,
    HISTORY,
    INDEX,
    Entries,
    Refused,
    canonical,
    is_view,
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
from tests.conversations.model_data import (
    ENTRIES,
    KEYS,
    PLAIN,
    ROWS,
    SESSIONS,
    array,
    value,
)
from tests.harness import HostGoneError, RpcError
from tests.harness.sidekeep_host import Sandbox, SidekeepHost

T = TypeVar("T")
HOSTS = 2
WHERE = st.integers(0, HOSTS - 1)
# In one call out of six the host is killed some milliseconds after it was sent.
DELAYS = st.sampled_from([None] * 10 + [0.0, 0.003])


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


class Conversations(RuleBasedStateMachine):
    """Drives hosts and a model with the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sidekeep-model-")
        self.sandbox = Sandbox(Path(self.folder.name))
        self.loop = asyncio.new_event_loop()
        self.panels = [Panel(self.sandbox, f"panel-{number}") for number in range(HOSTS)]
        self.listener = Listener(self.sandbox)
        for one in (*self.panels, self.listener):
            self.run(one.start())
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
        where: tuple[int, float | None],
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
            named = {NEW_SESSION: (result or {}).get("savedAs")}
            for name, wanted in expected.items():
                assert result[name] == named.get(
                    wanted if isinstance(wanted, str) else None, wanted
                )

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

    # Rules: the live conversation

    def id_of(self, data: st.DataObject) -> str:
        """Draw an id of the history, or one that is not there."""
        history = self.model.items.get(HISTORY)
        ids = [f"e{one}" for one, _ in history] if isinstance(history, Entries) else []
        return data.draw(st.sampled_from([*ids * 4, "e999999", "x"]))

    def place(self, data: st.DataObject) -> int | str:
        """Draw an id or an index."""
        return self.id_of(data) if data.draw(st.booleans()) else data.draw(st.integers(-1, 5))

    def with_tokens(self, data: st.DataObject, given: Any) -> Any:
        """Return a value with tokens in place of some pictures."""
        if self.tokens and data.draw(st.booleans()):
            return replaced(given, self.tokens)
        return given

    @rule(
        data=st.data(), entries=st.lists(ENTRIES, min_size=1, max_size=3), host=WHERE, delay=DELAYS
    )
    def append(
        self, data: st.DataObject, entries: list[Any], host: int, delay: float | None
    ) -> None:
        words = [None, None, self.model.live, "another"]
        conversation = data.draw(st.sampled_from(words))
        expect = self.expectation(data)
        params = {
            "entries": self.with_tokens(data, entries),
            "conversation": conversation,
            **expect,
        }
        params = {name: one for name, one in params.items() if one is not None}

        def effect(model: Calls) -> Any:
            model.check(conversation, expect.get("expect") != 1 << 40)
            return model.append(entries)

        self.do("history.append", params, effect, (host, delay))

    def expectation(self, data: st.DataObject) -> Items:
        """Draw what a call expects of the history's revision."""
        if data.draw(st.integers(0, 3)):
            return {}
        return {"expect": 1 << 40 if data.draw(st.booleans()) else self.revision()}

    def revision(self) -> int:
        """Return the history's revision."""
        if not isinstance(self.model.items.get(HISTORY, Entries()), Entries):
            return 0
        result = self.run(self.panels[0].host.call("history.list", {"limit": 0}))
        revision = result["revision"]
        assert isinstance(revision, int)
        return revision

    @rule(data=st.data(), new=ENTRIES, merged=st.booleans(), host=WHERE, delay=DELAYS)
    def update(
        self, data: st.DataObject, new: Any, merged: bool, host: int, delay: float | None
    ) -> None:
        name = self.id_of(data)
        if merged:
            fields = {"content": new, "stamped": None}

            def value_after(old: Any) -> Any:
                if not isinstance(old, dict):
                    raise Refused("invalidParams")
                return {**old, **fields}

            params = {"id": name, "merge": self.with_tokens(data, fields)}
            self.do("history.update", params, lambda m: m.update(name, value_after), (host, delay))
        else:
            params = {"id": name, "entry": self.with_tokens(data, new)}
            self.do(
                "history.update", params, lambda m: m.update(name, lambda _: new), (host, delay)
            )

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def replace(self, data: st.DataObject, host: int, delay: float | None) -> None:
        names = [self.id_of(data) for _ in range(data.draw(st.integers(0, 4)))]
        history = self.model.items.get(HISTORY)
        known = {f"e{one}": old for one, old in history} if isinstance(history, Entries) else {}
        new: list[tuple[str | None, Any]] = []
        for name in names:
            entry = data.draw(ENTRIES)
            keeps = name in known and data.draw(st.booleans())
            new.append(
                (name if data.draw(st.booleans()) else None, known[name] if keeps else entry)
            )
        entries = [{"entry": entry} | ({} if name is None else {"id": name}) for name, entry in new]
        params = {"entries": entries, "expect": self.revision()}
        self.do("history.replace", params, lambda m: m.replace(new), (host, delay))

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def remove_entry(self, data: st.DataObject, host: int, delay: float | None) -> None:
        place = self.place(data)

        def effect(model: Calls) -> Any:
            model.entries(HISTORY)
            if isinstance(place, str):
                try:
                    model.index_of(place)
                except Refused:
                    return model.take(None)
            return model.take(place)

        params = {"index" if isinstance(place, int) else "id": place}
        self.do("history.remove", params, effect, (host, delay))

    @rule(name=st.sampled_from(["i", "j", "", "k"]), host=WHERE, delay=DELAYS)
    def remove_attached(self, name: str, host: int, delay: float | None) -> None:
        def effect(model: Calls) -> Any:
            for index, entry in enumerate((model.entries(HISTORY) or Entries()).values):
                if isinstance(entry, dict) and (entry.get("role"), entry.get("attachId")) == (
                    "user",
                    name,
                ):
                    return model.take(index)
            return model.take(None)

        self.do("history.remove", {"attachId": name}, effect, (host, delay))

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def truncate(self, data: st.DataObject, host: int, delay: float | None) -> None:
        place = self.place(data)
        self.do("history.truncate", {"from": place}, lambda m: m.truncate(place), (host, delay))

    @rule(host=WHERE, delay=DELAYS)
    def clear(self, host: int, delay: float | None) -> None:
        self.do("history.clear", {}, Calls.clear, (host, delay))

    def token(self, data: st.DataObject) -> str:
        """Draw a token of the trash, or one that is not there."""
        tokens = [f"u{number}" for number in self.model.trash]
        return data.draw(st.sampled_from([*tokens * 4, "u999999"]))

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def undo(self, data: st.DataObject, host: int, delay: float | None) -> None:
        token = self.token(data) if data.draw(st.booleans()) else None
        params = {} if token is None else {"undo": token}
        self.do("history.undo", params, lambda m: m.undo(token), (host, delay))

    # Rules: sessions

    def session(self, data: st.DataObject) -> str:
        """Draw the id of a session, or one that is not there."""
        return data.draw(st.sampled_from([*self.model.sessions(), *SESSIONS, "nobody"]))

    @rule(
        data=st.data(),
        name=st.sampled_from([None, None, "N", "", "z" * 99]),
        host=WHERE,
        delay=DELAYS,
    )
    def save(self, data: st.DataObject, name: str | None, host: int, delay: float | None) -> None:
        session = self.session(data) if data.draw(st.booleans()) else None
        params = {"id": session, "name": name}
        params = {key: one for key, one in params.items() if one is not None}
        self.do("sessions.save", params, lambda m: m.save(session, name), (host, delay))

    @rule(data=st.data(), save=st.booleans(), host=WHERE, delay=DELAYS)
    def load(self, data: st.DataObject, save: bool, host: int, delay: float | None) -> None:
        session = self.session(data)
        params = {"id": session, "saveCurrent": save}
        self.do("sessions.load", params, lambda m: m.load(session, save), (host, delay))

    @rule(
        data=st.data(), entries=st.lists(ENTRIES, min_size=1, max_size=2), host=WHERE, delay=DELAYS
    )
    def append_to_session(
        self, data: st.DataObject, entries: list[Any], host: int, delay: float | None
    ) -> None:
        session = self.session(data)
        params = {"id": session, "entries": self.with_tokens(data, entries)}
        self.do(
            "sessions.append", params, lambda m: m.session_append(session, entries), (host, delay)
        )

    @rule(data=st.data(), name=st.sampled_from(["N", "M", "", "z" * 99]), host=WHERE, delay=DELAYS)
    def rename(self, data: st.DataObject, name: str, host: int, delay: float | None) -> None:
        session = self.session(data)
        self.do(
            "sessions.rename",
            {"id": session, "name": name},
            lambda m: m.rewrite(session, name=name[:80]),
            (host, delay),
        )

    @rule(data=st.data(), pinned=st.booleans(), host=WHERE, delay=DELAYS)
    def pin(self, data: st.DataObject, pinned: bool, host: int, delay: float | None) -> None:
        session = self.session(data)
        self.do(
            "sessions.pin",
            {"id": session, "pinned": pinned},
            lambda m: m.rewrite(session, pinned=pinned),
            (host, delay),
        )

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def delete(self, data: st.DataObject, host: int, delay: float | None) -> None:
        session = self.session(data)
        self.do("sessions.delete", {"id": session}, lambda m: m.delete(session), (host, delay))

    @rule(host=WHERE, delay=DELAYS)
    def clear_sessions(self, host: int, delay: float | None) -> None:
        self.do("sessions.clear", {}, Calls.clear_sessions, (host, delay))

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def restore(self, data: st.DataObject, host: int, delay: float | None) -> None:
        session, token = None, None
        if data.draw(st.booleans()):
            session = self.session(data)
        else:
            token = self.token(data)
        params = {"id": session} if token is None else {"undo": token}
        self.do(
            "sessions.restore", params, lambda m: m.session_restore(session, token), (host, delay)
        )

    @rule(data=st.data(), host=WHERE, delay=DELAYS)
    def empty_trash(self, data: st.DataObject, host: int, delay: float | None) -> None:
        token = self.token(data) if data.draw(st.booleans()) else None
        params = {} if token is None else {"undo": token}
        if token is None:
            self.gap_after = self.seq
        self.do("trash.empty", params, lambda m: m.empty(token), (host, delay))

    # Rules: plain keys

    @rule(
        data=st.data(),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
        host=WHERE,
        delay=DELAYS,
    )
    def set(self, data: st.DataObject, keys: list[str], host: int, delay: float | None) -> None:
        model = self.model
        items = {
            key: value(data, key, model.items.get(key), self.former.get(key, [])) for key in keys
        }
        params = {"area": "local", "items": self.with_tokens(data, items)}
        self.do("storage.set", params, lambda m: m.set(items), (host, delay))

    @rule(
        data=st.data(),
        key=st.sampled_from([HISTORY, HISTORY, "session_s1"]),
        host=WHERE,
        delay=DELAYS,
    )
    def set_array(self, data: st.DataObject, key: str, host: int, delay: float | None) -> None:
        items = {key: array(data, key, self.model.items.get(key), self.former.get(key, []))}
        params = {"area": "local", "items": self.with_tokens(data, items)}
        self.do("storage.set", params, lambda m: m.set(items), (host, delay))

    @rule(data=st.data(), host=WHERE)
    def point(self, data: st.DataObject, host: int) -> None:
        value = self.session(data) if data.draw(st.integers(0, 5)) else data.draw(PLAIN)
        items = {"activeSessionId": value}
        self.do(
            "storage.set", {"area": "local", "items": items}, lambda m: m.set(items), (host, None)
        )

    @rule(data=st.data(), key=st.sampled_from(KEYS), host=WHERE, delay=DELAYS)
    def push(self, data: st.DataObject, key: str, host: int, delay: float | None) -> None:
        new = data.draw(
            ROWS.filter(lambda row: not isinstance(row, dict)) if key == INDEX else ENTRIES
        )
        params = {"area": "local", "key": key, "push": self.with_tokens(data, new)}

        def effect(model: Calls) -> None:
            if is_view(key):
                model.push(key, new)
            else:
                present = model.items.get(key, [])
                if not isinstance(present, list):
                    raise Refused("conflict")
                model.set({key: [*present, new]})

        self.do("storage.update", params, effect, (host, delay))

    @rule(data=st.data(), key=st.sampled_from(KEYS), host=WHERE, delay=DELAYS)
    def give_value(self, data: st.DataObject, key: str, host: int, delay: float | None) -> None:
        new = value(data, key, self.model.items.get(key), self.former.get(key, []))
        params = {"area": "local", "key": key, "value": self.with_tokens(data, new)}
        self.do("storage.update", params, lambda m: m.set({key: new}), (host, delay))

    @rule(keys=st.lists(st.sampled_from(KEYS), max_size=3), host=WHERE, delay=DELAYS)
    def remove(self, keys: list[str], host: int, delay: float | None) -> None:
        params = {"area": "local", "keys": keys}
        self.do("storage.remove", params, lambda m: m.remove(keys), (host, delay))

    @rule(host=WHERE, delay=DELAYS, sure=st.integers(0, 3))
    def clear_area(self, host: int, delay: float | None, sure: int) -> None:
        if not sure:
            self.do(
                "storage.clear", {"area": "local"}, lambda m: m.remove(list(m.items)), (host, delay)
            )

    # Rules: hosts

    @rule(host=WHERE, killed=st.booleans())
    def restart(self, host: int, killed: bool) -> None:
        panel = self.panels[host]
        if killed:
            panel.host.kill()
        self.run(panel.host.close())
        self.run(panel.start())
        self.compare()

    @rule(killed=st.booleans())
    def listener_sleeps_or_wakes(self, killed: bool) -> None:
        if self.listener.awake:
            self.listener.awake = False
            if killed:
                self.listener.host.kill()
            self.run(self.listener.host.close())
        else:
            self.run(self.listener.start())
        self.compare()

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


def replaced(given: Any, tokens: dict[str, str]) -> Any:
    """Return a value with tokens in place of pictures."""
    if isinstance(given, str):
        return tokens.get(given, given)
    if isinstance(given, list):
        return [replaced(one, tokens) for one in given]
    if isinstance(given, dict):
        return {name: replaced(one, tokens) for name, one in given.items()}
    return given


def test_calls_and_plain_keys_behave_like_lists_through_restarts_and_kills() -> None:
    is_long = bool(os.environ.get("SIDEKEEP_LONG"))
    run_state_machine_as_test(
        Conversations,
        settings=settings(
            max_examples=300 if is_long else 15,
            stateful_step_count=60 if is_long else 30,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            print_blob=True,
        ),
    )
