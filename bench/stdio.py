"""Measure the host over plain pipes, beside C hosts and a bare Python one: no browser needed.

Run ``python bench/stdio.py [--rounds N] [--quick]``. One run, interleaved rounds, medians. The
limits shown are those the whole product is held to in the browser (``bench/pipe.py``), where the
pipe itself costs more; over plain pipes they are harder to reach and show where time goes.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.building import bare_host, compile_host
from bench.pipes import Pipe, peak_of
from bench.reporting import Line, save, show
from tests.harness.measure import memory
from tests.harness.parts import split_message, to_json
from tests.harness.sidekeep_host import INTERPRETER, ORIGIN, Sandbox

EIGHT = 8 << 20
WINDOW = 16
HELLO = to_json(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "host.hello",
        "params": {
            "protocol": 1,
            "profile": "bench",
            "client": "bench",
            "parts": {"window": WINDOW},
        },
    }
)
SMALL = {"title": "A session", "entries": 12, "pinned": False, "text": "word " * 80}


def request(number: int, method: str, op: int | None = None, **params: object) -> dict[str, object]:
    """Return a request of area ``local``."""
    message: dict[str, object] = {"jsonrpc": "2.0", "id": number, "method": method}
    if op is not None:
        message["op"] = op
    return message | {"params": {"area": "local"} | params}


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Return the durations of ``times`` runs of ``work``, in seconds."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        durations.append(time.perf_counter() - start)
    return durations


def milliseconds(seconds: list[float]) -> list[float]:
    """Return the same durations in milliseconds."""
    return [duration * 1000 for duration in seconds]


def acknowledged_parts(body: memoryview) -> int:
    """Return how many parts of the message an acknowledgement covers."""
    acks = json.loads(bytes(body))
    index: int = (acks[-1] if isinstance(acks, list) else acks)["ack"]["i"]
    return index + 1


def data_url() -> str:
    """Return a picture of 8 MiB as pages hold it, one that was never stored before."""
    unit = base64.b64encode(os.urandom(48 << 10)).decode()
    head = "data:image/png;base64,"
    return head + (unit * (EIGHT // len(unit) + 1))[: EIGHT - len(head)]


class Sidekeep:
    """Sidekeep's host on pipes, with the works that are measured."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.command = [*sandbox.command, ORIGIN]
        self.pipe = Pipe(self.command)
        self.check(self.pipe.ask(HELLO))
        self._op = 0
        self._message = 0
        self.set_one()
        many = {f"k{number}": number for number in range(2000)}
        self.check(self.pipe.ask(to_json(request(1, "storage.set", items=many))))
        gets = [request(number, "storage.get", keys=f"k{number}") for number in range(2000)]
        self.gets = to_json(gets)
        self._get = to_json(request(1, "storage.get", keys="small"))
        self._get_big = to_json(request(1, "storage.get", keys="big"))

    @staticmethod
    def check(reply: bytes) -> None:
        """Stop when a reply is an error."""
        if b'"error"' in reply:
            raise SystemExit(f"Sidekeep answered {reply[:500]!r}.")

    def get_one(self) -> None:
        """One small get."""
        self.check(self.pipe.ask(self._get))

    def set_one(self) -> None:
        """One small set of a new value, numbered as the stub numbers it."""
        self._op += 1
        items = {"small": {**SMALL, "entries": self._op}}
        message = request(1, "storage.set", self._op, items=items)
        self.check(self.pipe.ask(to_json(message)))

    def many(self, kind: str) -> float:
        """Send 2,000 calls in one frame; return the seconds, encoding not counted.

        Sets change every value, and are numbered as the stub numbers them.
        """
        batch = self.gets if kind == "get" else self._new_sets()
        start = time.perf_counter()
        self.pipe.send(batch)
        answered = 0
        while answered < 2000:
            reply = bytes(self.pipe.receive())
            self.check(reply)
            answered += reply.count(b'"id":')
        return time.perf_counter() - start

    def _new_sets(self) -> bytes:
        messages = []
        for number in range(2000):
            self._op += 1
            items = {f"k{number}": self._op}
            messages.append(request(number, "storage.set", self._op, items=items))
        return to_json(messages)

    def up(self) -> float:
        """Send a new data URL of 8 MiB in parts; return the seconds, encoding not counted."""
        self._message += 1
        self._op += 1
        message = request(1, "storage.set", self._op, items={"big": data_url()})
        bodies = split_message(message, self._message)
        start = time.perf_counter()
        acknowledged = 0
        for sent, body in enumerate(bodies):
            while sent - acknowledged >= WINDOW:
                acknowledged = acknowledged_parts(self.pipe.receive())
            self.pipe.send(body)
        while True:
            reply = bytes(self.pipe.receive())
            if b'"ack"' not in reply:
                self.check(reply)
                return time.perf_counter() - start

    def down(self) -> None:
        """Receive 8 MiB in parts, acknowledging each."""
        self.pipe.send(self._get_big)
        if self.pipe.receive_acknowledging() < EIGHT:
            raise SystemExit("Sidekeep did not send 8 MiB.")


