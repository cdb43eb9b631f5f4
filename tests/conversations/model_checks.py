"""What a host shows of a store, compared with the model: lists, rows, bytes, trash, events."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sidekeep.model.updates import text_of
from sidekeep.store import documents, lists, records
from sidekeep.store.environment import Store
from sidekeep.store.founding import live_word
from tests.conversations.model import (
    BODY,
    HISTORY,
    INDEX,
    Entries,
    Model,
    Removal,
    canonical,
    session_of,
)
from tests.conversations.model_calls import Calls, sessions_in
from tests.harness.sidekeep_host import EXTENSION_ID

Items = dict[str, Any]


class Stored:
    """What lies in the file: ``lists`` by key, their ``words``, ``live``, the newest ``seq``."""

    def __init__(self, store: Store) -> None:
        self.lists: dict[str, Entries] = {}
        self.words: dict[str, str] = {}
        with store.read() as transaction:
            self.live = live_word(transaction)
            self.seq = transaction.head.seq
            for document in documents.walk(transaction):
                found = None if document.number else lists.find(transaction, document.key)
                if found is None:
                    continue
                self.words[document.key] = found.header.word
                self.lists[document.key] = Entries(
                    (
                        one.id,
                        json.loads(text_of(transaction, records.read(transaction, one.record))),
                    )
                    for one in found.entries()
                )


def opened(file: Path) -> Store:
    """Open a store beside the hosts."""
    return Store(str(file.parent), extension=EXTENSION_ID, profile="profile")


def plain(items: Items) -> Items:
    """Return items as ``storage.get`` gives them."""
    return {key: one.values if isinstance(one, Entries) else one for key, one in items.items()}


def pictures_of(value: Any) -> Iterator[str]:
    """Yield the pictures in a value, each as often as it is there."""
    if isinstance(value, str):
        if value.startswith("data:image/") and len(value.encode()) >= 4096:
            yield value
    elif isinstance(value, list):
        for one in value:
            yield from pictures_of(one)
    elif isinstance(value, dict):
        yield from pictures_of(list(value.values()))


def content_of(picture: str) -> bytes:
    """Return what is stored of a picture: its bytes, or its text if it is no base64."""
    prefix, _, rest = picture.partition(",")
    if prefix.endswith(";base64"):
        try:
            content = base64.b64decode(rest, validate=True)
        except binascii.Error:
            return rest.encode()
        return content if base64.b64encode(content).decode() == rest else rest.encode()
    return rest.encode()


def size_of(value: Any) -> int:
    """Return the bytes of a value's JSON text."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def bytes_of(items: Items, key: str) -> dict[str, int]:
    """Return ``bytes`` of the conversation under a key."""
    held = {
        name: {content_of(one) for one in pictures_of(entries.values)}
        for name, entries in items.items()
        if name != INDEX and isinstance(entries, Entries)
    }
    if key not in held:
        return {"text": 0, "own": 0, "shared": 0}
    others = {one for name, contents in held.items() if name != key for one in contents}
    values = items[key].values
    pictures = sum(len(one.encode()) for one in pictures_of(values))
    return {
        "text": sum(map(size_of, values)) - pictures,
        "own": sum(len(one) for one in held[key] - others),
        "shared": sum(len(one) for one in held[key] & others),
    }


def rows_of(model: Calls) -> list[Items]:
    """Return what ``sessions.list`` answers, ``updatedAt`` left out."""
    found = []
    for session, (identity, row) in model.sessions().items():
        created = row.get("createdAt")
        is_number = isinstance(created, (int, float)) and not isinstance(created, bool)
        body = model.items.get(BODY + session)
        found.append(
            (
                not row.get("pinned"),
                -created if is_number else 0,
                -identity,
                {
                    "id": session,
                    "name": row["name"] if isinstance(row.get("name"), str) else "",
                    "createdAt": created if is_number else 0,
                    "pinned": bool(row.get("pinned")),
                    "entries": len(body) if isinstance(body, Entries) else 0,
                    "bytes": bytes_of(model.items, BODY + session),
                },
            )
        )
    return [row for *_, row in sorted(found, key=lambda one: one[:3])]


