"""A store with the methods of the service on it, without a host around."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from sidekeep.caller import Caller
from sidekeep.handshake import Settings
from sidekeep.model.frame import Frame
from sidekeep.model.keys import BODY
from sidekeep.searching import sessions
from sidekeep.searching.sessions import Hit
from sidekeep.service import find
from sidekeep.service.method import Request
from sidekeep.store import lists
from sidekeep.store.environment import Store
from sidekeep.store.transaction import Transaction

PREFIX = "[Page context attached by browsa]"

Entry = dict[str, Any]


def user(content: Any, **fields: Any) -> Entry:
    """Return a user entry."""
    return {"role": "user", "content": content, **fields}


def assistant(content: Any, **fields: Any) -> Entry:
    """Return an assistant entry."""
    return {"role": "assistant", "content": content, **fields}


def parts(*texts: str) -> list[dict[str, str]]:
    """Return a content of several text parts."""
    return [{"type": "text", "text": text} for text in texts]


def call(store: Store, method_name: str, /, **params: Any) -> Any:
    """Carry out one method that changes something and return its result."""
    method = find(method_name)
    assert method is not None and method.prepare is not None
    read: Any = msgspec.json.decode(json.dumps(params), type=method.params)
    mutation = method.prepare(read, Request((), Settings(), Caller("", store.folder)))

    def work(transaction: Transaction) -> bytes:
        frame = Frame(transaction, None)
        result = frame.mutate(mutation, None)
        frame.finish(watched=False)
        return result

    return json.loads(store.write(work))


def save(store: Store, name: str, *entries: Entry) -> str:
    """Save a new session with these entries, as the only history, and return its id."""
    call(store, "history.clear")
    call(store, "history.append", entries=list(entries))
    row = call(store, "sessions.save", name=name)
    identity = row["id"]
    assert isinstance(identity, str)
    return identity


def ids(store: Store, session: str) -> list[int]:
    """Return the ids of a session's entries, in order."""
    with store.read() as transaction:
        body = lists.find(transaction, BODY + session)
        assert body is not None
        return [entry.id for entry in body.entries()]


def hits(store: Store, query: str, *prefixes: str) -> dict[str, Hit]:
    """Return what a search finds, by session. Both ways of searching must find the same."""
    usual = sessions._MANY
    answers = []
    try:
        for many in (usual, 0.0, 2.0):
            sessions._MANY = many
            with store.read() as transaction:
                answers.append(sessions.find(transaction, query, prefixes or (PREFIX,)))
    finally:
        sessions._MANY = usual
    found = answers[0]
    assert answers[1] == answers[2] == found
    by_session = {hit.session: hit for hit in found}
    assert len(by_session) == len(found)
    return by_session


def where(store: Store, query: str, *prefixes: str) -> dict[str, str]:
    """Return where a search finds something, by session."""
    return {hit.session: hit.where for hit in hits(store, query, *prefixes).values()}


def shown(store: Store, query: str) -> dict[str, str | None]:
    """Return the excerpts of what a search finds in entries, by session."""
    found = [hit for hit in hits(store, query).values() if hit.where != "name"]
    with store.read() as transaction:
        texts = sessions.excerpts(transaction, query, [hit.record for hit in found])
    return {hit.session: text for hit, text in zip(found, texts, strict=True)}
