"""Measure the calls for conversations in a real Chromium, beside ``chrome.storage.local``.

Run ``python bench/history.py [--rounds N] [--quick]``. One Chromium, one extension page,
interleaved rounds: Sidekeep as installed by install.sh and called through its stub,
``chrome.storage.local`` with the same history under one key (an append is get, push, set), and C
hosts on a bare port that carry as many bytes. Stores with few and with many sessions have a host
each and take turns. Prints medians and ratios beside the wanted limits and writes every sample to
``bench/results/``. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from playwright.async_api import Page

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).parents[1] / "host")]

from bench.chromium import anonymous, ask, install, number, open_page, rotated, run  # noqa: E402
from bench.conversations import (  # noqa: E402
    BODY,
    QUICK,
    Sizes,
    fill_chats,
    fill_long,
    fill_sessions,
    with_pictures,
)
from bench.reporting import RESULTS, Line, Spread, save, show  # noqa: E402
from tests.browser.driver import Installation, until  # noqa: E402

CONTENDERS = ["Sidekeep", "local", "C echo", "C sync"]
HISTORY = "Sidekeep"
"""The profile of the history that is measured beside the other contenders."""
CHATS = "chats"
LONG = "long"
PAGES = 5


class HistoryLines:
    """What is measured with one history, beside ``chrome.storage.local`` and C hosts."""

    def __init__(self) -> None:
        self.append = Line("append a short entry", "ms", "local", 1 / 300)
        self.save = Line(
            "snapshot as a new session (local: get, push, set)", "ms", "local", 1 / 200
        )
        self.again = Line(
            "snapshot into the same one (local: get, push, set)", "ms", "local", 1 / 200
        )
        self.none = Line("open as text", "ms", "local", 1 / 50)
        self.thumbnail = Line("open with cached thumbnails", "ms", "local", 1 / 5)
        self.full = Line("open with all pixels", "ms", "C echo", 1.15, 1)
        self.written = Line("RssAnon of the host after append and snapshot", "MiB", digits=1)
        self.opened_none = Line("… after opening as text", "MiB", digits=1)
        self.opened_thumbnail = Line("… after opening with thumbnails", "MiB", digits=1)
        self.opened_full = Line("… after opening with all pixels", "MiB", digits=1)

    def all(self) -> list[Line]:
        """Return the lines in the order of the table."""
        return list(vars(self).values())


class StoreLines:
    """What is measured in stores with few and with many sessions."""

    def __init__(self) -> None:
        self.append = Spread("append beside so many sessions", "ms", 1.5)
        self.load = Spread("load a session beside so many, the live one saved", "ms", 1.5)
        self.memory = Spread("RssAnon of the host afterwards", "MiB", None, 1)

    def all(self) -> list[Line]:
        """Return the lines in the order of the table."""
        return list(vars(self).values())


class ManyLines:
    """What is measured of many chats with large pictures, and of a long conversation."""

    def __init__(self, sizes: Sizes) -> None:
        chats = f"{sizes.chats} chats × {sizes.chat_pictures} pictures of 1 MB"
        newest = f"{sizes.messages:,} messages: the newest {sizes.newest}"
        self.list = Line(f"{chats}: sessions.list", "ms")
        self.list_bytes = Line("… bytes of the answer", "KiB", digits=1)
        self.chat = Line("… open one as text", "ms")
        self.chat_bytes = Line("… bytes of the answer", "KiB", digits=1)
        self.chats_memory = Line("… RssAnon of the host", "MiB", digits=1)
        self.started = Line(f"{newest}, start of the host included", "ms", digits=1)
        self.cold = Line("… first call on a port just opened", "ms")
        self.warm = Line("… warm", "ms")
        self.page = Line("… paging back, per page", "ms")
        self.long_memory = Line("… RssAnon of the host", "MiB", digits=1)

    def all(self) -> list[Line]:
        """Return the lines in the order of the table."""
        return list(vars(self).values())


class Bench:
    """The page, the hosts of the stores in it, and the lines of the tables."""

    def __init__(self, page: Page, installation: Installation, sizes: Sizes) -> None:
        self.page = page
        self.installation = installation
        self.sizes = sizes
        self.pids: dict[str, int] = {}
        self.ids: dict[str, list[str]] = {}
        self.forget()

    def forget(self) -> None:
        """Begin with empty lines."""
        self.history = HistoryLines()
        self.stores = StoreLines()
        self.many = ManyLines(self.sizes)

    @staticmethod
    def store(sessions: int) -> str:
        """Return the profile of the store with so many sessions."""
        return f"sessions-{sessions}"

    async def fill(self) -> None:
        """Fill all stores and open a link to each."""
        for sessions in self.sizes.sessions:
            async with self.installation.second_process(self.store(sessions)) as host:
                self.ids[self.store(sessions)] = await fill_sessions(host, sessions)
        async with self.installation.second_process(CHATS) as host:
            self.ids[CHATS] = await fill_chats(host, self.sizes)
        async with self.installation.second_process(LONG) as host:
            await fill_long(host, self.sizes)
        for profile in (HISTORY, CHATS, LONG, *map(self.store, self.sizes.sessions)):
            self.pids[profile] = await number(self.page, "open", profile)
        await ask(self.page, "fill", HISTORY, with_pictures(self.sizes.pictures))
        await number(self.page, "thumbnails", HISTORY, {})
        await number(self.page, "thumbnails", LONG, {"offset": -self.sizes.newest * (PAGES + 1)})

    async def round(self, turn: int) -> None:
        """Run every work and keep the samples."""
        await self._write(turn)
        await self._open(turn)
        await self._many_sessions(turn)
        await self._chats()
        await self._long()

    async def _write(self, turn: int) -> None:
        lines = self.history
        for contender in rotated([HISTORY, "local", "C sync"], turn):
            samples = await run(self.page, "append", contender)
            lines.append.add(contender, *samples)
            if contender != HISTORY:  # a snapshot costs them no less: the same work
                lines.save.add(contender, *samples)
                lines.again.add(contender, *samples)
        lines.save.add(HISTORY, *await run(self.page, "saveNew", HISTORY))
        lines.again.add(HISTORY, *await run(self.page, "saveAgain", HISTORY))
        lines.written.add(HISTORY, anonymous(self.pids[HISTORY]))
        await ask(self.page, "shorten", HISTORY, 2 * self.sizes.pictures)

    async def _open(self, turn: int) -> None:
        lines = self.history
        ways = (
            ("none", lines.none, lines.opened_none),
            ("thumbnail", lines.thumbnail, lines.opened_thumbnail),
            ("full", lines.full, lines.opened_full),
        )
        for way, (pixels, line, after) in enumerate(ways):
            call = (HISTORY, "history.list", {"pixels": pixels})
            size = await number(self.page, "bytes", *call)
            # Long ones once in each turn, quick ones ten times.
            work, floor = ("call", "floor") if pixels == "full" else ("calls", "floors")
            for again in range(2):
                for contender in rotated(["C echo", HISTORY, "local"], turn + way + again):
                    if contender == HISTORY:
                        line.add(contender, *await run(self.page, work, *call))
                    elif contender == "local":
                        line.add(contender, *await run(self.page, "getLocal"))
                    else:
                        line.add(contender, *await run(self.page, floor, size))
            after.add(HISTORY, anonymous(self.pids[HISTORY]))

    async def _many_sessions(self, turn: int) -> None:
        lines = self.stores
        for again in range(2):
            for name in rotated([str(n) for n in self.sizes.sessions], turn + again):
                store, column = self.store(int(name)), f"{int(name):,} sessions"
                ids = self.ids[store]
                spread = [ids[0], ids[len(ids) // 2], ids[-1]]
                lines.append.add(column, *await run(self.page, "append", store))
                lines.load.add(column, *await run(self.page, "load", store, spread, BODY + 1))
                lines.memory.add(column, anonymous(self.pids[store]))

    async def _chats(self) -> None:
        lines = self.many
        chat = {"id": self.ids[CHATS][0], "pixels": "none"}
        for method, params, line, size in (
            ("sessions.list", {}, lines.list, lines.list_bytes),
            ("sessions.get", chat, lines.chat, lines.chat_bytes),
        ):
            line.add("Sidekeep", *await run(self.page, "calls", CHATS, method, params))
            size.add("Sidekeep", await number(self.page, "bytes", CHATS, method, params) / 1024)
        lines.chats_memory.add("Sidekeep", anonymous(self.pids[CHATS]))

    async def _long(self) -> None:
        lines = self.many
        newest = self.sizes.newest
        call = (LONG, "history.list", {"offset": -newest, "pixels": "thumbnail"})
        hosts = set(self.pids.values())
        for work, line in (("first", lines.started), ("firstAfterHello", lines.cold)):
            line.add("Sidekeep", *await run(self.page, work, *call))
            await until(lambda: set(self.installation.hosts()) <= hosts, "a host to end", 5)
        lines.warm.add("Sidekeep", *await run(self.page, "calls", *call))
        lines.page.add("Sidekeep", *await run(self.page, "pageBack", LONG, newest, PAGES))
        lines.long_memory.add("Sidekeep", anonymous(self.pids[LONG]))

    def tables(self) -> list[tuple[str, Sequence[Line], list[str]]]:
        """Return the tables: title, lines, columns."""
        pictures = f"a history of {self.sizes.pictures} pictures of 280 KB"
        columns = [f"{sessions:,} sessions" for sessions in self.sizes.sessions]
        return [
            (f"Conversations in Chromium, {pictures}", self.history.all(), CONTENDERS),
            ("Stores with few and many sessions", self.stores.all(), columns),
            ("Many chats, long conversations", self.many.all(), ["Sidekeep"]),
        ]


async def measure(rounds: int, sizes: Sizes, folder: Path) -> tuple[Bench, str]:
    """Install, start the browser, run the rounds; return the figures and the browser's version."""
    installation = install(folder)
    async with open_page(installation, "history.js") as (_, page):
        bench = Bench(page, installation, sizes)
        click.echo("Filling the stores …", err=True)
        await bench.fill()
        version = await page.evaluate("navigator.userAgent")
        await bench.round(0)  # fills caches; not kept
        bench.forget()
        with click.progressbar(range(rounds), label="Rounds", file=sys.stderr) as turns:
            for turn in turns:
                await bench.round(turn)
    return bench, str(version)


@click.command()
@click.option("--rounds", default=15, show_default=True, help="How many interleaved rounds.")
@click.option("--quick", is_flag=True, help="One round over little data, to see that it runs.")
@click.option(
    "--results",
    default=RESULTS,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the samples.",
)
def main(rounds: int, quick: bool, results: Path) -> None:
    """Measure the calls for conversations, and print medians and ratios."""
    rounds, sizes = (1, QUICK) if quick else (rounds, Sizes())
    with tempfile.TemporaryDirectory(prefix="sidekeep-bench-") as folder:
        bench, version = asyncio.run(measure(rounds, sizes, Path(folder)))
    lines: list[Line] = []
    for title, of_table, columns in bench.tables():
        show(f"{title}, medians of {rounds} rounds", list(of_table), columns)
        lines += of_table
    path = save("history", lines, folder=results, rounds=rounds, browser=version)
    missed = [line.title for line in lines if line.missed()]
    click.echo(f"Samples are in {os.path.relpath(path)}.")
    if quick:
        click.echo("With so little data the ratios mean nothing.")
    click.echo(f"Not reached: {', '.join(missed)}." if missed else "All limits are reached.")


if __name__ == "__main__":
    main()
