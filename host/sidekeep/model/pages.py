"""Which entries of a list a caller asks for: a page of it."""

from __future__ import annotations

from itertools import islice

from sidekeep.errors import InvalidParams
from sidekeep.model.history import entry_number
from sidekeep.store.lists import Entry, StoredList


def page(
    target: StoredList,
    *,
    offset: int | None = None,
    limit: int | None = None,
    before: str | None = None,
    after: str | None = None,
) -> list[Entry]:
    """Return the entries of a page, in order.

    ``offset``: from the start, negative from the end. ``before`` and ``after``: the entries on that
    side of an id; with ``limit`` those next to it. At most one of the three. ``InvalidParams`` for
    more, for a negative limit, and for an id that says nothing (no such id in a list whose order is
    not that of the ids).
    """
    if sum(one is not None for one in (offset, before, after)) > 1:
        raise InvalidParams("Only one of offset, before and after may be given.")
    if limit is not None and limit < 0:
        raise InvalidParams("limit must be 0 or more.")
    if before is not None:
        return _before(target, before, limit)
    if after is not None:
        return list(islice(target.entries(_place(target, after, behind=True)), limit))
    start = offset or 0
    if start < 0:
        newest = list(islice(target.entries_back(), -start))[::-1]
        return newest[:limit]
    if start >= len(target):
        return []
    first = target.at(start) if start else None
    return list(islice(target.entries(first.position - 1 if first else 0), limit))


def _before(target: StoredList, word: str, limit: int | None) -> list[Entry]:
    place = _place(target, word, behind=False)
    return list(islice(target.entries_back(place), limit))[::-1]


def _place(target: StoredList, word: str, *, behind: bool) -> int:
    """Return the position of an entry, or where it would be; ``behind``: of what follows it."""
    identity = entry_number(word)
    found = target.locate(identity)
    if found is not None:
        return found.position
    if not identity or not target.header.ordered:
        raise InvalidParams(f"The list has no entry {word[:64]!r}.", next="list it again")
    following = target.first_from(identity)
    if following is None:
        return target.header.last_position + 1
    return following.position - 1 if behind else following.position
