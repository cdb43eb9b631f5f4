"""The host's side of a helper: jobs in, answers out, and never a wait.

Rules of this module:

* Nothing is started before the first job, and nothing is imported before it that the host has not.
  After ``IDLE_SECONDS`` without a job the child is ended again: it holds memory.
* One job at a time lies with the child; the others wait here. A job's time begins when it is sent.
* A job that took too long or killed its child is answered with ``JobFailed`` and never tried again;
  the jobs behind it go to a fresh child. So each child beyond the first is paid for with a job, and
  there is no loop of restarts. A child that does not even start answers all jobs with an error, and
  for ``REST_SECONDS`` none is started.
* The module is used by one thread, the one that starts it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from sidekeep.errors import InternalError, SidekeepError, UnavailableError
from sidekeep.helper import frames

if TYPE_CHECKING:
    from sidekeep.helper.process import Process

START_SECONDS = 30.0
IDLE_SECONDS = 60.0
REST_SECONDS = 60.0
LOOK_SECONDS = 0.005
SECONDS_FOR_THE_END = 1.0
SECONDS_AFTER_CANCEL = 1.0
"""How long a job that nobody waits for may still run. Ending the child costs more than a short job,
and a long one must not go on for nothing."""

SECONDS_TO_DIE = 0.5
"""How long the end of a killed child is waited for; it takes milliseconds."""

Job = bytes | Callable[[], bytes]


class JobFailed(UnavailableError):
    """The job itself took too long, too much memory or the child's life: do not try it again."""


