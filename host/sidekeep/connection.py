"""One connection: the hello, the order of calls, the transaction of each frame, errors.

Rules:

* Nothing is opened before the hello. A store that cannot be opened answers the hello with the
  reason and the next hello may try again.
* A frame that only reads shares one snapshot. A frame that changes something runs in one write
  transaction, each mutation in a nested one; its replies go out after the commit.
* A commit that fails is tried again call by call, so that only calls that do not fit fail.
* A reply that is sent slowly holds its snapshot for a few seconds at most; what is left is then
  read into memory, since an old snapshot makes the file grow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from sidekeep import __version__, service
from sidekeep.config import HostConfig
from sidekeep.errors import (
    ConflictError,
    DiskFullError,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    QuotaError,
    SidekeepError,
    UnavailableError,
)
from sidekeep.places import checked_word, store_folder
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sidekeep.model.frame import Expiry
    from sidekeep.service import Prepared
    from sidekeep.store.environment import Store
    from sidekeep.store.transaction import Transaction

SNAPSHOT_SECONDS = 2.0
MOST_WINDOW = 64


class _Task(NamedTuple):
    """A call that is ready to run: a reading with its parameters, or a prepared mutation."""

    call: Call
    method: service.Method
    params: object
    mutation: Prepared | None


class _Snapshot:
    """A read transaction that ends when the last reply that reads from it has been sent."""

    __slots__ = ("_users", "transaction")

    def __init__(self, store: Store) -> None:
        self.transaction: Transaction = store.snapshot()
        self._users = 1

    def use(self) -> Callable[[], None]:
        """Count one more user; the function returned ends that use."""
        self._users += 1
        return self.release

    def release(self) -> None:
        self._users -= 1
        if not self._users:
            self.transaction.txn.abort()


class Connection:
    """Serves one port of one extension until the end of input."""

    def __init__(self, channel: Channel, config: HostConfig, extension: str) -> None:
        self._channel = channel
        self._config = config
        self._extension = extension
        self._store: Store | None = None
        self._profile = ""
        self._client: str | None = None
        self._problem: SidekeepError | None = None
        self._expiry: Expiry | None = None

    def run(self) -> None:
        """Handle frames until the input ends."""
        channel = self._channel
        while True:
            calls = channel.receive(SNAPSHOT_SECONDS / 2 if channel.streaming else None)
            if calls is None:
                break
            if calls:
                self._frame(calls)
            channel.flush()
            if channel.streaming and channel.oldest_stream_age > SNAPSHOT_SECONDS:
                channel.materialise()

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    def _frame(self, calls: list[Call]) -> None:
        """Handle the calls of one frame in order."""
        tasks: list[_Task] = []
        for call in calls:
            try:
                if call.method == "host.hello":
                    self._channel.reply(call, [self._hello(call)])
                elif self._store is None and self._problem is None:
                    raise InvalidRequest(
                        "The first request must be host.hello.", next="send host.hello first"
                    )
                elif call.method == "host.ping":
                    self._channel.reply(call, b"{}")
                elif call.method == "host.status":
                    self._channel.reply(call, [self._status()])
                else:
                    tasks.append(self._task(call))
            except Exception as error:
                self._channel.fail(call, reported(error))
        if tasks:
            self._run(tasks)

    def _task(self, call: Call) -> _Task:
        """Check a call and do all of its work that needs no transaction."""
        method = service.METHODS.get(call.method)
        if method is None:
            raise MethodNotFound(f"There is no method {call.method[:64]!r}.")
        if self._problem is not None:
            raise self._problem
        params = service.decode(call, method.params)
        mutation = method.prepare(params, call.holes) if method.prepare else None
        return _Task(call, method, params, mutation)

    def _run(self, tasks: list[_Task]) -> None:
        store = self._store
        assert store is not None
        if all(task.mutation is None for task in tasks):
            self._read(store, tasks)
            return
        try:
            outcomes = store.write(lambda transaction: self._attempt(transaction, tasks))
        except (DiskFullError, QuotaError) as error:
            if len(tasks) == 1:
                self._channel.fail(tasks[0].call, error)
                return
            for task in tasks:
                self._run([task])
            return
        except Exception as error:
            reason = reported(error)
            for task in tasks:
                if task.mutation is not None:
                    self._channel.fail(task.call, reason)
            self._read(store, [task for task in tasks if task.mutation is None])
            return
        for task, outcome in zip(tasks, outcomes, strict=True):
            if isinstance(outcome, SidekeepError):
                self._channel.fail(task.call, outcome)
            else:
                self._channel.reply(task.call, outcome)

    def _read(self, store: Store, tasks: list[_Task]) -> None:
        if not tasks:
            return
        try:
            snapshot = _Snapshot(store)
        except Exception as error:
            reason = reported(error)
            for task in tasks:
                self._channel.fail(task.call, reason)
            return
        for task in tasks:
            try:
                assert task.method.read is not None
                pieces = task.method.read(snapshot.transaction, task.params)
            except Exception as error:
                self._channel.fail(task.call, reported(error))
            else:
                self._channel.reply(task.call, pieces, snapshot.use())
        snapshot.release()

    def _attempt(
        self, transaction: Transaction, tasks: list[_Task]
    ) -> list[Pieces | SidekeepError]:
        """Run the calls of a frame in a write transaction; one outcome for each."""
        from sidekeep.model.frame import Frame
        from sidekeep.store.environment import LmdbError

        frame = Frame(transaction, self._client)
        outcomes: list[Pieces | SidekeepError] = []
        for task in tasks:
            try:
                if task.mutation is not None:
                    outcomes.append([frame.mutate(task.mutation, task.call.op)])
                else:
                    assert task.method.read is not None
                    # Read now: what lies in the file may be gone when the reply is sent.
                    pieces = task.method.read(transaction, task.params)
                    outcomes.append(
                        [
                            piece if isinstance(piece, bytes) else service.in_memory(piece)
                            for piece in pieces
                        ]
                    )
            except LmdbError:  # concerns the whole transaction: a full map, a full disk
                raise
            except Exception as error:
                outcomes.append(reported(error))
        frame.finish()
        if self._expiry is not None:
            self._expiry.look(transaction)
        return outcomes

    def _hello(self, call: Call) -> bytes:
        """Open the store and answer the hello."""
        if self._store is not None:
            raise ConflictError("This connection has already said hello.")
        hello: service.Hello = service.decode(call, service.Hello)
        if hello.protocol != service.PROTOCOL:
            raise UnavailableError(
                f"This host speaks protocol {service.PROTOCOL}, not {hello.protocol}.",
                next="update Sidekeep or the extension, whichever is older",
                protocol=service.PROTOCOL,
            )
        profile = checked_word("profile", hello.profile)
        for name in ("run", "client"):
            word = getattr(hello, name)
            if word is not None:
                checked_word(name, word)
        if hello.parts is not None and hello.parts.window < 1:
            raise InvalidParams("parts.window must be 1 or more.")
        store = self._open(profile)
        self._client = hello.client
        answer: dict[str, object] = {
            "protocol": service.PROTOCOL,
            "host": {"name": "sidekeep", "version": __version__, "pid": os.getpid()},
            "features": service.FEATURES,
            "store": store.about.epoch,
        }
        with store.read() as transaction:
            answer["seq"] = {"local": transaction.head.seq}
            answer["conversation"] = store.live_conversation(transaction)
        if hello.parts is not None:
            window = min(hello.parts.window, MOST_WINDOW)
            self._channel.grant_parts(window)
            answer["parts"] = {"window": window}
        answer["notices"] = []
        return msgspec.json.encode(answer)

    def _open(self, profile: str) -> Store:
        try:
            from sidekeep.model.frame import Expiry
            from sidekeep.store.environment import Store
        except ImportError as error:
            self._problem = UnavailableError(
                f"storage unavailable: {error}.", next="run install.sh again"
            )
            raise self._problem from error
        self._profile = profile
        try:
            store = Store(
                store_folder(self._config.data_dir, self._extension, profile),
                extension=self._extension,
                profile=profile,
                map_size=self._config.map_size,
                max_size=self._config.max_size,
            )
        except SidekeepError as error:
            self._problem = error
            raise
        store.before_growth.append(self._channel.materialise)
        self._problem = None
        self._store = store
        self._expiry = Expiry()
        return store

    def _status(self) -> bytes:
        answer: dict[str, object] = {"health": "good"}
        versions: dict[str, object] = {
            "sidekeep": __version__,
            "protocol": service.PROTOCOL,
            "python": sys.version.split()[0],
            "msgspec": msgspec.__version__,
        }
        if self._store is None:
            problem = self._problem
            answer["health"] = problem.kind if problem is not None else "unavailable"
            answer["problem"] = str(problem)
            answer["next"] = problem.next if problem is not None else None
        else:
            from sidekeep.store import report

            versions.update(report.versions())
            answer.update(report.figures(self._store))
        answer.update(
            versions=versions, extension=self._extension, profile=self._profile, pid=os.getpid()
        )
        return msgspec.json.encode(answer)


def reported(error: Exception) -> SidekeepError:
    """Return the error that the caller gets; one that is the host's fault is told on stderr."""
    if isinstance(error, SidekeepError):
        return error
    import traceback

    traceback.print_exception(error, file=sys.stderr)
    return InternalError(
        f"The host failed ({type(error).__name__}); the call had no effect.",
        next="report this, with what the host printed on standard error",
    )
