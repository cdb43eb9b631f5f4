"""JSON-RPC 2.0 over native messaging: calls, batches, notifications, parts and windows.

Rules of this module, all from ``docs/protocol.md``:

* Every request gets exactly one response. A request that was not in an array is answered by an
  object, the requests of a batch by arrays; a response in parts is an object always.
* Big messages travel in parts once both sides agreed on it (``enable_parts``). At most the granted
  window stays unacknowledged in either direction; a host that sends more is a violation.
* Responses that no call awaits are kept for ``unclaimed``; one nobody took is a violation.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .messages import Call, RpcError, shape_fault
from .native import HostGoneError, NativeHost
from .parts import MESSAGE_LIMIT, PartError, PartJoiner, split_message, to_json
from .process import Exit
from .strict_json import StrictJsonError


@dataclass
class _Pending:
    answer: asyncio.Future[Any]
    in_array: bool


class RpcHost(NativeHost):
    """A running host that speaks JSON-RPC 2.0. Started like ``NativeHost``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.notifications: list[dict[str, Any]] = []
        self.acks: list[tuple[int, int]] = []
        self.window: int | None = None
        self.unacknowledged_by_us = 0
        self._numbers = itertools.count(1)
        self._messages = itertools.count(1)
        self._pending: dict[int | str, _Pending] = {}
        self._unclaimed: asyncio.Queue[Any] = asyncio.Queue()
        self._joiner = PartJoiner()
        self._held: list[tuple[int, int]] | None = None
        self._to_acknowledge: list[tuple[int, int]] = []
        self._sending: dict[int, tuple[int, int]] = {}
        self._room = asyncio.Condition()
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    # Calls

    async def call(
        self, method: str, params: Any = None, *, op: int | None = None, timeout: float = 30
    ) -> Any:
        """Send one request and return its result.

        Raises ``RpcError`` for an error response, ``HostGoneError`` if the host ends first,
        ``asyncio.TimeoutError`` after ``timeout`` seconds.
        """
        number, message = self._request(Call(method, params, op))
        answer = self._expect(number, in_array=False)
        await self._post(message, number)
        return await self._settle(answer, timeout)

    async def batch(self, calls: Sequence[Call], *, timeout: float = 30) -> list[Any]:
        """Send ``calls`` in order as one array and return their results in the same order.

        A failed call gives its ``RpcError`` instead of a result. With parts, a call that is too big
        for the array travels as a message of its own between two arrays.
        """
        answers = []
        run: list[dict[str, Any]] = []
        for entry in calls:
            number, message = self._request(entry)
            big = self.window is not None and len(to_json(message)) > MESSAGE_LIMIT
            answers.append(self._expect(number, in_array=not big))
            if big:
                if run:
                    await self.send_frame(to_json(run))
                    run = []
                await self._post(message, number)
            else:
                run.append(message)
        if run:
            await self.send_frame(to_json(run))
        results = []
        for answer in answers:
            try:
                results.append(await self._settle(answer, timeout))
            except RpcError as error:
                results.append(error)
        return results

    async def notify(self, method: str, params: Any = None) -> None:
        """Send a notification: a request without an id, which gets no response."""
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        await self.send_frame(to_json(message))

    async def unclaimed(self, timeout: float = 30) -> dict[str, Any]:
        """Return the next response that belongs to no call: id ``null``, or to raw bytes sent."""
        response = await asyncio.wait_for(self._unclaimed.get(), timeout)
        if isinstance(response, HostGoneError):
            self._unclaimed.put_nowait(response)
            self.check()
            raise HostGoneError(f"{response}; {self._how()}")
        assert isinstance(response, dict)
        return response

    def take_unclaimed(self) -> list[dict[str, Any]]:
        """Return all responses that belong to no call and have arrived already."""
        taken = []
        while not self._unclaimed.empty():
            response = self._unclaimed.get_nowait()
            if isinstance(response, dict):
                taken.append(response)
            else:
                self._unclaimed.put_nowait(response)
                break
        return taken

    async def exchange(self, body: bytes, timeout: float = 30) -> dict[str, Any]:
        """Send ``body`` as one frame, whatever it holds, and return the response it causes."""
        await self.send_frame(body)
        return await self.unclaimed(timeout)

    async def until(self, condition: Callable[[], bool], timeout: float = 30) -> None:
        """Wait until ``condition`` holds, looking again at everything that arrives."""

        async def wait() -> None:
            async with self._news:
                await self._news.wait_for(condition)

        await asyncio.wait_for(wait(), timeout)

    def _request(self, entry: Call) -> tuple[int, dict[str, Any]]:
        number = next(self._numbers)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": entry.method}
        if entry.op is not None:
            message["op"] = entry.op
        if entry.params is not None:
            message["params"] = entry.params
        return number, message

    def _expect(self, number: int, *, in_array: bool) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[number] = _Pending(answer, in_array)
        return answer

    async def _settle(self, answer: asyncio.Future[Any], timeout: float) -> Any:
        response = await asyncio.wait_for(answer, timeout)
        self.check()
        if isinstance(response, HostGoneError):
            raise HostGoneError(f"{response}; {self._how()}")
        if "error" in response:
            raise RpcError(response["error"])
        return response["result"]

    # Parts

    def enable_parts(self, window: int) -> None:
        """Send and accept parts from now on, with at most ``window`` of them unacknowledged."""
        self.window = window

    def hold_acknowledgements(self) -> None:
        """Acknowledge nothing from now on, so that the host's window fills."""
        self._held = []

    async def release_acknowledgements(self, *, hold_on: bool = False) -> None:
        """Acknowledge what was held back; with ``hold_on`` keep holding what comes after."""
        held, self._held = self._held or [], [] if hold_on else None
        if held:
            self._to_acknowledge += held
            await self._send_acknowledgements()

    async def _post(self, message: dict[str, Any], number: int) -> None:
        if self.window is not None and len(to_json(message)) > MESSAGE_LIMIT:
            bodies = split_message(message, of := self.next_message())
            await self.send_parts(of, bodies, abandoned=self._pending[number].answer.done)
        else:
            await self.send_frame(to_json(message))

    def next_message(self) -> int:
        """Return the number for the next message in parts."""
        return next(self._messages)

    async def send_parts(
        self, of: int, bodies: Sequence[bytes], abandoned: Callable[[], bool] = lambda: False
    ) -> None:
        """Send the parts ``bodies`` of message ``of``, keeping to the window.

        Stops early, without error, when ``abandoned`` says that the answer has come already.
        """
        window = self.window
        assert window is not None, "the host did not grant parts"

        def may_go_on() -> bool:
            return self.in_flight < window or abandoned() or self._output_ended.is_set()

        for body in bodies:
            async with self._room:
                await self._room.wait_for(may_go_on)
                if abandoned():
                    self._sending.pop(of, None)
                    return
                sent, acknowledged = self._sending.get(of, (0, 0))
                self._sending[of] = (sent + 1, acknowledged)
            await self.send_frame(body)

    @property
    def in_flight(self) -> int:
        """How many parts were sent and are not acknowledged yet."""
        return sum(sent - acknowledged for sent, acknowledged in self._sending.values())

    def _on_ack(self, ack: Any) -> None:
        of, index = ack["of"], ack["i"]
        self.acks.append((of, index))
        if of in self._sending:
            sent, acknowledged = self._sending[of]
            if index >= sent:
                self.violated(f"part {index} of message {of} was acknowledged, not sent")
            self._sending[of] = (sent, max(acknowledged, index + 1))
        self._spawn(_tell(self._room))

    def _on_part(self, frame: dict[str, Any], body: bytes) -> None:
        if self.window is None:
            self.violated("a part came although parts were not agreed on")
            return
        self.unacknowledged_by_us += 1
        if self.unacknowledged_by_us > self.window:
            self.violated(
                f"{self.unacknowledged_by_us} parts are unacknowledged, the window is {self.window}"
            )
        try:
            message = self._joiner.add(frame, body)
        except (PartError, StrictJsonError, LookupError, TypeError) as error:
            self.violated(f"parts: {error!r}")
            return
        mark = (frame["part"]["of"], frame["part"]["i"])
        if self._held is None:
            self._to_acknowledge.append(mark)
            self._spawn(self._send_acknowledgements())
        else:
            self._held.append(mark)
        if message is not None:
            self._on_message(message, in_array=None)

    async def _send_acknowledgements(self) -> None:
        # Parts that came while an earlier acknowledgement waited for the pipe go out together.
        due, self._to_acknowledge = self._to_acknowledge, []
        if due:
            highest = dict(due)
            acks = [{"ack": {"of": of, "i": index}} for of, index in highest.items()]
            self.unacknowledged_by_us -= len(due)
            await self.send_frame(to_json(acks[0] if len(acks) == 1 else acks))

    # What arrives

    def on_frame(self, value: Any, body: bytes) -> None:
        """Sort one frame: parts, acknowledgements, responses, notifications."""
        if isinstance(value, list):
            if not value:
                self.violated("an empty array came")
            for element in value:
                if isinstance(element, dict) and "ack" in element:
                    self._on_ack(element["ack"])
                else:
                    self._on_message(element, in_array=True)
        elif isinstance(value, dict) and "part" in value:
            self._on_part(value, body)
        elif isinstance(value, dict) and "ack" in value:
            self._on_ack(value["ack"])
        else:
            self._on_message(value, in_array=False)
        self._spawn(_tell(self._news))

    def _on_message(self, message: Any, *, in_array: bool | None) -> None:
        fault = shape_fault(message)
        if fault is not None:
            self.violated(f"{fault}: {str(message)[:300]}")
            return
        if "method" in message:
            self.notifications.append(message)
            return
        pending = self._pending.pop(message["id"], None) if message["id"] is not None else None
        if pending is None:
            self._unclaimed.put_nowait(message)
            return
        if in_array is not None and in_array != pending.in_array:
            asked, came = ("an array", "alone") if pending.in_array else ("alone", "an array")
            self.violated(f"request {message['id']} was sent {asked}, answered {came}")
        if not pending.answer.done():
            pending.answer.set_result(message)
            self._spawn(_tell(self._room))

    def on_output_end(self) -> None:
        """Settle every call that still waits: nothing will come any more."""
        gone = HostGoneError("the host closed its output before it answered")
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_result(gone)
        self._pending.clear()
        self._unclaimed.put_nowait(gone)
        self._spawn(_tell(self._room))
        self._spawn(_tell(self._news))

    def violated(self, what: str) -> None:
        """Keep something the host did wrong, and let the calls that wait fail with it at once."""
        super().violated(what)
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_result(HostGoneError(what))

    async def close(self, *, check: bool = True) -> Exit:
        """End the host as ``NativeHost.close`` does, and this side's own work with it."""
        outcome = await super().close(check=False)
        await asyncio.gather(*self._tasks)
        if check:
            self.check()
        return outcome

    def check(self) -> None:
        """Raise ``ViolationError`` if anything wrong was seen so far."""
        if self._output_ended.is_set():
            for message in self.take_unclaimed():
                self.violated(f"a response nobody asked for: {str(message)[:300]}")
        super().check()

    def _spawn(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except HostGoneError:
                return  # the calls that wait hear of it from on_output_end

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _tell(condition: asyncio.Condition) -> None:
    async with condition:
        condition.notify_all()
