"""The channel between a browser and the service: calls come out, replies go in.

Rules of this module:

* One thread, the one that calls ``receive``, decodes, replies and writes.
* Every request gets exactly one response. What is faulty is answered here and never handed out.
* The end of input ends the process in time, whatever the main thread does (see ``input``).

Use::

    channel = Channel(0, 1)
    while (calls := channel.receive()) is not None:
        for call in calls:
            channel.reply(call, b"{}")
        channel.flush()
    channel.finished()
    sys.exit(channel.exit_code)
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from sidekeep.errors import InvalidRequest, SidekeepError, TooLargeError
from sidekeep.wire import rpc
from sidekeep.wire.frames import LARGEST_INCOMING
from sidekeep.wire.input import Input
from sidekeep.wire.messages import Call, Pieces
from sidekeep.wire.outbox import Outbox
from sidekeep.wire.output import Output

if TYPE_CHECKING:
    from sidekeep.wire.parts_in import Assembler

EXIT_FRAMING_LOST = 2


class Channel:
    """Both directions of one port.

    ``forbid``: when set, every request is answered with this error and ``receive`` returns no
    calls.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input = Input(input_fd)
        self._outbox = Outbox(Output(output_fd, self._input), self._input)
        self._assembler: Assembler | None = None
        self._wakers: list[int] = []
        self._lost_told = False
        self.forbid: SidekeepError | None = None

    # Input

    def wake_on(self, descriptor: int) -> None:
        """Let ``receive`` also return (an empty list) when ``descriptor`` becomes readable."""
        self._wakers.append(descriptor)

    @property
    def wakers(self) -> list[int]:
        """The descriptors given to ``wake_on``."""
        return self._wakers

    def wake_off(self, descriptor: int) -> None:
        """Take ``wake_on`` back."""
        self._wakers.remove(descriptor)

    def receive(self, timeout: float | None = None) -> list[Call] | None:
        """Return the calls of the next frame that decoded well, in order.

        An empty list means that ``timeout`` seconds passed, that what came in held no call, or that
        a descriptor given to ``wake_on`` is readable; ``None`` means that the input has ended.
        While nothing comes in, parts are sent.
        """
        source = self._input
        deadline = None if timeout is None else monotonic() + timeout
        worked = False
        while True:
            while source.frames:
                calls = self._handle(source.frames.popleft())
                if calls:
                    return calls
                worked = True
            if source.ended:
                self._end()
                return None
            self._outbox.flush()
            if worked:
                return []
            if source.frames or source.ended:  # read by the helper while the outbox wrote
                continue
            left = None if deadline is None else max(0.0, deadline - monotonic())
            if self._wakers:
                if not source.wait_beside(self._wakers, left):
                    return []
            elif left is not None and not source.wait(left):
                return []
            source.fill()

    def _end(self) -> None:
        lost = self._input.reader.lost
        if lost is not None and not self._lost_told:
            self._lost_told = True
            self._input.exit_code = EXIT_FRAMING_LOST
            error = TooLargeError(
                f"A frame may hold {LARGEST_INCOMING} bytes; one of {lost} was announced.",
                next="Send big messages in parts.",
            )
            self._outbox.refuse(b"null", error, batch=False)
        self._outbox.flush()
        self._input.end_in_time_beside()

    def _handle(self, body: bytes) -> list[Call]:
        """Return the calls in the frame with this body; what is no call is dealt with here."""
        calls = []
        for element in rpc.read(body):
            if isinstance(element, rpc.Acknowledgement):
                self._outbox.acknowledged(element.of, element.i)
                continue
            outcome = self._take_part(element) if isinstance(element, rpc.Part) else element
            if isinstance(outcome, Call):
                if self.forbid is None:
                    calls.append(outcome)
                else:
                    self.fail(outcome, self.forbid)
            elif outcome is not None:
                error = outcome.error if self.forbid is None else self.forbid
                self._outbox.refuse(outcome.id, error, batch=outcome.batch, of=outcome.of)
        return calls

    def _take_part(self, part: rpc.Part) -> Call | rpc.Refusal | None:
        if not self._outbox.window:
            return rpc.Refusal(b"null", InvalidRequest("Parts were not granted."))
        if self._assembler is None:  # no part comes before the first reply has left
            from sidekeep.wire.parts_in import Assembler

            self._assembler = Assembler()
        place, element = self._assembler.take(part)
        if place is not None:
            self._outbox.acknowledge(*place)
        return element

    # Output

    def grant_parts(self, window: int) -> None:
        """Allow parts in both directions, ``window`` of them unacknowledged."""
        self._outbox.window = window

    def reply(
        self, call: Call, result: Pieces | bytes, release: Callable[[], None] | None = None
    ) -> None:
        """Queue the success response to ``call``.

        ``release`` is called exactly once, when the last byte of the reply was taken: sent, dropped
        or read into memory. A notification is not answered.
        """
        self._outbox.respond(call.id, result, release, batch=call.batch)

    def fail(self, call: Call, error: SidekeepError) -> None:
        """Queue the error response to ``call``."""
        self._outbox.refuse(call.id, error, batch=call.batch)

    def notify(
        self,
        method: str,
        params: Pieces | bytes,
        release: Callable[[], None] | None = None,
    ) -> None:
        """Queue a notification. ``release``: as in ``reply``, also where this raises.

        Raises ``TooLargeError`` if it is too long for one frame and parts are not granted.
        """
        self._outbox.notify(method, params, release)

    def flush(self) -> None:
        """Write what can be written now; call it once after the calls of a frame were handled."""
        self._outbox.flush()

    @property
    def streaming(self) -> bool:
        """Whether some outgoing message still has cuts to be read."""
        return self._outbox.streaming

    @property
    def oldest_stream_age(self) -> float:
        """Seconds since the stream that waits the longest made progress; 0.0 if there is none."""
        return self._outbox.oldest_stream_age

    def materialise(self) -> None:
        """Read all pending cuts into memory and call their release functions."""
        self._outbox.materialise()

    # The end

    @property
    def exit_code(self) -> int:
        """What the process should end with: 0, or 2 when the framing was lost.

        A forced end uses it too; set it where another code is due.
        """
        return self._input.exit_code

    @exit_code.setter
    def exit_code(self, code: int) -> None:
        self._input.exit_code = code

    @property
    def last_words(self) -> list[Callable[[], None]]:
        """Quick callbacks for the case that the main thread does not finish in time."""
        return self._input.last_words

    def finished(self) -> None:
        """Tell that the main thread now ends the process by itself."""
        self._input.finished()