def trash_of(model: Calls) -> list[Items]:
    """Return what ``trash.list`` answers, times and bytes left out."""
    return [_in_short(number, model.trash[number], model) for number in model.newest()]


def _in_short(number: int, removal: Removal, model: Calls) -> Items:
    entries = sum(len(part.entries) for part in removal.parts if part.key != INDEX)
    return {
        "undo": f"u{number}",
        "what": removal.what,
        "entries": entries,
        "sessions": sessions_in(removal),
    }


def check_told(told: list[Items], before: Model, after: Model) -> None:
    """Check the notifications about one change: ids that say what changed, nothing else."""
    history = [one["params"] for one in told if one["method"] == "history.changed"]
    old, new = (model.items.get(HISTORY) for model in (before, after))
    plain_changed = _other(before.items, HISTORY) != _other(after.items, HISTORY)
    if pairs_of(old) == pairs_of(new) and not plain_changed:
        assert not history, history
    else:
        assert len(history) == 1, (old, new, history)
        _check_history(history[0]["what"], history[0]["ids"], old, new)
    sessions = [one["params"] for one in told if one["method"] == "sessions.changed"]
    _check_sessions(sessions, before, after)


def pairs_of(value: Any) -> list[tuple[str, str]]:
    """Return ids and values of a list, nothing for another value."""
    if not isinstance(value, Entries):
        return []
    return [(f"e{identity}", canonical(one)) for identity, one in value]


def _check_history(what: str, ids: list[str], old: Any, new: Any) -> None:
    before, after = pairs_of(old), pairs_of(new)
    if what == "append":
        assert after[: len(before)] == before
        assert [one for one, _ in after[len(before) :]] == ids
    elif what == "update":
        assert [one for one, _ in before] == [one for one, _ in after]
        assert {one[0] for one, two in zip(before, after, strict=True) if one != two} == set(ids)
    elif what == "remove":
        assert [pair for pair in before if pair[0] not in ids] == after
        assert set(ids) <= {one for one, _ in before}
    elif what == "clear":
        assert after == []
        assert ids == [one for one, _ in before]
    else:
        assert what == "replace"
        assert set(ids) <= {one for one, _ in after}


def _check_sessions(told: list[Items], before: Model, after: Model) -> None:
    rows = []
    for model in (before, after):
        index = model.items.get(INDEX)
        values = index.values if isinstance(index, Entries) else []
        rows.append({session_of(row): canonical(row) for row in values if session_of(row)})
    if _other(before.items, INDEX) != _other(after.items, INDEX):  # a plain value came or went
        told = [one for one in told if (one["what"], one["ids"]) != ("replace", [])]
    found = {what: set() for what in ("save", "update", "delete")} | {
        one["what"]: set(one["ids"]) for one in told
    }
    old, new = rows
    bodies = {
        key.removeprefix(BODY)
        for key in {**before.items, **after.items}
        if key.startswith(BODY)
        and pairs_of(before.items.get(key)) != pairs_of(after.items.get(key))
    }
    assert found["save"] == set(new) - set(old)
    assert found["delete"] == set(old) - set(new)
    changed = {one for one in old if one in new and old[one] != new[one]} | bodies
    assert changed - found["save"] - found["delete"] <= found["update"]
    moved = set(old) & set(new)
    assert found["update"] <= changed | moved | {
        key.removeprefix(BODY) for key in {**before.items, **after.items} if key.startswith(BODY)
    }


def _other(items: Items, key: str) -> str:
    """Return what a key holds, apart from the entries of a list."""
    if key not in items:
        return "nothing"
    return "a list" if isinstance(items[key], Entries) else canonical(items[key])
