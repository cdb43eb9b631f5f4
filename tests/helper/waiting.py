"""Waiting for a helper the way the host's main loop does, and for processes to be gone."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sidekeep.errors import SidekeepError
from sidekeep.helper.parent import Helper

ROOT = Path(__file__).resolve().parents[2]
TABLE = "tests.helper.kinds"
PATIENCE = 60.0
"""Seconds after which a test is lost; nothing here takes nearly so long."""

Make = Callable[..., Helper]
"""What the fixture ``make`` is: ``make(kind="work", *, seconds=60.0, memory=None)``."""


def readable(helper: Helper, seconds: float = 0.0) -> bool:
    """Return whether the main loop would wake within ``seconds``."""
    poller = select.poll()
    poller.register(helper.descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def step(helper: Helper) -> list[tuple[int, bytes | SidekeepError]]:
    """Wait as long as the helper wants and take what is there."""
    patience = helper.patience()
    readable(helper, PATIENCE if patience is None else min(patience, PATIENCE))
    return helper.take()


def outcomes(helper: Helper, count: int) -> dict[int, bytes | SidekeepError]:
    """Return the outcomes of the next ``count`` jobs, by number."""
    found: dict[int, bytes | SidekeepError] = {}
    end = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < end, f"only {found}"
        for number, outcome in step(helper):
            assert number not in found
            found[number] = outcome
    return found


def ask(helper: Helper, job: bytes) -> bytes | SidekeepError:
    """Submit one job and return its outcome."""
    number = helper.submit(job)
    return outcomes(helper, 1)[number]


def pid_of(helper: Helper) -> int:
    """Return the process number of the child."""
    answer = ask(helper, b"pid%")
    assert isinstance(answer, bytes)
    return int(answer)


def state(pid: int) -> str:
    """Return the letter that ``ps`` shows for a process, empty if it is gone.

    One that has ended but for some of its threads, which still hold its pipes open, is ``E``.
    """
    shown = subprocess.run(
        ["/bin/ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    letters = shown.stdout.strip()
    return "E" if letters.startswith("Z") and "l" in letters else letters[:1]


def gone_within(pid: int, seconds: float) -> bool:
    """Return whether the process ends in that time (or has ended and waits to be asked for)."""
    end = time.monotonic() + seconds
    while state(pid) not in {"", "Z"}:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def script(text: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start a Python that can import the product and the tests, as a host to be ended."""
    start = f"import sys; sys.path[:0] = {[str(ROOT / 'host'), str(ROOT)]!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + text],
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
