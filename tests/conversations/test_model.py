"""Calls and plain keys together behave like lists, through other hosts, kills and restarts.

Random sequences of calls are made on hosts of one file and on a model side by side (``model``,
``model_calls``, ``model_machine``). After every call the plain keys, the calls that read, the trash
and a listener of everything are compared with the model, and in the end every reference in the file
is counted. A failure prints the shortest sequence found; ``--hypothesis-seed`` repeats a run,
``SIDEKEEP_LONG=1`` makes it longer.
"""

from __future__ import annotations

import os
from typing import Any

import hypothesis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.conversations.model import HISTORY, INDEX, Entries, Refused, is_view
from tests.conversations.model_calls import Calls
from tests.conversations.model_checks import Items
from tests.conversations.model_data import (
    ENTRIES,
    KEYS,
    PLAIN,
    ROWS,
    SESSIONS,
    array,
    replaced,
    value,
)
from tests.conversations.model_machine import HOSTS, Machine, Where

# In one call out of six the host is killed some milliseconds after it was sent.
WHERE = st.tuples(st.integers(0, HOSTS - 1), st.sampled_from([None] * 10 + [0.0, 0.003]))


class Conversations(Machine):
    """What may be called, and what the model says to it."""

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
        return replaced(given, self.tokens if data.draw(st.booleans()) else {})

    @rule(data=st.data(), entries=st.lists(ENTRIES, min_size=1, max_size=3), where=WHERE)
    def append(self, data: st.DataObject, entries: list[Any], where: Where) -> None:
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

        self.do("history.append", params, effect, where)

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

    @rule(data=st.data(), new=ENTRIES, merged=st.booleans(), where=WHERE)
    def update(self, data: st.DataObject, new: Any, merged: bool, where: Where) -> None:
        name = self.id_of(data)
        if merged:
            fields = {"content": new, "stamped": None}

            def value_after(old: Any) -> Any:
                if not isinstance(old, dict):
                    raise Refused("invalidParams")
                return {**old, **fields}

            params = {"id": name, "merge": self.with_tokens(data, fields)}
            self.do("history.update", params, lambda m: m.update(name, value_after), where)
        else:
            params = {"id": name, "entry": self.with_tokens(data, new)}
            self.do("history.update", params, lambda m: m.update(name, lambda _: new), where)

    @rule(data=st.data(), where=WHERE)
    def replace(self, data: st.DataObject, where: Where) -> None:
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
        self.do("history.replace", params, lambda m: m.replace(new), where)

    @rule(data=st.data(), where=WHERE)
    def remove_entry(self, data: st.DataObject, where: Where) -> None:
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
        self.do("history.remove", params, effect, where)

    @rule(name=st.sampled_from(["i", "j", "", "k"]), where=WHERE)
    def remove_attached(self, name: str, where: Where) -> None:
        def effect(model: Calls) -> Any:
            for index, entry in enumerate((model.entries(HISTORY) or Entries()).values):
                if isinstance(entry, dict) and (entry.get("role"), entry.get("attachId")) == (
                    "user",
                    name,
                ):
                    return model.take(index)
            return model.take(None)

        self.do("history.remove", {"attachId": name}, effect, where)

    @rule(data=st.data(), where=WHERE)
    def truncate(self, data: st.DataObject, where: Where) -> None:
        place = self.place(data)
        self.do("history.truncate", {"from": place}, lambda m: m.truncate(place), where)

    @rule(where=WHERE)
    def clear(self, where: Where) -> None:
        self.do("history.clear", {}, Calls.clear, where)

    def token(self, data: st.DataObject) -> str:
        """Draw a token of the trash, or one that is not there."""
        tokens = [f"u{number}" for number in self.model.trash]
        return data.draw(st.sampled_from([*tokens * 4, "u999999"]))

    @rule(data=st.data(), where=WHERE)
    def undo(self, data: st.DataObject, where: Where) -> None:
        token = self.token(data) if data.draw(st.booleans()) else None
        params = {} if token is None else {"undo": token}
        self.do("history.undo", params, lambda m: m.undo(token), where)

    # Rules: sessions

    def session(self, data: st.DataObject) -> str:
        """Draw the id of a session, or one that is not there."""
        return data.draw(st.sampled_from([*self.model.sessions(), *SESSIONS, "nobody"]))

    @rule(
        data=st.data(),
        name=st.sampled_from([None, None, "N", "", "z" * 99]),
        where=WHERE,
    )
    def save(self, data: st.DataObject, name: str | None, where: Where) -> None:
        session = self.session(data) if data.draw(st.booleans()) else None
        params = {"id": session, "name": name}
        params = {key: one for key, one in params.items() if one is not None}
        self.do("sessions.save", params, lambda m: m.save(session, name), where)

    @rule(data=st.data(), save=st.booleans(), where=WHERE)
    def load(self, data: st.DataObject, save: bool, where: Where) -> None:
        session = self.session(data)
        params = {"id": session, "saveCurrent": save}
        self.do("sessions.load", params, lambda m: m.load(session, save), where)

    @rule(data=st.data(), entries=st.lists(ENTRIES, min_size=1, max_size=2), where=WHERE)
    def append_to_session(self, data: st.DataObject, entries: list[Any], where: Where) -> None:
        session = self.session(data)
        params = {"id": session, "entries": self.with_tokens(data, entries)}
        self.do("sessions.append", params, lambda m: m.session_append(session, entries), where)

    @rule(data=st.data(), name=st.sampled_from(["N", "M", "", "z" * 99]), where=WHERE)
    def rename(self, data: st.DataObject, name: str, where: Where) -> None:
        session = self.session(data)
        self.do(
            "sessions.rename",
            {"id": session, "name": name},
            lambda m: m.rewrite(session, name=name[:80]),
            where,
        )

    @rule(data=st.data(), pinned=st.booleans(), where=WHERE)
    def pin(self, data: st.DataObject, pinned: bool, where: Where) -> None:
        session = self.session(data)
        self.do(
            "sessions.pin",
            {"id": session, "pinned": pinned},
            lambda m: m.rewrite(session, pinned=pinned),
            where,
        )

    @rule(data=st.data(), where=WHERE)
    def delete(self, data: st.DataObject, where: Where) -> None:
        session = self.session(data)
        self.do("sessions.delete", {"id": session}, lambda m: m.delete(session), where)

    @rule(where=WHERE)
    def clear_sessions(self, where: Where) -> None:
        self.do("sessions.clear", {}, Calls.clear_sessions, where)

    @rule(data=st.data(), where=WHERE)
    def restore(self, data: st.DataObject, where: Where) -> None:
        session, token = None, None
        if data.draw(st.booleans()):
            session = self.session(data)
        else:
            token = self.token(data)
        params = {"id": session} if token is None else {"undo": token}
        self.do("sessions.restore", params, lambda m: m.session_restore(session, token), where)

    @rule(data=st.data(), where=WHERE)
    def empty_trash(self, data: st.DataObject, where: Where) -> None:
        token = self.token(data) if data.draw(st.booleans()) else None
        params = {} if token is None else {"undo": token}
        if token is None:
            self.gap_after = self.seq
        self.do("trash.empty", params, lambda m: m.empty(token), where)

    # Rules: plain keys

    @rule(
        data=st.data(),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
        where=WHERE,
    )
    def set(self, data: st.DataObject, keys: list[str], where: Where) -> None:
        model = self.model
        items = {
            key: value(data, key, model.items.get(key), self.former.get(key, [])) for key in keys
        }
        params = {"area": "local", "items": self.with_tokens(data, items)}
        self.do("storage.set", params, lambda m: m.set(items), where)

    @rule(
        data=st.data(),
        key=st.sampled_from([HISTORY, HISTORY, "session_s1"]),
        where=WHERE,
    )
    def set_array(self, data: st.DataObject, key: str, where: Where) -> None:
        items = {key: array(data, key, self.model.items.get(key), self.former.get(key, []))}
        params = {"area": "local", "items": self.with_tokens(data, items)}
        self.do("storage.set", params, lambda m: m.set(items), where)

    @rule(data=st.data(), where=WHERE)
    def point(self, data: st.DataObject, where: Where) -> None:
        value = self.session(data) if data.draw(st.integers(0, 5)) else data.draw(PLAIN)
        items = {"activeSessionId": value}
        self.do("storage.set", {"area": "local", "items": items}, lambda m: m.set(items), where)

    @rule(data=st.data(), key=st.sampled_from(KEYS), where=WHERE)
    def push(self, data: st.DataObject, key: str, where: Where) -> None:
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

        self.do("storage.update", params, effect, where)

    @rule(data=st.data(), key=st.sampled_from(KEYS), where=WHERE)
    def give_value(self, data: st.DataObject, key: str, where: Where) -> None:
        new = value(data, key, self.model.items.get(key), self.former.get(key, []))
        params = {"area": "local", "key": key, "value": self.with_tokens(data, new)}
        self.do("storage.update", params, lambda m: m.set({key: new}), where)

    @rule(keys=st.lists(st.sampled_from(KEYS), max_size=3), where=WHERE)
    def remove(self, keys: list[str], where: Where) -> None:
        params = {"area": "local", "keys": keys}
        self.do("storage.remove", params, lambda m: m.remove(keys), where)

    @rule(where=WHERE, sure=st.integers(0, 3))
    def clear_area(self, where: Where, sure: int) -> None:
        if not sure:
            self.do("storage.clear", {"area": "local"}, lambda m: m.remove(list(m.items)), where)

    # Rules: hosts

    @rule(host=st.integers(0, HOSTS - 1), killed=st.booleans())
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


def test_calls_and_plain_keys_behave_like_lists_through_restarts_and_kills() -> None:
    is_long = bool(os.environ.get("SIDEKEEP_LONG"))
    run_state_machine_as_test(
        Conversations,
        settings=settings(
            max_examples=300 if is_long else 12,
            stateful_step_count=60 if is_long else 25,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            print_blob=True,
        ),
    )
