"""The list of sessions as callers get it. Nothing here reads an entry of a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from sidekeep.model import rows
from sidekeep.model.keys import BODY
from sidekeep.model.rows import Row
from sidekeep.store import lists
from sidekeep.store.transaction import Transaction

T = TypeVar("T")


def all_rows(transaction: Transaction) -> list[Row]:
    """Return all sessions: pinned ones first, then the newest ``createdAt`` first."""
    return sorted(
        rows.walk(transaction), key=lambda row: (not row.pinned, -row.created, -row.entry)
    )


class Window(Protocol):
    """Which rows of a list are wanted."""

    offset: int
    limit: int | None


def part(every: Sequence[T], wanted: Window) -> Sequence[T]:
    """Return the rows that are wanted."""
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    return every[wanted.offset : end]


def described(transaction: Transaction, row: Row) -> dict[str, Any]:
    """Return a session's row as docs/protocol.md gives it."""
    body = lists.find(transaction, BODY + row.id)
    header = None if body is None else body.header
    return {
        "id": row.id,
        "name": row.name,
        "createdAt": _number(row.created),
        "updatedAt": _number(row.created) if header is None else int(header.changed * 1000),
        "pinned": row.pinned,
        "entries": 0 if header is None else header.length,
        "bytes": {
            "text": 0 if header is None else header.text,
            "own": 0 if header is None else header.own,
            "shared": 0 if header is None else header.shared,
        },
    }


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value
