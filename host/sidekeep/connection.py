"""One connection: the hello, what to watch, and the order of calls.

Rules:

* Nothing is opened before the hello. A store that cannot be opened answers the hello with the
  reason, and the next hello may try again.
* The calls of a frame that follow each other in one area are carried out together (``execution``).
* A reply that is sent slowly holds its snapshot for a few seconds at most; what is left is then
  read into memory, since an old snapshot makes the file grow.
"""

from __future__ import annotations

import gc
import os
import sys
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from sidekeep import __version__, handshake
from sidekeep.config import HostConfig
from sidekeep.errors import (
    ConflictError,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    SidekeepError,
)
from sidekeep.execution import Execution, Task, outcome_of
from sidekeep.stores import Stores
from sidekeep.wire.channel import Channel
from sidekeep.wire.messages import Call, Pieces

if TYPE_CHECKING:
    from sidekeep.caller import Caller
    from sidekeep.service.storage import Watch
    from sidekeep.store.environment import Store
    from sidekeep.store.transaction import Transaction
    from sidekeep.watching import Watching

SNAPSHOT_SECONDS = 2.0


class Connection:
    """Serves one port of one extension until the end of input."""

    def __init__(self, channel: Channel, config: HostConfig, extension: str) -> None:
        self._channel = channel
        self._extension = extension
        self._stores = Stores(config, extension, channel.materialise)
        self._profile = ""
        self._settings = handshake.Settings()
        self._watching: Watching | None = None
        self._caller: Caller | None = None
        self._execution = Execution(channel, self._tell)

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
            self._execution.take()
            self._tell()
            channel.flush()
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            if channel.streaming and channel.oldest_stream_age > SNAPSHOT_SECONDS:
                channel.materialise()

    def _tell(self) -> None:
        """Let events leave."""
        if self._watching is not None:
            self._watching.tell()

    def _patience(self) -> float | None:
        """Return how long to wait for a frame before something else has to be looked at."""
        waits = [
            SNAPSHOT_SECONDS / 2 if self._channel.streaming else None,
            None if self._watching is None else self._watching.look_seconds,
            self._execution.patience(),
        ]
        return min((wait for wait in waits if wait is not None), default=None)

    def close(self) -> None:
        """Close the stores."""
        self._execution.close()
        if self._caller is not None:
            self._caller.close()
        if self._watching is not None:
            self._watching.close()
        self._stores.close()

    def _frame(self, calls: list[Call]) -> None:
        """Handle the calls of one frame in order."""
        tasks: list[Task] = []
        for call in calls:
            outcome = outcome_of(self._prepare, call)
            if isinstance(outcome, Task):
                tasks.append(outcome)
            else:
                self._execution.answer(call, outcome)
        for area, group in groupby(tasks, lambda task: task.area):
            same_area = list(group)
            store = outcome_of(self._stores.of, area)
            if isinstance(store, SidekeepError):
                for task in same_area:
                    self._channel.fail(task.call, store)
            else:
                self._execution.run(store, same_area)

    def _prepare(self, call: Call) -> Task | Pieces:
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

    def _task(self, call: Call) -> Task:
        """Check a call and do all of its work that needs no transaction."""
        from sidekeep import service
        from sidekeep.service.method import Request

        method = service.find(call.method)
        if method is None:
            raise MethodNotFound(f"There is no method {call.method[:64]!r}.")
        params = handshake.decode(call, method.params, holes=method.holes)
        if self._caller is None:  # the store cannot be used; the reason is the answer
            raise self._stores.problem or InternalError("The store is not open.")
        request = Request(call.holes, self._settings, self._caller, call.op)
        mutation = method.prepare(params, request) if method.prepare else None
        return Task(call, method, params, request, mutation)

    def _hello(self, call: Call) -> bytes:
        """Open the store and answer the hello."""
        if self._stores.local is not None:
            raise ConflictError("This connection has already said hello.")
        from sidekeep.caller import Caller

        hello = handshake.read(call)
        self._profile = hello.profile
        store = self._stores.open_local(hello)
        self._execution.client = hello.client
        self._settings = hello.settings or self._settings
        self._caller = Caller(hello.client or "", store.folder)
        answer: dict[str, object] = {
            "protocol": handshake.PROTOCOL,
            "host": {"name": "sidekeep", "version": __version__, "pid": os.getpid()},
            "features": handshake.FEATURES,
            "store": store.about.epoch,
        }
        from sidekeep.store.founding import live_word, turns_wait

        with store.read() as transaction:
            answer["seq"] = {"local": transaction.head.seq}
            answer["conversation"] = live_word(transaction)
            told = self._older_stores(store, transaction)
            waiting = turns_wait(transaction)
        if hello.parts is not None:
            window = min(hello.parts.window, handshake.MOST_WINDOW)
            self._channel.grant_parts(window)
            answer["parts"] = {"window": window}
        answer["notices"] = told + (self._cut_off(store, self._caller) if waiting else [])
        return msgspec.json.encode(answer)

    def _cut_off(self, store: Store, caller: Caller) -> list[dict[str, object]]:
        """Deal with turns that were cut off, and return what is to be told of them.

        What stands in the way (a full disk, a writer that does not end, a damaged row) is told as
        well, and the store is used all the same; the next hello tries again.
        """
        from sidekeep.model import notices

        outcome = outcome_of(self._settled, store, caller)
        return [notices.unsettled(outcome)] if isinstance(outcome, SidekeepError) else outcome

    def _settled(self, store: Store, caller: Caller) -> list[dict[str, object]]:
        from sidekeep.model import notices
        from sidekeep.model.frame import Frame

        def settle(transaction: Transaction) -> list[dict[str, object]]:
            frame = Frame(transaction, None)
            for turn in notices.orphans(transaction, caller):
                frame.mutate(notices.settling(caller, turn), None)
            frame.finish(watched=store.bell.heard())
            return notices.pending(transaction)

        with store.read() as transaction:
            if not notices.orphans(transaction, caller):
                return notices.pending(transaction)
        return store.write(settle)

    def _older_stores(self, store: Store, transaction: Transaction) -> list[dict[str, object]]:
        """Return the notice of older stores of this extension, if there are any."""
        if len(os.listdir(os.path.dirname(store.folder))) < 2:
            return []
        from sidekeep.model import adoption

        notice = adoption.notice(store, transaction)
        return [] if notice is None else [notice]

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
