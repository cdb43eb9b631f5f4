"""The calls for conversations, done on the model (see ``model``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conversations.model import (
    BODY,
    HISTORY,
    INDEX,
    NEW,
    Entries,
    Model,
    Part,
    Refused,
    Removal,
    digest,
    name_of,
    session_of,
)

NEW_SESSION = "a session that the host names"
DATE = "a name that is a date"
Result = dict[str, Any]


class Calls(Model):
    """A model that knows the calls; each returns what is known of its result."""

    # History

    def check(self, conversation: str | None, expected: bool) -> None:
        """Refuse another conversation's call, and one with an old revision."""
        self.entries(HISTORY)
        if (conversation is not None and conversation != self.live) or not expected:
            raise Refused("conflict")

    def append(self, new: Sequence[Any]) -> Result:
        """``history.append``."""
        entries = [*(self.entries(HISTORY) or []), *((NEW, one) for one in new)]
        self.change(HISTORY, entries)
        return {"length": len(entries)}

    def index_of(self, name: int | str) -> int:
        """Return the index of an entry of the history that an id or an index names."""
        entries = self.entries(HISTORY) or Entries()
        if isinstance(name, int):
            if not 0 <= name < len(entries):
                raise Refused("invalidParams")
            return name
        ids = [f"e{identity}" for identity, _ in entries]
        if name not in ids:
            raise Refused("notFound")
        return ids.index(name)

    def update(self, name: str, new: Any) -> None:
        """``history.update``; ``new(old)`` gives the new value."""
        index = self.index_of(name)
        entries = self.items[HISTORY]
        identity, old = entries[index]
        self.change(HISTORY, [*entries[:index], (identity, new(old)), *entries[index + 1 :]])

    def replace(self, new: Sequence[tuple[str | None, Any]]) -> Result:
        """``history.replace``."""
        present = {f"e{one}": one for one, _ in self.entries(HISTORY) or []}
        named = [name for name, _ in new if name is not None]
        if len(set(named)) < len(named):
            raise Refused("invalidParams")
        if any(name not in present for name in named):
            raise Refused("notFound")
        self.change(HISTORY, [(present[n] if n is not None else NEW, value) for n, value in new])
        self.settle_emptied()
        return {}

    def settle_emptied(self) -> None:
        """Take the pointer to a session off an empty history."""
        if not self.items[HISTORY]:
            self.set_active("")

    def take(self, name: int | str | None) -> Result:
        """``history.remove``; ``None``: nothing that is there."""
        if name is None:
            return {"removed": False, "index": -1, "undo": None}
        index = self.index_of(name)
        entries = self.items[HISTORY]
        self.change(HISTORY, [*entries[:index], *entries[index + 1 :]])
        self.settle_emptied()
        return {"removed": True, "index": index}

    def truncate(self, name: int | str) -> Result:
        """``history.truncate``."""
        index = self.index_of(name)
        entries = self.items[HISTORY]
        self.change(HISTORY, entries[:index])
        self.settle_emptied()
        return {"removed": len(entries) - index, "length": index}

    def clear(self) -> Result:
        """``history.clear``."""
        if self.entries(HISTORY) is not None:
            self.change(HISTORY, [])
        self.set_active("")
        self.fresh_word = True
        return {}

    def undo(self, token: str | None) -> Result:
        """``history.undo``."""
        number = self._newest_of_live() if token is None else self.number_of(token)
        restored = self.restore(number, self.trash[number].parts)
        return {"restored": [f"e{one}" for one in restored.get(HISTORY, [])]}

    def _newest_of_live(self) -> int:
        for number in self.newest():
            empty = not self.entries(HISTORY)
            for part in self.trash[number].parts:
                if part.key == HISTORY and (part.word == self.live or (part.whole and empty)):
                    return number
        raise Refused("notFound")

    def number_of(self, token: str) -> int:
        """Return what a token of the trash names."""
        number = int(token[1:])
        if number not in self.trash:
            raise Refused("notFound")
        return number

    # Sessions

    def sessions(self) -> dict[str, tuple[int, Any]]:
        """Return id and value of the row that counts, by session."""
        rows = self.items.get(INDEX)
        found = {}
        for pair in rows if isinstance(rows, Entries) else []:
            if session_of(pair[1]):
                found[session_of(pair[1])] = pair
        return found

    def known(self, session: str) -> tuple[int, Any]:
        """Return a session's row."""
        row = self.sessions().get(session)
        if row is None:
            self.entries(INDEX)
            raise Refused("notFound")
        return row

    def body(self, session: str) -> Entries:
        """Return a session's body."""
        self.known(session)
        found = self.entries(BODY + session)
        if found is None:
            raise Refused("notFound")
        return found

    def rewrite(self, session: str, **changes: Any) -> None:
        """Set members of a session's row."""
        chosen, row = self.known(session)
        self.change(
            INDEX,
            [
                (identity, {**row, **changes} if identity == chosen else value)
                for identity, value in self.items[INDEX]
            ],
        )

    def save(self, session: str | None, name: str | None) -> str | None:
        """``sessions.save``; the id of the session, ``NEW_SESSION`` or ``None``."""
        source = self.entries(HISTORY)
        if not source:
            return None
        chosen = session if session in self.sessions() else NEW_SESSION
        assert chosen is not None
        key = BODY + chosen
        before = self.entries(key)
        self.change(key, source)
        self.words[key] = self.live
        if chosen is not NEW_SESSION:
            changes = {} if name is None else {"name": name[:80]}
            if before != source:
                changes["textDigest"] = digest(source.values)
            self.rewrite(chosen, **changes)
            return chosen
        row = {
            "id": NEW_SESSION,
            "name": (name_of(source.values) or DATE) if name is None else name[:80],
            "pinned": False,
            "textDigest": digest(source.values),
        }
        self.change(INDEX, [*(self.entries(INDEX) or []), (NEW, row)])
        return NEW_SESSION

    def load(self, session: str, save_current: bool) -> Result:
        """``sessions.load``."""
        self.body(session)
        saved = self.save(self.active or None, None) if save_current else None
        body = self.body(session)
        self.entries(HISTORY)
        self.change(HISTORY, body)
        self.loaded = session
        self.set_active(session)
        return {"length": len(body), "savedAs": saved}

    def session_append(self, session: str, new: Sequence[Any]) -> Result:
        """``sessions.append``."""
        body = self.body(session)
        self.change(BODY + session, [*body, *((NEW, one) for one in new)])
        before = self.known(session)[1].get("textDigest")
        text = before if isinstance(before, str) else ""
        if digest(new):
            self.rewrite(session, textDigest=text + digest(new))
        return {"length": len(body) + len(new)}

    def delete(self, session: str) -> Result:
        """``sessions.delete``."""
        chosen, _ = self.known(session)
        self.change(INDEX, [pair for pair in self.items[INDEX] if pair[0] != chosen])
        if self.entries(BODY + session) is not None:
            self.drop(BODY + session)
        return {}

    def clear_sessions(self) -> Result:
        """``sessions.clear``."""
        if self.entries(INDEX) is None:
            return {}
        sessions = sorted(self.sessions(), key=str.encode)
        self.change(INDEX, [])
        for session in sessions:
            if self.entries(BODY + session) is not None:
                self.drop(BODY + session)
        return {}

    def session_restore(self, session: str | None, token: str | None) -> str:
        """``sessions.restore``; return the id of a session that came back."""
        if session is not None:
            for number in self.newest():
                chosen = parts_of(self.trash[number], session)
                if chosen:
                    self.restore(number, chosen)
                    self.known(session)
                    return session
            raise Refused("notFound")
        assert token is not None
        number = self.number_of(token)
        named = sessions_in(self.trash[number])
        if not named:
            raise Refused("notFound")
        self.restore(number, self.trash[number].parts)
        self.known(named[-1])
        return named[-1]

    def empty(self, token: str | None) -> Result:
        """``trash.empty``."""
        numbers = self.newest() if token is None else [self.number_of(token)]
        for number in numbers:
            del self.trash[number]
        return {"items": len(numbers)}


def parts_of(removal: Removal, session: str) -> list[Part]:
    """Return what a removal holds of a session."""
    chosen = [part for part in removal.parts if part.key == BODY + session]
    for part in removal.parts:
        rows = [gone for gone in part.entries if session_of(gone.value) == session]
        if part.key == INDEX and rows:
            chosen.append(Part(INDEX, False, part.word, rows))
    return chosen


def sessions_in(removal: Removal) -> list[str]:
    """Return the sessions of which a removal holds something."""
    found: dict[str, None] = {}
    for part in removal.parts:
        if part.key.startswith(BODY):
            found.setdefault(part.key.removeprefix(BODY))
        elif part.key == INDEX:
            for gone in part.entries:
                if session_of(gone.value):
                    found.setdefault(session_of(gone.value))
    return list(found)