def measure(rounds: int, folder: Path) -> list[Line]:
    """Run ``rounds`` interleaved rounds and return the lines of the table."""
    sandbox = Sandbox(folder / "sidekeep")
    echo_program = str(compile_host("echo", folder))
    echo = Pipe([echo_program])
    sync = Pipe([str(compile_host("sync", folder))])
    bare = bare_host(
        folder, [INTERPRETER, *sandbox.interpreter_flags], sandbox.folder / "libraries"
    )
    keep = Sidekeep(sandbox)

    get = Line("small get", "ms", "C echo", 1.3, 3)
    put = Line("small set, synced", "ms", "C sync", 1.4, 3)
    gets = Line("2,000 gets in one frame, per call", "µs", "C echo")
    sets = Line("2,000 sets in one frame, per call", "µs", "C echo")
    up = Line("8 MiB up, stored", "ms", "C echo", None, 1)
    down = Line("8 MiB down", "ms", "C echo", 1.15, 1)
    start = Line("start to first reply", "ms", "bare Python", 1.2, 1)
    idle = Line("RssAnon idle after hello", "MiB", None, 16, 1)
    busy = Line("RssAnon peak, 8 MiB up and down", "MiB", None, 64, 1)
    after = Line("RssAnon idle afterwards", "MiB", None, None, 1)

    piece = b"x" * (EIGHT // 32)
    uploads = [b'"u' + piece + b'"'] * 31 + [b'"U' + piece + b'"']

    def echo_up() -> None:
        for body in uploads:
            echo.send(body)
        echo.receive()

    def echo_down() -> None:
        echo.send(b'"d%d"' % EIGHT)
        while len(echo.receive()) > 1:
            pass

    def first_reply(command: list[str], body: bytes) -> float:
        begun = time.perf_counter()
        pipe = Pipe(command)
        pipe.ask(body)
        duration = time.perf_counter() - begun
        if command == keep.command:
            idle.add("Sidekeep", memory(pipe.pid).anonymous / (1 << 20))
        pipe.close()
        return duration

    small_frame = b'"e' + b"x" * 90 + b'"'
    many_frame = keep.gets
    for number in range(rounds):
        warm = number == 0  # the first round only fills caches
        figures: list[tuple[Line, str, list[float]]] = []
        for _ in range(8):  # in short turns, so that what else the machine does hits all alike
            figures += [
                (get, "C echo", milliseconds(timed(lambda: echo.ask(small_frame), 10))),
                (get, "Sidekeep", milliseconds(timed(keep.get_one, 10))),
                (put, "C sync", milliseconds(timed(lambda: sync.ask(small_frame), 8))),
                (put, "Sidekeep", milliseconds(timed(keep.set_one, 8))),
            ]
        figures += [
            (gets, "C echo", [t * 500 for t in timed(lambda: echo.ask(many_frame), 2)]),
            (gets, "Sidekeep", [keep.many("get") * 500 for _ in range(2)]),
            (sets, "C echo", [t * 500 for t in timed(lambda: echo.ask(many_frame), 2)]),
            (sets, "Sidekeep", [keep.many("set") * 500 for _ in range(2)]),
        ]
        with peak_of(keep.pipe.pid) as peak:
            keep.up()
            keep.down()
        # Not while the memory is sampled, which takes processor time of its own.
        figures += [
            (up, "C echo", milliseconds(timed(echo_up, 2))),
            (up, "Sidekeep", milliseconds([keep.up() for _ in range(2)])),
            (down, "C echo", milliseconds(timed(echo_down, 2))),
            (down, "Sidekeep", milliseconds(timed(keep.down, 2))),
            (start, "C echo", milliseconds([first_reply([echo_program], small_frame)])),
            (start, "bare Python", milliseconds([first_reply(bare, small_frame)])),
            (start, "Sidekeep", milliseconds([first_reply(keep.command, HELLO)])),
            (busy, "Sidekeep", [peak.mebibytes]),
            (after, "Sidekeep", [memory(keep.pipe.pid).anonymous / (1 << 20)]),
        ]
        if not warm:
            for line, contender, values in figures:
                line.add(contender, *values)
    for pipe in (echo, sync, keep.pipe):
        pipe.close()
    return [get, put, gets, sets, up, down, start, idle, busy, after]


@click.command()
@click.option("--rounds", default=15, show_default=True, help="How many interleaved rounds.")
@click.option("--quick", is_flag=True, help="Three rounds, to see that it runs.")
def main(rounds: int, quick: bool) -> None:
    """Measure Sidekeep's host over plain pipes, and print medians and ratios."""
    with tempfile.TemporaryDirectory(prefix="sidekeep-bench-") as folder:
        lines = measure(3 if quick else max(rounds, 2), Path(folder))
    show("Sidekeep over plain pipes", lines, ["Sidekeep", "C echo", "C sync", "bare Python"])
    path = save("stdio", lines, rounds=rounds)
    slow = [line.title for line in lines if line.missed()]
    click.echo(f"Samples are in {path}." + (f" Not reached: {', '.join(slow)}." if slow else ""))


if __name__ == "__main__":
    main()