class Helper:
    """One kind of slow work, done by one child at a time.

    ``kind``: a name of the table. ``seconds``: how long a job may take. ``memory``: the child's
    address space in bytes, its own 60 MB included, or ``None``. ``table``: the module whose
    ``KINDS`` names the module of each kind.
    """

    def __init__(
        self,
        kind: str,
        *,
        seconds: float,
        memory: int | None,
        table: str = "sidekeep.helper.kinds",
    ) -> None:
        self._kind = kind
        self._seconds = seconds
        self._memory = memory
        self._table = table
        self._numbers = count(1)
        self._waiting: deque[tuple[int, Job]] = deque()
        self._done: list[tuple[int, bytes | SidekeepError]] = []
        self._told: list[tuple[int, bytes]] = []
        self._process: Process | None = None
        self._ready = False
        self._hung_up: float | None = None
        self._current: int | None = None
        self._cancelled = False
        self._deadline = 0.0
        self._rest_until = 0.0
        self._problem = UnavailableError("")
        self._ended: list[Process] = []
        self._quiet: tuple[int, int] | None = None
        self.descriptor = -1
        """To be polled by the main loop: readable when ``take`` has something to do. -1 before the
        first job and after ``close``; in between it stays the same number, whatever child it leads
        to, so it must be given to ``poll`` anew each time."""

    def submit(self, job: Job) -> int:
        """Add a job and return its number, which rises.

        A job that is a function is called, in this thread, when its turn has come: big jobs need
        not lie in memory meanwhile. A ``SidekeepError`` that it raises is the job's answer.
        """
        number = next(self._numbers)
        self._waiting.append((number, job))
        self._go_on()
        return number

    def take(self) -> list[tuple[int, bytes | SidekeepError]]:
        """Return what has come to an end since the last call; each job once. Never blocks.

        To be called when ``descriptor`` is readable and when ``patience`` is over.
        """
        if self._process is not None:
            self._look(self._process)
        self._go_on()
        done, self._done = self._done, []
        return done

    def told(self) -> list[tuple[int, bytes]]:
        """Return what jobs told of themselves up to the last ``take``: each word once.

        Every word belongs to a job that was not given up; it may have come to its end since.
        """
        told, self._told = self._told, []
        return told

    def patience(self) -> float | None:
        """Return in how many seconds ``take`` must be called at the latest; ``None``: never."""
        if self._done:
            return 0.0
        return None if self._process is None else max(0.0, self._deadline - monotonic())

    def cancel(self, number: int) -> None:
        """Give a job up: ``take`` will not tell of it. Unknown numbers are ignored."""
        self._waiting = deque(job for job in self._waiting if job[0] != number)
        self._done = [answer for answer in self._done if answer[0] != number]
        self._told = [words for words in self._told if words[0] != number]
        if number == self._current and not self._cancelled:
            self._cancelled = True
            self._deadline = min(self._deadline, monotonic() + SECONDS_AFTER_CANCEL)

    def close(self) -> None:
        """End the child; jobs that are left are forgotten, and new ones are not to be given."""
        self._waiting.clear()
        self._done.clear()
        self._end()
        for process in self._ended:  # who looks after the host's end must find no child
            process.wait(SECONDS_TO_DIE)
        if self._quiet is not None:
            for descriptor in (self.descriptor, *self._quiet):
                os.close(descriptor)
            self._quiet = None
        self.descriptor = -1

    # The child

    def _look(self, process: Process) -> None:
        """Read answers; notice the child's end and that its time is over."""
        answers, ended = process.receive()
        for answer in answers:
            if answer.what == frames.READY:
                self._ready = True
                self._deadline = monotonic() + IDLE_SECONDS
            elif answer.what == frames.TOLD:
                if not self._cancelled:
                    self._told.append((answer.number, answer.body))
            else:
                self._finish(_outcome(answer))
                if answer.what == frames.EXHAUSTED:
                    self._end()
                    return
        if ended and self._is_still_ending(process):
            return
        if ended:
            how = process.how_it_ended
            if self._ready:
                self._finish(JobFailed(f"The helper for {self._kind} {how}."))
            else:
                self._give_up(f"The helper for {self._kind} {how} when it was started.")
            self._end()
        elif monotonic() >= self._deadline:
            if not self._ready:
                self._give_up(f"The helper for {self._kind} did not start in {START_SECONDS:g} s.")
            self._finish(JobFailed(f"It took longer than {self._seconds:g} s."))
            self._end()

    def _is_still_ending(self, process: Process) -> bool:
        """Return whether to wait for the system's word on the end of a child that hung up.

        The pipes of a process close a moment before its exit code can be asked for.
        """
        now = monotonic()
        if self._hung_up is None:
            self._hung_up = now
            self._be_quiet()
        self._deadline = now + LOOK_SECONDS
        return process.alive and now - self._hung_up < SECONDS_FOR_THE_END

    def _go_on(self) -> None:
        """Start a child if one is needed; give it the next job if it is free."""
        self._ended = [process for process in self._ended if process.alive]
        while self._waiting and self._current is None:
            if self._process is not None and not self._process.alive:
                self._look(self._process)  # ended while it had nothing to do: no job's fault
            if self._process is None:
                self._start()
            if self._process is None or not self._ready or self._hung_up is not None:
                return
            number, job = self._waiting.popleft()
            try:
                data = job if isinstance(job, bytes) else job()
            except SidekeepError as error:
                self._done.append((number, error))
                continue
            self._current = number
            self._cancelled = False
            self._deadline = monotonic() + self._seconds
            self._process.send(number, data)

    def _start(self) -> None:
        from sidekeep.helper.process import Process

        if self._quiet is None:
            # Readable never, since its other end stays open: what to wait for without a child.
            self._quiet = os.pipe()
            self.descriptor = os.dup(self._quiet[0])
        if monotonic() < self._rest_until:
            self._refuse_all()
            return
        try:
            self._process = Process(self._table, self._kind, self._seconds, self._memory)
        except UnavailableError as error:
            self._give_up(error.message)
            return
        os.dup2(self._process.descriptor, self.descriptor, inheritable=False)
        self._ready = False
        self._hung_up = None
        self._deadline = monotonic() + START_SECONDS

    def _end(self) -> None:
        """End the child, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._ended.append(self._process)  # to be asked for until the system has told its end
            self._be_quiet()
        self._process = None
        self._current = None

    def _be_quiet(self) -> None:
        """Let ``descriptor`` lead to what never becomes readable."""
        if self._quiet is not None:
            os.dup2(self._quiet[0], self.descriptor, inheritable=False)

    # Answers

    def _finish(self, outcome: bytes | SidekeepError) -> None:
        """Answer the job that lies with the child, if there is one and somebody waits for it."""
        if self._current is not None and not self._cancelled:
            self._done.append((self._current, outcome))
        self._current = None
        self._deadline = monotonic() + IDLE_SECONDS

    def _give_up(self, problem: str) -> None:
        self._problem = UnavailableError(problem)
        self._rest_until = monotonic() + REST_SECONDS
        self._refuse_all()

    def _refuse_all(self) -> None:
        self._done += [(number, self._problem) for number, _ in self._waiting]
        self._waiting.clear()


def _outcome(answer: frames.Answer) -> bytes | SidekeepError:
    """Return the bytes of an answer, or the error that it carries."""
    if answer.what == frames.ANSWER:
        return answer.body
    import msgspec

    code, message, following = msgspec.msgpack.decode(answer.body, type=tuple[int, str, str | None])
    if answer.what == frames.EXHAUSTED:
        return JobFailed(message)
    classes = {found.code: found for found in SidekeepError.__subclasses__()}
    return classes.get(code, InternalError)(message, next=following)
