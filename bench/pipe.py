"""Measure Sidekeep in a real Chromium, beside the browser's own stores and the pipe's floor.

Run ``python bench/pipe.py [--rounds N] [--quick]``. One Chromium, one extension page, interleaved
rounds: Sidekeep as installed by install.sh and called through its stub, ``chrome.storage.local``,
IndexedDB (strict durability), C hosts on a bare port, and a bare Python host with the interpreter
and the flags of Sidekeep's launcher. Prints medians and ratios beside the wanted limits and writes
every sample to ``bench/results/``. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from pathlib import Path

import click
from playwright.async_api import Page

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parents[1] / "host")]

from bench.building import bare_host  # noqa: E402
from bench.chromium import anonymous, install, open_page, rotated, run  # noqa: E402
from bench.pipes import peak_of  # noqa: E402
from bench.reporting import Line, save, show  # noqa: E402
from sidekeep.ops.launcher import read_launcher  # noqa: E402
from tests.browser.driver import Installation, until  # noqa: E402

EIGHT = 8 << 20
CONTENDERS = ["Sidekeep", "local", "IndexedDB", "C echo", "C sync", "bare Python"]


class Lines:
    """The lines of the table, with the limits that are wanted of them."""

    def __init__(self) -> None:
        self.get = Line("small get", "ms", "C echo", 1.3, 3)
        self.set = Line("small set, synced (local: not synced)", "ms", "C sync", 1.4, 3)
        self.many_gets = Line("2,000 gets in one tick, per call", "µs", "local", 0.2, 1)
        self.many_sets = Line("2,000 sets in one tick, per call", "µs", "local", 0.2, 1)
        self.up = Line("8 MiB up", "ms", "local", 1.0, 1)
        self.down = Line("8 MiB down", "ms", "C echo", 1.15, 1)
        self.start = Line("start to first reply", "ms", "bare Python", 1.2, 1)
        self.idle = Line("RssAnon of the host, idle", "MiB", None, 16, 1)
        self.busy = Line("RssAnon of the host, peak of 8 MiB up and down", "MiB", None, 64, 1)
        self.after = Line("RssAnon of the host, idle afterwards", "MiB", None, None, 1)

    def all(self) -> list[Line]:
        """Return the lines in the order of the table."""
        return list(vars(self).values())


def register_bare(installation: Installation, folder: Path) -> None:
    """Build the bare Python host and register it in the browser's profile."""
    launch = read_launcher(Path(installation.launcher))
    assert launch is not None, f"{installation.launcher} is not a launcher of Sidekeep"
    command = bare_host(
        folder, [str(launch.interpreter), "-I", "-S", "-X", "utf8"], launch.app / "libs"
    )
    program = folder / "bare.sh"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    installation.register("org.sidekeep.bench.bare", program)


async def one_round(
    page: Page, lines: Lines, number: int, pid: int, installation: Installation
) -> None:
    """Run every work once for every contender and keep the samples."""
    stores = ["Sidekeep", "local", "IndexedDB"]
    for line, work, floor in ((lines.get, "get", "C echo"), (lines.set, "set", "C sync")):
        samples: dict[str, list[float]] = await page.evaluate(
            "([work, contenders]) => bench[work](contenders, 10)",
            [work, rotated([floor, *stores], number)],
        )
        for contender, values in samples.items():
            line.add(contender, *values)
    for line, kind in ((lines.many_gets, "get"), (lines.many_sets, "set")):
        for contender in rotated(["C echo", "Sidekeep", "local"], number):
            durations = await run(page, "many", contender, kind)
            line.add(contender, *(ms / 2 for ms in durations))  # ms per 2,000 -> µs per call
    for contender in rotated(["C echo", *stores], number):
        lines.up.add(contender, *await run(page, "up", contender, EIGHT))
    for turn in range(3):
        for contender in rotated(["C echo", *stores], number + turn):
            lines.down.add(contender, *await run(page, "down", contender, EIGHT))
    # Memory in turns of its own: sampling takes processor time that would show above.
    with peak_of(pid) as peak:
        await run(page, "up", "Sidekeep", EIGHT)
        await run(page, "down", "Sidekeep", EIGHT)
    lines.busy.add("Sidekeep", peak.mebibytes)
    lines.after.add("Sidekeep", anonymous(pid))
    for contender in rotated(["bare Python", "Sidekeep", "C echo"], number):
        lines.start.add(contender, *await run(page, "start", contender))
        await until(lambda: installation.hosts() == [pid], "a started host to end", 5)


async def measure(rounds: int, folder: Path) -> tuple[Lines, str]:
    """Install, start the browser, run the rounds; return the lines and the browser's version."""
    installation = install(folder)
    register_bare(installation, folder)
    lines = Lines()
    async with open_page(installation, "page.js") as (_, page):
        pid = await page.evaluate("bench.prepare()")
        assert isinstance(pid, int)
        lines.idle.add("Sidekeep", anonymous(pid))
        version = await page.evaluate("navigator.userAgent")
        await one_round(page, Lines(), 0, pid, installation)  # fills caches; not kept
        with click.progressbar(range(rounds), label="Rounds", file=sys.stderr) as numbers:
            for number in numbers:
                await one_round(page, lines, number, pid, installation)
    return lines, str(version)


@click.command()
@click.option("--rounds", default=15, show_default=True, help="How many interleaved rounds.")
@click.option("--quick", is_flag=True, help="Three rounds, to see that it runs.")
def main(rounds: int, quick: bool) -> None:
    """Measure Sidekeep in a real Chromium, and print medians and ratios."""
    rounds = 3 if quick else rounds
    with tempfile.TemporaryDirectory(prefix="sidekeep-bench-") as folder:
        lines, version = asyncio.run(measure(rounds, Path(folder)))
    show(f"Sidekeep in Chromium, medians of {rounds} rounds", lines.all(), CONTENDERS)
    path = save("pipe", lines.all(), rounds=rounds, browser=version)
    missed = [line.title for line in lines.all() if line.missed()]
    click.echo(f"Samples are in {os.path.relpath(path)}.")
    click.echo(f"Not reached: {', '.join(missed)}." if missed else "All limits are reached.")


if __name__ == "__main__":
    main()
