"""Memory and processor time of a process, from Linux's /proc.

``RssAnon`` is the figure to judge a host by: pages of its own. ``RssFile`` counts pages of mapped
files, which for a memory-mapped store are the system's cache and cost nobody anything.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_FIELD = re.compile(r"^(VmHWM|VmRSS|RssAnon|RssFile|VmSize):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Memory:
    """Sizes in bytes: ``anonymous`` is RssAnon, ``file`` RssFile, ``peak`` that of ``resident``."""

    anonymous: int
    file: int
    resident: int
    peak: int
    virtual: int


@dataclass
class Peak:
    """The highest RssAnon that was sampled, in bytes, and how often it was looked at."""

    anonymous: int = 0
    samples: int = 0


def memory(pid: int) -> Memory:
    """Return the present memory of a running process. ``FileNotFoundError`` if there is none."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except ProcessLookupError as error:  # it ended between the opening and the reading
        raise FileNotFoundError(f"process {pid} has ended") from error
    fields = {name: int(size) * 1024 for name, size in _FIELD.findall(text)}
    if "RssAnon" not in fields:
        # A process that has ended but was not waited for has no memory lines.
        raise FileNotFoundError(f"process {pid} has no memory any more")
    return Memory(
        fields["RssAnon"], fields["RssFile"], fields["VmRSS"], fields["VmHWM"], fields["VmSize"]
    )


def cpu_seconds(pid: int) -> float:
    """Return the processor time, user and system, that a running process has used so far."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def session_members(session: int) -> list[int]:
    """Return the ids of all live processes whose session is ``session``."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = text.rpartition(")")[2].split()
        if fields[0] != "Z" and int(fields[3]) == session:
            members.append(int(entry.name))
    return members


@asynccontextmanager
async def sampled_peak(pid: int, interval: float = 0.005) -> AsyncIterator[Peak]:
    """Sample RssAnon of ``pid`` every ``interval`` seconds while the block runs.

    The kernel keeps a peak of the whole resident size only, in which the mapped file counts; the
    peak of anonymous memory has to be sampled, so a shorter rise than ``interval`` may be missed.
    """
    peak = Peak()

    async def sample() -> None:
        while True:
            try:
                peak.anonymous = max(peak.anonymous, memory(pid).anonymous)
            except FileNotFoundError:
                return
            peak.samples += 1
            await asyncio.sleep(interval)

    task = asyncio.create_task(sample())
    try:
        yield peak
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
