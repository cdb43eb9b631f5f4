"""Measure the search in many saved conversations, and what small calls cost meanwhile.

Run ``python bench/search.py [--sessions N] [--megabytes N] [--entries N] [--rounds N] [--quick]``.
The host runs over plain pipes; it is filled through its own calls, with English and Chinese text
whose words are as unevenly common as real ones. Queries: words that are in a few conversations, one
that is in none, and some that are in nearly all. The wanted limits are those of the product.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.reporting import Line, save, show
from tests.harness.sidekeep_host import Sandbox, SidekeepHost

QUERY_MILLISECONDS = 400
PAGE = 50
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_WEIGHTS = (12.7, 9, 8.2, 7.5, 7, 6.7, 6.3, 6.1, 6, 4.3, 4, 2.8, 2.8, 2.4, 2.4, 2.2, 2, 2, 1.9, 1.5)
_FILL_BYTES = 4 << 20  # per call


class Texts:
    """Texts of any length, the same in every run; two of five are Chinese."""

    def __init__(self) -> None:
        self._random = chance = random.Random(7)
        weights = [*_WEIGHTS, *(0.3,) * (len(_LETTERS) - len(_WEIGHTS))]
        words = [
            "".join(chance.choices(_LETTERS, weights, k=chance.randint(1, 9)))
            for _ in range(20_000)
        ]
        usual = [1 / (rank + 3) for rank in range(len(words))]
        signs = [chr(0x4E00 + number) for number in range(3_000)]
        chance.shuffle(signs)
        common = [1 / (rank + 10) for rank in range(len(signs))]
        self._english = [
            " ".join(chance.choices(words, usual, k=chance.randint(6, 20))).capitalize() + ". "
            for _ in range(4_000)
        ]
        self._chinese = [
            "".join(chance.choices(signs, common, k=chance.randint(10, 40))) + "。"
            for _ in range(4_000)
        ]
        self.common_sign = signs[0]

    def of(self, size: int) -> str:
        """Return a text of about ``size`` bytes of UTF-8."""
        sentences = self._chinese if self._random.random() < 0.4 else self._english
        found = []
        while size > 0:
            found.append(self._random.choice(sentences))
            size -= len(found[-1].encode())
        return "".join(found)


def conversations(
    texts: Texts, sessions: int, total: int, entries: int
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield ids and bodies: ``entries`` questions and answers each, ``total`` bytes in all."""
    each = total // sessions // entries
    for number in range(sessions):
        body = []
        for place in range(entries):
            is_question = place % 2 == 0
            text = texts.of(each // 5 if is_question else each * 9 // 5)
            if number % 1000 == 17 and place == entries - 1:
                text += " quasarxyz 龘龘龘"
            body.append({"role": "user" if is_question else "assistant", "content": text})
        yield f"s{number}", body


async def fill(host: SidekeepHost, texts: Texts, sessions: int, total: int, entries: int) -> None:
    """Store the conversations and their index through the plain keys."""
    items: dict[str, Any] = {}
    waiting = 0
    rows: list[dict[str, Any]] = []
    for identity, body in conversations(texts, sessions, total, entries):
        rows.append(
            {
                "createdAt": 1_700_000_000_000 + len(rows),
                "id": identity,
                "name": texts.of(40)[:60],
                "pinned": len(rows) % 500 == 0,
                "textDigest": "",
            }
        )
        items[f"session_{identity}"] = body
        waiting += sum(len(entry["content"].encode()) for entry in body)
        if waiting > _FILL_BYTES:
            await host.call("storage.set", {"area": "local", "items": items}, timeout=120)
            items, waiting = {}, 0
    items["savedSessions"] = rows
    await host.call("storage.set", {"area": "local", "items": items}, timeout=120)


async def query(host: SidekeepHost, text: str) -> tuple[float, int]:
    """Search once; return the milliseconds and how many conversations fit."""
    start = time.perf_counter()
    answer = await host.call("sessions.list", {"query": text, "limit": PAGE}, timeout=60)
    duration = time.perf_counter() - start
    for row in answer["rows"]:
        if "hit" not in row:
            raise SystemExit(f"A row for {text!r} does not say where the hit is: {row}.")
    return duration * 1000, answer["total"]


async def small_calls(host: SidekeepHost, until: asyncio.Event) -> list[float]:
    """Ask for a small value again and again; return the milliseconds of each call."""
    durations = []
    while not until.is_set():
        start = time.perf_counter()
        await host.call("storage.get", {"area": "local", "keys": "small"})
        durations.append((time.perf_counter() - start) * 1000)
        await asyncio.sleep(0.002)
    return durations


async def while_searching(host: SidekeepHost, text: str, times: int) -> list[float]:
    """Return the milliseconds of small calls while that many searches run one after the other."""
    done = asyncio.Event()
    calls = asyncio.create_task(small_calls(host, done))
    for _ in range(times):
        await query(host, text)
    done.set()
    return await calls


async def undisturbed(host: SidekeepHost, seconds: float) -> list[float]:
    """Return the milliseconds of small calls while nothing else runs."""
    done = asyncio.Event()
    calls = asyncio.create_task(small_calls(host, done))
    await asyncio.sleep(seconds)
    done.set()
    return await calls


async def measure(
    folder: Path, sessions: int, total: int, entries: int, rounds: int
) -> tuple[list[Line], dict[str, int]]:
    """Fill a host, run the queries in turns, and return the lines and the numbers of hits."""
    texts = Texts()
    queries = {
        "a word in few conversations": "QUASARXYZ",
        "a Chinese word in few": "龘龘",
        "a word in none": "there is no such sentence",
        "two letters in nearly all": "th",
        "one letter in nearly all": "e",
        "a common Chinese sign": texts.common_sign,
    }
    lines = {name: Line(name, "ms", None, QUERY_MILLISECONDS, 0) for name in queries}
    first = Line("the first query, with the start of the helper", "ms", None, None, 0)
    small = Line("small get while searches run", "ms", "undisturbed", None, 2)
    slowest = Line("the slowest of a hundred of them (p99)", "ms", "undisturbed", None, 2)
    totals: dict[str, int] = {}
    async with Sandbox(folder).open() as host:
        begun = time.perf_counter()
        await fill(host, texts, sessions, total, entries)
        await host.set({"small": {"title": "A session", "entries": 12}})
        click.echo(f"Filled in {time.perf_counter() - begun:.0f} s.")
        duration, _ = await query(host, "warm")
        first.add("Sidekeep", duration)
        for _ in range(rounds):
            for name, text in queries.items():
                duration, totals[name] = await query(host, text)
                lines[name].add("Sidekeep", duration)
            for contender, values in (
                ("undisturbed", await undisturbed(host, 1.0)),
                ("Sidekeep", await while_searching(host, queries["two letters in nearly all"], 3)),
            ):
                small.add(contender, *values)
                slowest.add(contender, sorted(values)[len(values) * 99 // 100])
    few = totals["a word in few conversations"]
    if few != len(range(17, sessions, 1000)) or totals["a word in none"]:
        raise SystemExit(f"The search found what is not there, or not what is there: {totals}.")
    return [*lines.values(), first, small, slowest], totals


@click.command()
@click.option("--sessions", default=10_000, show_default=True, help="How many conversations.")
@click.option("--megabytes", default=200, show_default=True, help="Text in all of them.")
@click.option("--entries", default=20, show_default=True, help="Entries in each.")
@click.option("--rounds", default=10, show_default=True, help="How often each query runs.")
@click.option("--quick", is_flag=True, help="A tenth of all that and two rounds: does it run?")
def main(sessions: int, megabytes: int, entries: int, rounds: int, quick: bool) -> None:
    """Measure queries over many saved conversations, and small calls meanwhile."""
    if quick:
        sessions, megabytes, rounds = sessions // 10, megabytes // 10, 2
    with tempfile.TemporaryDirectory(prefix="sidekeep-bench-") as folder:
        lines, totals = asyncio.run(
            measure(Path(folder), sessions, megabytes << 20, entries, rounds)
        )
    title = f"Search in {sessions:,} conversations with {megabytes} MB of text"
    show(title, lines, ["Sidekeep", "undisturbed"])
    path = save(
        "search",
        lines,
        rounds=rounds,
        sessions=sessions,
        megabytes=megabytes,
        entries=entries,
        hits=totals,
    )
    click.echo(f"Samples are in {path}.")


if __name__ == "__main__":
    main()
