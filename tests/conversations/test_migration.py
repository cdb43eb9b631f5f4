"""Sessions of the old kind are split whole, whatever is in their rows and whenever the host dies.

``savedSessions`` as the extension of the seed wrote it: rows with whole histories, beside rows of
the new form and rows that are none. A failure prints the shortest example.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidekeep.store import records, trash
from tests.conversations.chat import Chat, assistant, check_store, image, picture, user
from tests.conversations.dying import Moment, dies_at, dying_host
from tests.conversations.model import canonical, digest
from tests.conversations.model_checks import Stored, opened
from tests.conversations.model_data import ENTRIES, ordered
from tests.conversations.test_upgrade import make_old
from tests.harness import HostGoneError
from tests.harness.sidekeep_host import Sandbox

Items = dict[str, Any]

LONG = "i" * 500
HISTORIES = st.lists(ENTRIES, max_size=3)
OLD = st.fixed_dictionaries(
    {"history": HISTORIES},
    optional={
        "id": st.sampled_from(["s1", "s2", "s3", "", None, 5, LONG]),
        "name": st.sampled_from(["A", None]),
        "createdAt": st.sampled_from([1, 2, "x"]),
        "pinned": st.sampled_from([True, False, None, 1]),
        "agentContextId": st.just("c"),
    },
)
OTHER: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        "text",
        5,
        [],
        {},
        {"name": "no id"},
        {"id": "s4", "name": "new", "createdAt": 3, "pinned": False, "textDigest": "y\n"},
        {"id": "s4", "history": "no array"},
        {"id": "s1", "history": None},
        {"history": {}},
    ]
)
ROWS = st.lists(OLD | OLD | OTHER, max_size=5).map(ordered)
BODIES = st.dictionaries(
    st.sampled_from(["session_s1", "session_s2", "session_s4"]), HISTORIES | st.just("no array")
)


class Expected:
    """What is to be left: the ``bodies``, the ``rows``, and what went to the trash.

    ``stuck``: rows that stay as they are, since something else is in the place of their body. The
    id of a row that had none is ``None``.
    """

    def __init__(self, rows: list[Any], bodies: Items) -> None:
        self.bodies = dict(bodies)
        self.nameless: list[list[Any]] = []
        self.rows: list[Any] = []
        self.trash: list[list[Any]] = []
        self.stuck = 0
        for row in rows:
            is_old = isinstance(row, dict) and isinstance(row.get("history"), list)
            self.rows.append(self._split(row) if is_old else row)

    def _split(self, row: Items) -> Items:
        history = row["history"]
        name = row.get("id")
        key = f"session_{name}"
        body = history
        if not isinstance(name, str) or name in {"", LONG}:
            name = None
            self.nameless.append(history)
        elif key not in self.bodies:
            self.bodies[key] = history
        elif not isinstance(self.bodies[key], list):
            self.stuck += 1
            return row
        elif canonical(self.bodies[key]) != canonical(history):
            self.trash.append(history)
            body = self.bodies[key]
        changes = {"id": name, "pinned": bool(row.get("pinned")), "textDigest": digest(body)}
        return {one: value for one, value in row.items() if one != "history"} | changes


def check(sandbox: Sandbox, expected: Expected, items: Items) -> None:
    """Compare what a host gives, and what lies in the trash, with what is expected."""
    rows = items.pop("savedSessions")
    bodies = dict(items)
    for row, wanted in zip(rows, expected.rows, strict=True):
        if isinstance(wanted, dict) and wanted.get("id", "") is None and "textDigest" in wanted:
            history = bodies.pop(f"session_{row['id']}")
            assert canonical(history) == canonical(expected.nameless.pop(0))
            wanted["id"] = row["id"]
        assert canonical(row) == canonical(wanted)
    assert canonical(bodies) == canonical(expected.bodies)
    store = opened(sandbox.store_file())
    try:
        with store.read() as transaction:
            gone = [
                [record for entry in part.entries for record in [entry.record]]
                for _, removal in trash.newest_first(transaction)
                for part in removal.parts
            ]
            assert all(records.read(transaction, one) for part in gone for one in part)
        lengths = [len(part) for part in gone]
    finally:
        store.close()
    assert lengths[::-1] == [len(history) for history in expected.trash]


async def finished(sandbox: Sandbox, expected: Expected) -> None:
    """Let a host that lives do the rest; a second time changes nothing."""
    async with sandbox.open() as host:
        assert isinstance(await Chat(host).sessions(), list)
        before = (await host.status())["journal"]["last"]
        await Chat(host).sessions()
        assert (await host.status())["journal"]["last"] == before
        check(sandbox, expected, await host.get())
        for item in (await host.call("trash.list", {}))["items"]:
            assert item["what"] == "sessions.migrate"
    check_store(sandbox)


async def prepared(sandbox: Sandbox, rows: list[Any], bodies: Items, *, old_format: bool) -> None:
    """Write the rows and bodies, as the extension or as an older version of the store did."""
    items = {"savedSessions": rows, **bodies}
    async with sandbox.open() as host:
        if not old_format:
            await host.set(items)
    if old_format:
        make_old(sandbox, items)


async def migrated_with_deaths(
    rows: list[Any], bodies: Items, commit: int, moment: Moment, *, old_format: bool
) -> bool:
    """Split the rows with a host that dies at that commit, then at the next ones, then lives on.

    Whether the first one died, so that there may be a later commit to die at.
    """
    with tempfile.TemporaryDirectory(prefix="sidekeep-old-") as folder:
        sandbox = Sandbox(Path(folder))
        await prepared(sandbox, rows, bodies, old_format=old_format)
        died = await dies_at(sandbox, commit, moment, "sessions.list")
        if died:
            await dies_at(sandbox, 1, "after", "sessions.list")
            await dies_at(sandbox, 2, "before", "sessions.list")
        await finished(sandbox, Expected(rows, bodies))
        return died


@settings(
    max_examples=60 if os.environ.get("SIDEKEEP_LONG") else 5,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=True,
)
@given(rows=ROWS, bodies=BODIES, old_format=st.booleans())
def test_a_death_at_any_commit_loses_nothing(
    rows: list[Any], bodies: Items, old_format: bool
) -> None:
    bodies = ordered(bodies)

    async def deaths() -> None:
        for moment in ("before", "after"):
            commit = 1
            while await migrated_with_deaths(rows, bodies, commit, moment, old_format=old_format):
                commit += 1
            most = len(rows) + 4
            assert commit <= most, "each row takes one commit"

    asyncio.run(deaths())


@pytest.mark.parametrize("rounds", [6, pytest.param(200, marks=pytest.mark.long)])
async def test_kills_at_any_moment_lose_nothing(
    sandbox: Sandbox, dice: random.Random, rounds: int
) -> None:
    rows = [
        {
            "id": f"s{number}",
            "name": str(number),
            "createdAt": number,
            "history": [user([image(picture(number, 400_000))]), assistant(f"answer {number}")],
        }
        for number in range(40)
    ]
    await prepared(sandbox, rows, {"session_s7": [user("there")]}, old_format=False)
    for _ in range(rounds):
        host = await sandbox.host().__aenter__()
        await host.hello()
        work = asyncio.create_task(host.call("sessions.list", {}))
        await asyncio.sleep(dice.uniform(0, 0.05))
        host.kill()
        await asyncio.gather(work, return_exceptions=True)
        assert isinstance(work.exception(), HostGoneError | None)
        await host.close()
    await finished(sandbox, Expected(rows, {"session_s7": [user("there")]}))


async def test_what_was_split_before_a_death_is_found_by_ids_afterwards(sandbox: Sandbox) -> None:
    """The rows that are done keep their ids, so that nobody who read them is wrong."""
    rows = [{"name": str(number), "history": [user(str(number))]} for number in range(3)]
    await prepared(sandbox, rows, {}, old_format=False)
    host = await dying_host(sandbox, 3, "before").__aenter__()
    await host.hello()
    with pytest.raises(HostGoneError):
        await host.call("sessions.list", {})
    await host.close()
    store = opened(sandbox.store_file())
    before = Stored(store).lists
    store.close()
    assert ["history" in row for row in before["savedSessions"].values] == [False, False, True]
    async with sandbox.open() as after:
        await Chat(after).sessions()
        kept = await after.get("savedSessions")
        assert kept["savedSessions"][:2] == before["savedSessions"].values[:2]
    check_store(sandbox)
