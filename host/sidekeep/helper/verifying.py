"""The check of a whole store as a kind of slow work: its place goes in, the report comes out.

Source of the report: docs/protocol.md, "The check of a store". Rules:

* The helper opens the store by itself, like any other process, looks at one snapshot, and closes it
  again: a check is rare, and nothing of it is worth keeping.
* Report and progress are JSON texts that leave as they are: the host, where small calls wait, reads
  neither.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import msgspec

from sidekeep.errors import DamagedError
from sidekeep.store import verify
from sidekeep.store.environment import Store
from sidekeep.store.findings import Findings, Problem

PROBLEMS_LISTED = 100
"""So that the report fits into a frame, whatever has happened to the store."""
SECONDS_BETWEEN = 0.25
"""The shortest time between two words of how far the check is, but for the last one."""

_encode = msgspec.json.encode


class Place(msgspec.Struct, array_like=True, frozen=True):
    """The job: the folder of a store, and whose it is."""

    folder: str
    extension: str
    profile: str


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer. ``more``: how many problems were found beyond those that are listed."""

    ok: bool
    checked: dict[str, int]
    problems: list[Problem]
    more: int = 0


def job(store: Store) -> bytes:
    """Return the job of checking a store."""
    about = store.about
    return msgspec.msgpack.encode(Place(store.folder, about.extension, about.profile))


def run_telling(data: bytes, tell: Callable[[bytes], None]) -> bytes:
    """Do one job; a store that cannot be read is a report of that, other errors are raised."""
    place = msgspec.msgpack.decode(data, type=Place)
    try:
        store = Store(
            place.folder, extension=place.extension, profile=place.profile, readahead=True
        )
        try:
            with store.read() as transaction:
                pace = Pace(verify.steps(transaction), tell)
                found = verify.examine(transaction, pace.step)
        finally:
            store.close()
    except DamagedError as error:
        problem = Problem("unreadable", error.message)
        return _encode(Report(ok=False, checked=Findings().checked, problems=[problem]))
    pace.end()
    return report(found)


def report(found: Findings) -> bytes:
    """Return the answer as JSON text."""
    return _encode(
        Report(
            ok=not found.problems,
            checked=found.checked,
            problems=found.problems[:PROBLEMS_LISTED],
            more=max(0, len(found.problems) - PROBLEMS_LISTED),
        )
    )


class Pace:
    """Tells how far a check is: at its start, now and then, and at its end. ``of``: all steps."""

    def __init__(self, of: int, tell: Callable[[bytes], None]) -> None:
        self._of = max(of, 1)
        self._tell = tell
        self._next = 0.0
        self.step(0)

    def step(self, done: int) -> None:
        """Take note of the steps done, and tell of it if it is time."""
        now = monotonic()
        if now >= self._next:
            self._next = now + SECONDS_BETWEEN
            self._say(min(done, self._of))

    def end(self) -> None:
        """Tell that everything was looked at."""
        self._say(self._of)

    def _say(self, done: int) -> None:
        self._tell(_encode({"method": "host.verify", "done": done, "of": self._of}))
