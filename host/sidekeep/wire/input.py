"""Standard input: who reads it, and who notices its end.

Rules of this module:

* The main thread reads. A thread that reads and hands over costs 60 µs per message (measured: a
  round trip of 71 µs instead of 9), which is more than all the rest of a small call.
* A thread of its own watches for the hang-up, without reading, so that the end of input ends the
  process whatever the main thread does.
* While the main thread is held up in writing, a helper thread reads in its place, up to a limit: a
  caller that writes everything before it reads anything does not lock itself and the host up.
* Exactly one thread reads at any time: the one that holds ``_role``.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from time import monotonic, sleep

from sidekeep.wire.frames import FrameReader
from sidekeep.wire.memory import Tidier

READ_BYTES = 65_536
"""What a pipe holds unless somebody asked for more. Asking for four times as much makes the C
library map memory afresh for every read, which costs 15 µs."""
READ_BYTES_INSIDE = 1_048_576
LARGEST_BACKLOG = 134_217_728
"""Bytes of frames that wait for the main thread; beyond it the helper stops reading."""
SECONDS_TO_FINISH = 1.25
"""After the end of input; the protocol promises 1.5 s, the browsers kill after 2 s."""

_HELD_UP = 0.05
_SLICE_MS = 20
_IDLE_ROUNDS = 20


class Input:
    """The frames of one input descriptor.

    ``frames``: bodies that are complete and wait. ``ended``: nothing more will come. ``reader``
    knows whether the framing was lost. ``exit_code`` is what the process ends with if the main
    thread does not finish in time, after the ``last_words`` were called.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.reader = FrameReader()
        self.frames: deque[bytes] = deque()
        self.ended = False
        self.tidier = Tidier()
        self.exit_code = 0
        self.last_words: list[Callable[[], None]] = []
        self._role = allocate_lock()
        self._role.acquire()
        self._finished = allocate_lock()
        self._finished.acquire()
        self._ending = allocate_lock()
        self._helping = allocate_lock()
        self._held_up_since = 0.0
        self._poll: Callable[[float], list[tuple[int, int]]] | None = None
        os.set_blocking(descriptor, True)
        start_new_thread(self._watch, ())

    def fill(self) -> None:
        """Wait for bytes and add the frames that they complete to ``frames``."""
        try:
            missing = self.reader.missing
            data = os.read(
                self._descriptor,
                READ_BYTES if missing <= READ_BYTES else min(missing, READ_BYTES_INSIDE),
            )
        except BlockingIOError:  # somebody who shares the descriptor changed its mode
            self.wait(_HELD_UP)
            return
        except OSError:  # what cannot be read any more has ended
            data = b""
        if data:
            self.frames.extend(self.reader.feed(data))
            self.tidier.passed(len(data))
        if not data or self.reader.lost is not None:
            self.ended = True

    def wait(self, seconds: float) -> bool:
        """Return whether something can be read (or the input has ended) within ``seconds``."""
        if self._poll is None:
            from select import POLLIN, poll

            poller = poll()
            poller.register(self._descriptor, POLLIN)
            self._poll = poller.poll
        return bool(self._poll(seconds * 1000))

    def wait_beside(self, others: list[int], seconds: float | None) -> bool:
        """Wait for input, for one of the other descriptors or for ``seconds`` (``None``: for ever).

        Returns whether there is input (or its end).
        """
        from select import POLLIN, poll

        poller = poll()
        for descriptor in (self._descriptor, *others):
            poller.register(descriptor, POLLIN)
        ready = poller.poll(None if seconds is None else seconds * 1000)
        return any(descriptor == self._descriptor for descriptor, _ in ready)

    def finished(self) -> None:
        """Tell that the main thread is done, so that nobody has to end the process for it."""
        if self._finished.locked():
            self._finished.release()

    # While the main thread writes

    def lend(self) -> None:
        """Let the helper read from now on if this lasts; end with ``take_back``."""
        self._held_up_since = monotonic()
        self._role.release()
        if self._helping.acquire(blocking=False):
            start_new_thread(self._help, ())

    def take_back(self) -> None:
        """Read in the main thread again."""
        self._held_up_since = 0.0
        self._role.acquire()

    def _help(self) -> None:
        while True:
            idle = 0
            while idle < _IDLE_ROUNDS:
                sleep(_HELD_UP)
                since = self._held_up_since
                if not since:
                    idle += 1
                    continue
                idle = 0
                if monotonic() - since > _HELD_UP and self._role.acquire(blocking=False):
                    try:
                        self._read_in_its_place()
                    finally:
                        self._role.release()
            self._helping.release()
            # A write that began just before saw a helper that was on its way out.
            if not self._held_up_since or not self._helping.acquire(blocking=False):
                return

    def _read_in_its_place(self) -> None:
        backlog = sum(map(len, self.frames))
        while self._held_up_since and not self.ended and backlog < LARGEST_BACKLOG:
            if self.wait(_SLICE_MS / 1000):
                count = len(self.frames)
                self.fill()
                backlog += sum(len(self.frames[at]) for at in range(count, len(self.frames)))

    # The end of input

    def _watch(self) -> None:
        """Wait for the hang-up. Nothing is read here: data still in the pipe is not touched."""
        import select

        hang_up = select.POLLHUP | select.POLLERR | select.POLLNVAL
        poller = select.poll()
        poller.register(self._descriptor, getattr(select, "POLLRDHUP", 0) | select.POLLHUP)
        hang_up |= getattr(select, "POLLRDHUP", 0)
        while not any(events & hang_up for _, events in poller.poll()):
            sleep(_HELD_UP)  # some systems wake for data too
        self.end_in_time()

    def end_in_time_beside(self) -> None:
        """Do the same as ``end_in_time`` in a thread of its own, if no thread does it yet."""
        if not self._ending.locked():
            start_new_thread(self.end_in_time, ())

    def end_in_time(self) -> None:
        """Give the main thread its time to finish, then end the process."""
        if not self._ending.acquire(blocking=False):
            return
        if self._finished.acquire(timeout=SECONDS_TO_FINISH):
            return
        try:
            for callback in self.last_words:
                callback()
        finally:
            os._exit(self.exit_code)
