"""One connection: the hello, the order of calls, the transaction of each frame, errors.

Rules:

* Nothing is opened before the hello. A store that cannot be opened answers the hello with the
  reason, and the next hello may try again.
* The calls of a frame that follow each other in one area share a transaction: a snapshot if they
  only read, else one write transaction, each mutation in a nested one. Replies go out after the
  commit, behind the events that it caused.
* A commit that fails is tried again call by call, so that only calls that do not fit fail.
* A reply that is sent slowly holds its snapshot for a few seconds at most; what is left is then
  read into memory, since an old snapshot makes the file grow.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sidekeep import __version__, handshake
from sidekeep.config import HostConfig
from sidekeep.errors import (
    ConflictError,
    DiskFullError,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    QuotaError,
    SidekeepError,
)
from sidekeep.stores import Stores
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Pieces

if TYPE_CHECKING:
    from sidekeep.model.frame import Expiry, Frame, Mutation
    from sidekeep.service.method import Method, Request
    from sidekeep.service.storage import OnArea, Watch
    from sidekeep.slow import Slow, SlowWork
    from sidekeep.store.environment import Store
    from sidekeep.store.transaction import Transaction
    from sidekeep.watching import Watching

T = TypeVar("T")

SNAPSHOT_SECONDS = 2.0
FLUSH_EVERY = 256
MOST_SNAPSHOTS = 8


class _Task:
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


class Connection:
    """Serves one port of one extension until the end of input."""

    def __init__(self, channel: Channel, config: HostConfig, extension: str) -> None:
        self._channel = channel
        self._extension = extension
        self._stores = Stores(config, extension, channel.materialise)
        self._profile = ""
        self._client: str | None = None
        self._settings = handshake.Settings()
        self._expiry: Expiry | None = None
        self._watching: Watching | None = None
        self._slow: SlowWork | None = None

    def run(self) -> None:
        """Handle frames until the input ends."""
        channel = self._channel
        while True:
            calls = channel.receive(self._patience())
            if calls is None:
                break
            if calls:
                self._frame(calls)
            del calls  # what a frame carried may be big
            if self._slow is not None:
                self._slow.take()
            if self._watching is not None:
                self._watching.tell()
            channel.flush()
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            if channel.streaming and channel.oldest_stream_age > SNAPSHOT_SECONDS:
                channel.materialise()

    def _patience(self) -> float | None:
        """Return how long to wait for a frame before something else has to be looked at."""
        waits = [
            SNAPSHOT_SECONDS / 2 if self._channel.streaming else None,
            None if self._watching is None else self._watching.look_seconds,
            None if self._slow is None else self._slow.patience(),
        ]
        return min((wait for wait in waits if wait is not None), default=None)

    def close(self) -> None:
        """Close the stores."""
        if self._slow is not None:
            self._slow.close()
        if self._watching is not None:
            self._watching.close()
        self._stores.close()

    def _frame(self, calls: list[Call]) -> None:
        """Handle the calls of one frame in order."""
        tasks: list[_Task] = []
        for call in calls:
            outcome = outcome_of(self._prepare, call)
            if isinstance(outcome, _Task):
                tasks.append(outcome)
            else:
                self._answer(call, outcome)
        for area, group in groupby(tasks, lambda task: task.area):
            same_area = list(group)
            store = outcome_of(self._stores.of, area)
            if isinstance(store, SidekeepError):
                for task in same_area:
                    self._channel.fail(task.call, store)
            else:
                self._split_old_sessions(store, same_area)
                self._run(store, same_area)

    def _split_old_sessions(self, store: Store, tasks: list[_Task]) -> None:
        """Bring sessions of the old kind into the form that the calls need, row by row.

        A row that does not fit on the disk stays as it is, and so do the calls on it fail; the
        others are served.
        """
        if not any(task.call.method.startswith("sessions.") for task in tasks):
            return
        from sidekeep.model import migration
        from sidekeep.model.frame import Frame

        def split(transaction: Transaction) -> bool:
            if not migration.needed(transaction):
                return False
            frame = Frame(transaction, None)
            frame.mutate(migration.split_next, None)
            frame.finish(watched=store.bell.heard())
            return True

        with store.read() as transaction:
            more: bool | SidekeepError = migration.needed(transaction)
        while more is True:
            more = outcome_of(store.write, split)

    def _answer(
        self,
        call: Call,
        outcome: Pieces | SidekeepError,
        release: Callable[[], None] | None = None,
    ) -> None:
        if isinstance(outcome, SidekeepError):
            self._channel.fail(call, outcome)
            if release is not None:
                release()
        else:
            self._channel.reply(call, outcome, release)

    def _prepare(self, call: Call) -> _Task | Pieces:
        """Answer a call that needs no transaction; make the others ready to run."""
        if call.method == "host.hello":
            return [self._hello(call)]
        if self._stores.local is None and self._stores.problem is None:
            raise InvalidRequest(
                "The first request must be host.hello.", next="send host.hello first"
            )
        if call.method == "host.ping":
            return [b"{}"]
        if call.method == "host.status":
            return [self._status()]
        if call.method == "storage.watch":
            return [self._watch(call)]
        if call.method == "history.watch":
            return [self._watch_conversations(call)]
        return self._task(call)

    def _task(self, call: Call) -> _Task:
        """Check a call and do all of its work that needs no transaction."""
        from sidekeep import service
        from sidekeep.service.method import Request

        method = service.find(call.method)
        if method is None:
            raise MethodNotFound(f"There is no method {call.method[:64]!r}.")
        params = handshake.decode(call, method.params, holes=method.holes)
        request = Request(call.holes, self._settings)
        mutation = method.prepare(params, request) if method.prepare else None
        return _Task(call, method, params, request, mutation)

    def _run(self, store: Store, tasks: list[_Task]) -> None:
        if all(task.mutation is None for task in tasks):
            self._read(store, tasks)
            return
        from sidekeep.slow import Slow

        watched = store.bell.heard()
        outcomes = outcome_of(
            store.write, lambda transaction: self._attempt(transaction, tasks, watched=watched)
        )
        if isinstance(outcomes, list):
            if self._watching is not None:
                self._watching.tell()
            for task, outcome in zip(tasks, outcomes, strict=True):
                if isinstance(outcome, Slow):
                    self._wait(store, task, outcome)
                else:
                    self._answer(task.call, outcome)
        elif isinstance(outcomes, (DiskFullError, QuotaError)) and len(tasks) > 1:
            for task in tasks:
                self._run(store, [task])
        else:
            for task in tasks:
                if task.mutation is not None:
                    self._channel.fail(task.call, outcomes)
            self._read(store, [task for task in tasks if task.mutation is None])

    def _read(self, store: Store, tasks: list[_Task]) -> None:
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
                self._answer(task.call, outcome, snapshot.use())
                self._prepare_thumbnails(store, outcome)
            if number % FLUSH_EVERY == 0:  # the browser can take them while the rest is read
                self._channel.flush()
        if isinstance(snapshot, SharedSnapshot):
            snapshot.release()

    def _wait(self, store: Store, task: _Task, slow: Slow) -> None:
        """Have slow work done, and answer the call when it is."""

        def outcome(result: Pieces | SidekeepError | None) -> None:
            if result is None:
                self._read(store, [task])
            else:
                self._answer(task.call, result)

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
        self, transaction: Transaction, tasks: list[_Task], *, watched: bool
    ) -> list[Pieces | Slow | SidekeepError]:
        """Run the calls of a frame in a write transaction; one outcome for each."""
        from sidekeep.model.frame import Expiry, Frame
        from sidekeep.store.environment import LmdbError

        frame = Frame(transaction, self._client)
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

    def _carry_out(self, frame: Frame, task: _Task) -> Pieces | Slow:
        from sidekeep.service.replies import held
        from sidekeep.slow import Slow

        if task.mutation is not None:
            return [frame.mutate(task.mutation, task.call.op)]
        assert task.method.read is not None
        outcome = task.method.read(frame.transaction, task.params, task.request)
        if isinstance(outcome, Slow):
            return outcome
        # Read at once: what lies in the file may be gone when the reply is sent.
        return [piece if isinstance(piece, bytes) else held(piece) for piece in outcome]

    def _hello(self, call: Call) -> bytes:
        """Open the store and answer the hello."""
        if self._stores.local is not None:
            raise ConflictError("This connection has already said hello.")
        hello = handshake.read(call)
        self._profile = hello.profile
        store = self._stores.open_local(hello)
        self._client = hello.client
        self._settings = hello.settings or self._settings
        answer: dict[str, object] = {
            "protocol": handshake.PROTOCOL,
            "host": {"name": "sidekeep", "version": __version__, "pid": os.getpid()},
            "features": handshake.FEATURES,
            "store": store.about.epoch,
        }
        with store.read() as transaction:
            answer["seq"] = {"local": transaction.head.seq}
            from sidekeep.store.founding import live_word

            answer["conversation"] = live_word(transaction)
        if hello.parts is not None:
            window = min(hello.parts.window, handshake.MOST_WINDOW)
            self._channel.grant_parts(window)
            answer["parts"] = {"window": window}
        answer["notices"] = []
        return msgspec.json.encode(answer)

    def _watch(self, call: Call) -> bytes:
        """Begin to tell of changes; what was missed follows the reply."""
        from sidekeep.service.storage import Watch
        from sidekeep.watching import Watching

        params: Watch = handshake.decode(call, Watch)
        if self._watching is None:
            self._watching = Watching(self._channel)
        self._watching.keep_only(list(params.areas))
        known = dict(params.stores or {})
        if params.store is not None:
            known.setdefault("local", params.store)
        seqs, epochs = {}, {}
        for area in dict.fromkeys(params.areas):
            store = self._stores.of(area)
            epochs[area] = store.about.epoch
            seqs[area] = self._watching.watch(
                area,
                store,
                keys=None if params.keys is None else frozenset(params.keys),
                values=params.values,
                since=(params.since or {}).get(area),
                same_file=known.get(area, store.about.epoch) == store.about.epoch,
            )
        return msgspec.json.encode({"seq": seqs, "stores": epochs})

    def _watch_conversations(self, call: Call) -> bytes:
        """Begin to tell of changes of history and sessions; what was missed follows the reply."""
        from sidekeep.service.history import Watch
        from sidekeep.watching import Watching

        params: Watch = handshake.decode(call, Watch)
        if self._watching is None:
            self._watching = Watching(self._channel)
        store = self._stores.of("local")
        newest = self._watching.watch_conversations(
            store, params.since, same_file=params.store in {None, store.about.epoch}
        )
        return msgspec.json.encode({"revision": newest, "store": store.about.epoch})

    def _status(self) -> bytes:
        answer: dict[str, object] = {"health": "good"}
        versions: dict[str, object] = {
            "sidekeep": __version__,
            "protocol": handshake.PROTOCOL,
            "python": sys.version.split()[0],
            "msgspec": msgspec.__version__,
        }
        from sidekeep.helper.previews import why_off

        reason = why_off()
        answer["previews"] = {"on": reason is None, "reason": reason}
        if self._stores.local is None:
            problem = self._stores.problem
            answer["health"] = problem.kind if problem is not None else "unavailable"
            answer["problem"] = str(problem)
            answer["next"] = problem.next if problem is not None else None
        else:
            from sidekeep.store import report

            versions.update(report.versions())
            answer.update(report.figures(self._stores.local))
        answer.update(
            versions=versions, extension=self._extension, profile=self._profile, pid=os.getpid()
        )
        return msgspec.json.encode(answer)


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
