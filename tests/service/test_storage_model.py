"""storage.* behaves like a plain dict, through restarts and kills at any moment.

Random sequences of calls are done on a host and on a dict side by side. A failure prints the
shortest sequence found; ``--hypothesis-seed`` repeats a run, ``SIDEKEEP_LONG=1`` makes it longer.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.harness import Call, HostGoneError
from tests.harness.sidekeep_host import Sandbox, SidekeepHost

T = TypeVar("T")

KEYS = st.sampled_from(["", "a", "b", "é", "history", "savedSessions", "k" * 600]) | st.text(
    st.characters(codec="utf-8"), max_size=6
)
BIG = st.builds(
    lambda unit, count: unit * count,
    st.sampled_from(["x", "é", "😀\n", '"\\', "QUJDRA==", "<"]),
    st.integers(1000, 60_000),
)
PICTURES = st.integers(0, 5).map(lambda n: f"data:image/png;base64,{f'QUJD{n}A==' * 9000}")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
)
VALUES = st.recursive(
    SCALARS | BIG | PICTURES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
ITEMS = st.dictionaries(KEYS, VALUES, max_size=4)


class StorageMachine(RuleBasedStateMachine):
    """Drives a host and a dict with the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sidekeep-model-")
        self.sandbox = Sandbox(Path(self.folder.name))
        self.loop = asyncio.new_event_loop()
        self.expected: dict[str, Any] = {}
        self.op = 0
        self.host = self.start()

    def start(self) -> SidekeepHost:
        async def started() -> SidekeepHost:
            host = await self.sandbox.host().__aenter__()
            await host.hello(client="model")
            return host

        return self.run(started())

    def run(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        return self.loop.run_until_complete(awaited())

    def next_op(self) -> int:
        self.op += 1
        return self.op

    @rule(items=ITEMS)
    def set(self, items: dict[str, Any]) -> None:
        self.run(self.host.set(items, op=self.next_op()))
        self.expected.update(items)

    @rule(keys=st.lists(KEYS, max_size=3))
    def remove(self, keys: list[str]) -> None:
        self.run(self.host.remove(keys, op=self.next_op()))
        for key in keys:
            self.expected.pop(key, None)

    @rule()
    def clear(self) -> None:
        self.run(self.host.clear(op=self.next_op()))
        self.expected.clear()

    @rule(keys=st.lists(KEYS, max_size=4))
    def get_some(self, keys: list[str]) -> None:
        wanted = {key: self.expected[key] for key in keys if key in self.expected}
        assert same(self.run(self.host.get(keys)), wanted)

    @rule(items=ITEMS, more=ITEMS, gone=KEYS)
    def batch(self, items: dict[str, Any], more: dict[str, Any], gone: str) -> None:
        area = {"area": "local"}
        calls = [
            Call("storage.set", {**area, "items": items}, op=self.next_op()),
            Call("storage.set", {**area, "items": 5}),
            Call("storage.remove", {**area, "keys": gone}, op=self.next_op()),
            Call("storage.set", {**area, "items": more}, op=self.next_op()),
        ]
        first, bad, *rest = self.run(self.host.batch(calls))
        assert [first, *rest] == [{}, {}, {}]
        assert isinstance(bad, Exception)
        self.expected.update(items)
        self.expected.pop(gone, None)
        self.expected.update(more)

    @rule()
    def restart(self) -> None:
        self.run(self.host.close())
        self.host = self.start()

    @rule()
    def kill(self) -> None:
        self.host.kill()
        self.run(self.host.close())
        self.host = self.start()

    @rule(items=ITEMS, delay=st.floats(0, 0.01))
    def kill_during_a_set_and_repeat_it(self, items: dict[str, Any], delay: float) -> None:
        op = self.next_op()

        async def broken() -> None:
            write = asyncio.create_task(self.host.set(items, op=op))
            await asyncio.sleep(delay)
            self.host.kill()
            await asyncio.gather(write, return_exceptions=True)
            if not isinstance(write.exception(), HostGoneError | None):
                raise AssertionError from write.exception()
            await self.host.close()

        self.run(broken())
        self.host = self.start()
        self.run(self.host.set(items, op=op))
        self.expected.update(items)

    @invariant()
    def everything_is_as_in_the_dict(self) -> None:
        assert same(self.run(self.host.get()), self.expected)
        assert self.run(self.host.keys()) == sorted(self.expected, key=str.encode)

    def teardown(self) -> None:
        try:
            self.run(self.host.set({"last": 1}))
            status = self.run(self.host.status())
            assert status["entries"] == len(self.expected | {"last": 1})
            assert status["health"] == "good"
        finally:
            self.run(self.host.close())
            self.loop.close()
            self.folder.cleanup()


def same(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal, ``True`` and ``1`` told apart."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(same(found[key], wanted[key]) for key in wanted)
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(found) == len(wanted) and all(map(same, found, wanted))
        )
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


def test_storage_behaves_like_a_dict_through_restarts_and_kills() -> None:
    run_state_machine_as_test(
        StorageMachine,
        settings=settings(
            max_examples=200 if os.environ.get("SIDEKEEP_LONG") else 12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
            print_blob=True,
        ),
    )
