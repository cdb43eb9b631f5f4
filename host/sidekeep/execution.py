"""How the calls of a frame are carried out: transactions, retries, replies, work that takes long.

Rules:

* Calls that only read share a snapshot, all others one write transaction, each mutation in a nested
  one. Replies go out after the commit, behind the events that it caused.
* A commit that fails is tried again call by call, so that only calls that do not fit fail.
* A call that waits for a helper is answered later and holds nothing meanwhile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from sidekeep.errors import DiskFullError, InternalError, QuotaError, SidekeepError
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Pieces

if TYPE_CHECKING:
    from sidekeep.model.frame import Expiry, Frame, Mutation
    from sidekeep.service.method import Method, Request
    from sidekeep.service.storage import OnArea
    from sidekeep.slow import Slow, SlowWork
    from sidekeep.store.environment import Store
    from sidekeep.store.transaction import Transaction

T = TypeVar("T")

FLUSH_EVERY = 256
NO_ROOM_SECONDS = 10.0
# A commit takes as long as splitting this many rows.
ROWS_AT_ONCE = 32
MOST_SNAPSHOTS = 8


class Task:
    """A call that is ready to run: a reading with its parameters, or a prepared mutation."""

    __slots__ = ("area", "call", "method", "mutation", "params", "request")

    def __init__(
        self,
        call: Call,
        method: Method,
        params: OnArea,
        request: Request,
        mutation: Mutation | None,
    ) -> None:
        self.call = call
        self.area = method.area or params.area
        self.method = method
        self.params = params
        self.request = request
        self.mutation = mutation


class Execution:
    """Carries out the calls of one connection.

    ``client``: the word of its hello, if it gave one. ``tell``: lets the events leave that a commit
    caused.
    """

    def __init__(self, channel: Channel, tell: Callable[[], None]) -> None:
        self._channel = channel
        self._tell = tell
        self.client: str | None = None
        self._expiry: Expiry | None = None
        self._slow: SlowWork | None = None
        self._no_room_until = 0.0

    def run(self, store: Store, tasks: list[Task]) -> None:
        """Carry out calls that follow each other in one area, in order, and answer them."""
        for direct, group in groupby(tasks, lambda task: task.method.direct):
            if direct is None:
                together = list(group)
                self._split_old_sessions(store, together)
                self._run(store, together)
                continue
            for task in group:
                outcome = outcome_of(direct, store, task.params, task.request)
                self.answer(task.call, outcome if isinstance(outcome, SidekeepError) else [outcome])

    def take(self) -> None:
        """Answer the calls whose slow work has come to an end."""
        if self._slow is not None:
            self._slow.take()

    def patience(self) -> float | None:
        """Return in how many seconds ``take`` must be called at the latest; ``None``: never."""
        return None if self._slow is None else self._slow.patience()

    def close(self) -> None:
        """End the helpers."""
        if self._slow is not None:
            self._slow.close()

    def _split_old_sessions(self, store: Store, tasks: list[Task]) -> None:
        """Bring sessions of the old kind into the form that the calls need, row by row.

        A row that cannot be split (it does not fit on the disk, something else is in the place of
        its body) stays as it is, and calls on it fail; the others are served. Without room it is
        not tried again with every call.
        """
        if not any(task.call.method.startswith("sessions.") for task in tasks):
            return
        if time.monotonic() < self._no_room_until:
            return
        from sidekeep.model import migration
        from sidekeep.model.frame import Frame
        from sidekeep.store.environment import LmdbError

        def split(transaction: Transaction) -> int:
            """Split some rows behind ``place``; return the place of the last one."""
            frame = Frame(transaction, None)
            last = place
            for _ in range(at_once):
                found = migration.next_place(transaction, last)
                if not found:
                    break
                last = found
                outcome_of(frame.mutate, migration.splitting(found), None, let_pass=LmdbError)
            frame.finish(watched=store.bell.heard())
            return last

        place, at_once = 0, ROWS_AT_ONCE
        while True:
            with store.read() as transaction:
                following = migration.next_place(transaction, place)
            if not following:
                return
            outcome = outcome_of(store.write, split)
            if isinstance(outcome, int):
                place = outcome
            elif at_once > 1:  # only the row that does not fit is to stay
                at_once = 1
            else:
                place = following
                if isinstance(outcome, (DiskFullError, QuotaError)):
                    self._no_room_until = time.monotonic() + NO_ROOM_SECONDS

    def answer(
        self,
        call: Call,
        outcome: Pieces | SidekeepError,
        release: Callable[[], None] | None = None,
    ) -> None:
        """Queue the response to a call. ``release``: see ``Channel.reply``."""
        if isinstance(outcome, SidekeepError):
            self._channel.fail(call, outcome)
            if release is not None:
                release()
        else:
            self._channel.reply(call, outcome, release)

    def _run(self, store: Store, tasks: list[Task]) -> None:
        if all(task.mutation is None for task in tasks):
            self._read(store, tasks)
            return
        from sidekeep.slow import Slow

        watched = store.bell.heard()
        outcomes = outcome_of(
            store.write, lambda transaction: self._attempt(transaction, tasks, watched=watched)
        )
        if isinstance(outcomes, list):
            self._tell()
            for task, outcome in zip(tasks, outcomes, strict=True):
                if isinstance(outcome, Slow):
                    self._wait(store, task, outcome)
                elif task.method.after is not None and not isinstance(outcome, SidekeepError):
                    self._render(store, task, outcome)
                else:
                    self.answer(task.call, outcome)
                    self._prepare_thumbnails(store, outcome)
        elif isinstance(outcomes, (DiskFullError, QuotaError)) and len(tasks) > 1:
            for task in tasks:
                self._run(store, [task])
        else:
            for task in tasks:
                if task.mutation is not None:
                    self._channel.fail(task.call, outcomes)
            self._read(store, [task for task in tasks if task.mutation is None])

    def _read(self, store: Store, tasks: list[Task]) -> None:
        from sidekeep.slow import Slow
        from sidekeep.store.snapshot import SharedSnapshot

        # Replies that wait for their reader each hold a snapshot; there must not be ever more.
        if SharedSnapshot.live >= MOST_SNAPSHOTS:
            self._channel.materialise()
        snapshot = outcome_of(SharedSnapshot, store)
        for number, task in enumerate(tasks, 1):
            if isinstance(snapshot, SidekeepError):
                self._channel.fail(task.call, snapshot)
                continue
            assert task.method.read is not None
            outcome = outcome_of(task.method.read, snapshot.transaction, task.params, task.request)
            if isinstance(outcome, Slow):
                self._wait(store, task, outcome)
            else:
                self.answer(task.call, outcome, snapshot.use())
                self._prepare_thumbnails(store, outcome)
            if number % FLUSH_EVERY == 0:  # the browser can take them while the rest is read
                self._channel.flush()
        if isinstance(snapshot, SharedSnapshot):
            snapshot.release()

    def _render(self, store: Store, task: Task, result: Pieces) -> None:
        """Answer a mutation whose reply is made from its kept result, in a snapshot."""
        from sidekeep.store.snapshot import SharedSnapshot

        assert task.method.after is not None
        kept = b"".join(piece for piece in result if isinstance(piece, bytes))
        snapshot = outcome_of(SharedSnapshot, store)
        if isinstance(snapshot, SidekeepError):
            self._channel.fail(task.call, snapshot)
            return
        outcome = outcome_of(task.method.after, snapshot.transaction, kept, task.request)
        self.answer(task.call, outcome, snapshot.use())
        snapshot.release()

    def _wait(self, store: Store, task: Task, slow: Slow) -> None:
        """Have slow work done, and answer the call when it is."""

        def outcome(result: Pieces | SidekeepError | None) -> None:
            if result is None:
                self._read(store, [task])
            else:
                self.answer(task.call, result)

        self._slow_work().want(store, slow, outcome)

    def _prepare_thumbnails(self, store: Store, outcome: Pieces | SidekeepError) -> None:
        """Begin to make the thumbnails that a listing lacks, the newest first."""
        missing = getattr(outcome, "missing", None)
        if missing:
            from sidekeep.model import thumbnails
            from sidekeep.model.pictures import EDGE

            for blob in reversed(missing):
                self._slow_work().want(store, thumbnails.work(blob, EDGE))

    def _slow_work(self) -> SlowWork:
        if self._slow is None:
            from sidekeep.slow import SlowWork

            self._slow = SlowWork(self._channel)
        return self._slow

    def _attempt(
        self, transaction: Transaction, tasks: list[Task], *, watched: bool
    ) -> list[Pieces | Slow | SidekeepError]:
        """Run the calls of a frame in a write transaction; one outcome for each."""
        from sidekeep.model.frame import Expiry, Frame
        from sidekeep.store.environment import LmdbError

        frame = Frame(transaction, self.client)
        outcomes: list[Pieces | Slow | SidekeepError] = []
        for task in tasks:
            # An error of LMDB concerns the whole transaction: a full map, a full disk.
            outcome = outcome_of(self._carry_out, frame, task, let_pass=LmdbError)
            outcomes.append(outcome)
        frame.finish(watched=watched)
        if self._expiry is None:
            self._expiry = Expiry()
        self._expiry.look(transaction)
        return outcomes

    def _carry_out(self, frame: Frame, task: Task) -> Pieces | Slow:
        from sidekeep.service.replies import held
        from sidekeep.slow import Slow

        if task.mutation is not None:
            return [frame.mutate(task.mutation, task.call.op)]
        assert task.method.read is not None
        outcome = task.method.read(frame.transaction, task.params, task.request)
        if isinstance(outcome, Slow):
            return outcome
        # Read at once: what lies in the file may be gone when the reply is sent. In its place,
        # since a listing also says which thumbnails it lacks.
        outcome[:] = [piece if isinstance(piece, bytes) else held(piece) for piece in outcome]
        return outcome


def outcome_of(
    work: Callable[..., T], *arguments: object, let_pass: type[Exception] | tuple[()] = ()
) -> T | SidekeepError:
    """Return what ``work(*arguments)`` returns, or the error that the caller is to get.

    This is the border of a call: an error that is the host's own fault is told on standard error
    and answered as ``internal``, and the next call is served. ``let_pass``: raised as it is.
    """
    try:
        return work(*arguments)
    except SidekeepError as error:
        # The frames that the traceback passed hold the text of the call, which may be big.
        error.__traceback__ = None
        return error
    except let_pass:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        import traceback

        traceback.print_exception(error, file=sys.stderr)
        return InternalError(
            f"The host failed ({type(error).__name__}); the call had no effect.",
            next="report this, with what the host printed on standard error",
        )
