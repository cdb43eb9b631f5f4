"""The main of a helper process: reads jobs, does them one by one, answers.

Rules of this module:

* Descriptor 1 carries frames only, and only this module has it: a stray ``print`` goes to standard
  error.
* The process dies with its host. Its input hangs up then, which a thread of its own waits for; and
  where the system can do it (Linux), the system kills it, since the thread gets its turn only when
  no C code holds the interpreter's lock.
* It is the last in the queue for the processor, and its memory and time have borders that do not
  depend on the parent, where the system has them.
"""

from __future__ import annotations

import importlib
import math
import os
import signal
import sys
import traceback
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import NoReturn

import msgspec

from sidekeep.__main__ import protect_standard_streams
from sidekeep.errors import InternalError, SidekeepError
from sidekeep.helper import frames
from sidekeep.helper.frames import Answer

READ_BYTES = 1_048_576
NICENESS = 10
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def main(arguments: list[str]) -> NoReturn:
    """Serve one parent; ``arguments``: the table's module, the kind, seconds, bytes or ``-``."""
    table, kind, seconds, memory = arguments
    # LMDB opens its file without "close on exec", and the host's own parent may have left some too.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    source, target = protect_standard_streams()
    die_with_parent(source)
    for name in ("SIGINT", "SIGHUP"):  # Ctrl-C in a terminal is meant for the browser
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    os.umask(0o077)
    os.chdir("/")
    be_modest(None if memory == "-" else int(memory))
    work = importlib.import_module(importlib.import_module(table).KINDS[kind])
    _write(target, Answer(0, frames.READY, b""))
    while (job := _read_job(source)) is not None:
        allow_processor_seconds(float(seconds))
        answer = do(_running(work, job[0], target), *job)
        _write(target, answer)
        if answer.what == frames.EXHAUSTED:
            break
        del job, answer  # not kept until the next one has been read
    os._exit(0)


def _running(work: ModuleType, number: int, target: int) -> Callable[[bytes], bytes]:
    """Return what does the job of that number; what it tells leaves at once."""
    telling = getattr(work, "run_telling", None)
    if telling is None:
        run: Callable[[bytes], bytes] = work.run
        return run
    return partial(telling, tell=lambda words: _write(target, Answer(number, frames.TOLD, words)))


def do(run: Callable[[bytes], bytes], number: int, data: bytes) -> Answer:
    """Do one job and return its answer, whatever happens."""
    try:
        return Answer(number, frames.ANSWER, run(data))
    except MemoryError:
        error: SidekeepError = InternalError("It needs more memory than it may have.")
        what = frames.EXHAUSTED
    except SidekeepError as refusal:
        error, what = refusal, frames.REFUSED
    except Exception as fault:  # noqa: BLE001 - the border of a job: told, answered, and on
        traceback.print_exception(fault, file=sys.stderr)
        error = InternalError(f"The helper failed: {type(fault).__name__}.")
        what = frames.REFUSED
    body = msgspec.msgpack.encode((error.code, error.message, error.next))
    return Answer(number, what, body)


def be_modest(memory: int | None) -> None:
    """Step back behind everybody else and set the borders, where the system has them."""
    os.nice(NICENESS)
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with suppress(ValueError, OSError):  # macOS has the name and not the limit
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def allow_processor_seconds(seconds: float) -> None:
    """Let the system kill the process after so much more processor time, and a second for luck.

    The parent's clock comes first; this border stands also when the parent is stopped.
    """
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    border = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if most == resource.RLIM_INFINITY or border < most:
        resource.setrlimit(resource.RLIMIT_CPU, (border, most))


def die_with_parent(source: int) -> None:
    """See to it that the process ends when the other end of ``source`` is gone."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):  # the thread remains
            import ctypes

            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    start_new_thread(_wait_for_hang_up, (source,))


def _wait_for_hang_up(source: int) -> None:
    import select
    from time import sleep

    hang_up = select.POLLHUP | select.POLLERR | select.POLLNVAL
    poller = select.poll()
    poller.register(source, select.POLLHUP)
    while not any(events & hang_up for _, events in poller.poll()):
        sleep(0.05)  # some systems wake for data too
    os._exit(0)


def _read_job(source: int) -> tuple[int, bytes] | None:
    """Return the next job's number and bytes, or ``None`` at the end."""
    header = _read(source, frames.JOB_HEADER)
    if header is None:
        return None
    number, length = frames.read_job_header(header)
    data = _read(source, length)
    return None if data is None else (number, data)


def _read(source: int, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        piece = os.read(source, min(length - len(data), READ_BYTES))
        if not piece:
            return None
        data += piece
    return bytes(data)


def _write(target: int, answer: Answer) -> None:
    view = memoryview(frames.answer_frame(answer))
    while view:
        view = view[os.write(target, view) :]
