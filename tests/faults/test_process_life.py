"""Hosts come and go with their ports: nothing acknowledged is lost, no process stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lmdb
import pytest

from tests.harness import HostGoneError
from tests.harness.sidekeep_host import ORIGIN, Sandbox

# Stands for a browser that is killed: it starts a host, talks to it, tells the host's id, waits.
BROWSER = """
import json, struct, subprocess, sys
host = subprocess.Popen(json.loads(sys.argv[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def call(number, method, params):
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    host.stdin.write(struct.pack("=I", len(body)) + body)
    host.stdin.flush()
    (length,) = struct.unpack("=I", host.stdout.read(4))
    return json.loads(host.stdout.read(length))["result"]
call(1, "host.hello", {"protocol": 1, "profile": "profile"})
call(2, "storage.set", {"area": "local", "items": {"cycle": int(sys.argv[2])}})
print(host.pid, flush=True)
sys.stdin.read()
"""


def is_running(pid: int) -> bool:
    """Whether a process of that id exists and has not ended (an unreaped one has)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


async def wait_gone(pid: int, seconds: float) -> None:
    """Wait until the process has ended; fails after ``seconds``."""
    deadline = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs after {seconds} s"
        await asyncio.sleep(0.02)


def readers_of(store: Path) -> tuple[int, int]:
    """Return how many reader slots are in use, and how many of them belong to dead processes."""
    with lmdb.open(str(store), subdir=False, max_dbs=16, create=False, readonly=True) as env:
        dead = env.reader_check()
        return env.info()["num_readers"], dead


@pytest.mark.parametrize("cycles", [9, pytest.param(50, marks=pytest.mark.long)])
async def test_no_host_stays_behind_after_connections_end_in_any_way(
    sandbox: Sandbox, cycles: int
) -> None:
    for cycle in range(cycles):
        if cycle % 3 == 2:
            command = json.dumps([*sandbox.command, ORIGIN])
            browser = subprocess.Popen(
                [sys.executable, "-c", BROWSER, command, str(cycle)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert browser.stdin is not None
            assert browser.stdout is not None
            with browser.stdin, browser.stdout:
                pid = int(await asyncio.to_thread(browser.stdout.readline))
                assert is_running(pid)
                browser.kill()
                browser.wait()
        else:
            host = await sandbox.host().__aenter__()
            await host.hello()
            await host.set({"cycle": cycle})
            pid = host.pid
            if cycle % 3 == 0:
                await host.disconnect()
            await host.close()
        await wait_gone(pid, 1.5)
    async with sandbox.open() as host:
        assert await host.get() == {"cycle": cycles - 1}
        # Its own reader, and the slot that the library keeps of the one before.
        assert (await host.status())["readers"] <= 2
    _, dead = readers_of(sandbox.store_file())
    assert dead == 0


async def test_launcher_leaves_no_shell_between_browser_and_host(sandbox: Sandbox) -> None:
    async with sandbox.open() as host:
        assert host.greeting["host"]["pid"] == host.pid


@pytest.mark.parametrize("rounds", [25, pytest.param(200, marks=pytest.mark.long)])
async def test_every_acknowledged_write_survives_a_kill(sandbox: Sandbox, rounds: int) -> None:
    expected: dict[str, object] = {}
    for number in range(rounds):
        host = await sandbox.host().__aenter__()
        await host.hello()
        assert await host.get() == expected
        change = {f"k{number}": number, "last": "x" * (number * 1000)}
        await host.set(change)
        host.kill()
        expected |= change
        await host.wait()
        await host.close()
    async with sandbox.open() as host:
        assert await host.get() == expected
        assert (await host.status())["health"] == "good"


async def test_kill_in_the_middle_of_a_write_leaves_all_or_nothing(sandbox: Sandbox) -> None:
    state = 0
    for number in range(1, 16):
        host = await sandbox.host().__aenter__()
        await host.hello()
        write = asyncio.create_task(
            host.set({f"part{n}": f"{number}:" + "x" * 400_000 for n in range(10)})
        )
        await asyncio.sleep(0.004 * number)
        host.kill()
        with contextlib.suppress(HostGoneError):
            await write
        acknowledged = not write.cancelled() and write.exception() is None
        await host.wait()
        await host.close()
        async with sandbox.open() as again:
            found = {value.split(":")[0] for value in (await again.get()).values()}
            assert len(found) <= 1, "parts of two writes are mixed"
            now = int(found.pop()) if found else 0
            assert now in ({number} if acknowledged else {state, number})
            state = now
            assert (await again.status())["health"] == "good"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_signal_of_a_closing_browser_or_terminal_loses_nothing(
    sandbox: Sandbox, number: signal.Signals
) -> None:
    host = await sandbox.host().__aenter__()
    await host.hello()
    await host.set({"a": 1})
    host.kill(number)
    await host.close()
    assert "Traceback" not in host.stderr
    async with sandbox.open() as again:
        assert await again.get() == {"a": 1}


async def test_closed_standard_error_does_not_stop_the_host(sandbox: Sandbox) -> None:
    closed = ["/bin/sh", "-c", 'exec 2>&-; exec "$@"', "sh", *sandbox.command]
    host = sandbox.host()
    host.command = [*closed, ORIGIN]
    async with host:
        await host.hello()
        await host.set({"a": 1})
        await host.exchange(b"{")
        assert await host.get() == {"a": 1}


async def test_odd_environment_does_not_matter(sandbox: Sandbox) -> None:
    environment = {
        "PATH": "",
        "LANG": "xx_XX.nonsense",
        "LC_ALL": "C",
        "PYTHONPATH": "/nonexistent",
        "PYTHONHOME": "/nonexistent",
        "PYTHONSTARTUP": "/nonexistent",
        "PYTHONIOENCODING": "latin-1",
        "TMPDIR": "/nonexistent",
    }
    async with sandbox.host(environment=environment) as host:
        await host.hello()
        await host.set({"é": "中"})
        assert await host.get() == {"é": "中"}
    assert os.environ.get("PYTHONHOME") is None
