"""Slow work of one connection: asked for by calls, done in helper processes, answered later.

Rules:

* The same work that several calls want (a thumbnail of one picture) is done once.
* Calls that come meanwhile are served; a call that waits for slow work holds no snapshot.
* Nothing is imported before the first slow work.
* What a helper tells of a job that goes on leaves as ``host.progress``, as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sidekeep.errors import SidekeepError
    from sidekeep.helper.parent import Helper
    from sidekeep.store.environment import Store
    from sidekeep.wire.channel import Channel
    from sidekeep.wire.messages import Pieces


class Slow(NamedTuple):
    """Work for a helper.

    ``kind``: the helper's name. ``key``: what the work is, for telling the same work from other.
    ``job(store)``: makes the helper's job when its turn has come. ``finish(store, answer)``: keeps
    what the helper answered and gives the result of the calls that wait, the work that is to be
    done next for them, or ``None`` if they can be carried out now. ``failed``: keeps that this work
    took its helper's life, so that it is not tried again and again.
    """

    kind: str
    key: Hashable
    job: Callable[[Store], bytes]
    finish: Callable[[Store, bytes], Pieces | Slow | None]
    failed: Callable[[Store, SidekeepError], None] | None = None


class Limits(NamedTuple):
    """How long a job of a kind may take (seconds) and how much memory (bytes)."""

    seconds: float
    memory: int | None


LIMITS = {
    "thumbnails": Limits(20.0, 1_000_000_000),
    "search": Limits(60.0, None),
    # It reads one snapshot, and as long as that lives the file cannot reuse what is freed.
    "verify": Limits(300.0, None),
}

Outcome = Callable[["Pieces | SidekeepError | None"], None]


class _Work:
    __slots__ = ("slow", "store", "waiting")

    def __init__(self, slow: Slow, store: Store) -> None:
        self.slow = slow
        self.store = store
        self.waiting: list[Outcome] = []


class SlowWork:
    """The helpers of one connection and what they are working on."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._helpers: dict[str, Helper] = {}
        self._by_number: dict[tuple[str, int], _Work] = {}
        self._by_key: dict[tuple[str, Hashable], _Work] = {}

    def want(self, store: Store, slow: Slow, outcome: Outcome | None = None) -> None:
        """Have work done. ``outcome``: called with what ``finish`` gave, or with an error."""
        key = (slow.kind, slow.key)
        work = self._by_key.get(key)
        if work is None:
            work = self._by_key[key] = _Work(slow, store)
            helper = self._helper(slow.kind)
            number = helper.submit(lambda: slow.job(store))
            self._by_number[slow.kind, number] = work
            if helper.descriptor not in self._channel.wakers:
                self._channel.wake_on(helper.descriptor)
        if outcome is not None:
            work.waiting.append(outcome)

    def _helper(self, kind: str) -> Helper:
        helper = self._helpers.get(kind)
        if helper is None:
            from sidekeep.helper.parent import Helper

            limits = LIMITS[kind]
            helper = Helper(kind, seconds=limits.seconds, memory=limits.memory)
            self._helpers[kind] = helper
        return helper

    def patience(self) -> float | None:
        """Return in how many seconds ``take`` must be called at the latest; ``None``: never."""
        found = [one for helper in self._helpers.values() if (one := helper.patience()) is not None]
        return min(found, default=None)

    def take(self) -> None:
        """Deal with everything that has come to an end."""
        from sidekeep.errors import SidekeepError
        from sidekeep.helper.parent import JobFailed

        for kind, helper in self._helpers.items():
            ended = helper.take()
            for _, words in helper.told():
                self._channel.notify("host.progress", words)
            for number, answer in ended:
                work = self._by_number.pop((kind, number))
                del self._by_key[kind, work.slow.key]
                result: Pieces | Slow | SidekeepError | None
                try:
                    if isinstance(answer, SidekeepError):
                        result = answer
                        if isinstance(answer, JobFailed) and work.slow.failed is not None:
                            work.slow.failed(work.store, answer)
                            result = None
                    else:
                        result = work.slow.finish(work.store, answer)
                except SidekeepError as error:
                    result = error
                for outcome in work.waiting:
                    if isinstance(result, Slow):
                        self.want(work.store, result, outcome)
                    else:
                        outcome(result)

    def close(self) -> None:
        """End all helpers."""
        for helper in self._helpers.values():
            helper.close()
        self._helpers.clear()
