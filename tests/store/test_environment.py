"""Opening, growing, sharing and losing the file. Crashes happen in child processes."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import lmdb
import pytest

from sidekeep.errors import BusyError, DamagedError, QuotaError, UnavailableError
from sidekeep.store import verify
from sidekeep.store.damage import problem_of
from sidekeep.store.environment import Store
from tests.store import helpers

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import os, sys
from sidekeep.store.environment import Store
from tests.store import helpers
store = Store(sys.argv[1], extension="e", profile="p")
"""


def child(code: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a Python that runs ``code`` with an open store of ``folder``."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(folder), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'host'}:{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def line(process: subprocess.Popen[bytes]) -> str:
    """Return the next line that the child prints."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and close its pipes."""
    process.kill()
    process.communicate()


def opened(folder: Path, map_size: int | None = None, max_size: int | None = None) -> Store:
    return Store(str(folder), extension="e", profile="p", map_size=map_size, max_size=max_size)


def test_everything_made_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = opened(tmp_path / "data" / "e" / "p")
    finally:
        os.umask(before)
    helpers.put(store, "k", b"1")
    for path in (tmp_path / "data").rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    store.close()


@pytest.mark.parametrize("length", [0, 1, 100, 4096, 8191])
def test_a_short_file_is_refused_and_left_as_it_is(tmp_path: Path, length: int) -> None:
    store = opened(tmp_path / "s")
    helpers.put(store, "k", b"1")
    store.close()
    data = tmp_path / "s" / "store.mdb"
    os.truncate(data, length)
    content = data.read_bytes()
    with pytest.raises(DamagedError):
        opened(tmp_path / "s")
    assert data.read_bytes() == content


def test_a_file_cut_in_its_tail_is_refused_before_it_is_mapped(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    helpers.put(store, "k", b'"' + b"QUJD" * 200_000 + b'"')
    store.close()
    data = tmp_path / "s" / "store.mdb"
    os.truncate(data, data.stat().st_size // 2 // 4096 * 4096)
    with pytest.raises(DamagedError, match="cut short"):
        opened(tmp_path / "s")


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"x" * 9000, b"\0" * 20_000, b"{}"])
def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "store.mdb").write_bytes(content)
    with pytest.raises(DamagedError):
        opened(folder)
    assert (folder / "store.mdb").read_bytes() == content


def test_an_lmdb_file_of_another_program_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    environment = lmdb.open(str(folder / "store.mdb"), subdir=False)
    with environment.begin(write=True) as txn:
        txn.put(b"theirs", b"1")
    environment.close()
    content = (folder / "store.mdb").read_bytes()
    with pytest.raises(DamagedError, match="no store of Sidekeep"):
        opened(folder)
    assert (folder / "store.mdb").read_bytes() == content


def test_a_lost_data_file_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    opened(tmp_path / "s").close()
    (tmp_path / "s" / "store.mdb").unlink()
    with pytest.raises(DamagedError, match="is gone"):
        opened(tmp_path / "s")
    assert not (tmp_path / "s" / "store.mdb").exists()


def test_a_healthy_file_of_any_length_is_not_called_damaged(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    for number in range(60):
        helpers.put(store, f"k{number}", b'"' + b"x" * (number * 997) + b'"')
        if number % 3 == 0:
            helpers.remove(store, f"k{number // 2}")
        assert problem_of(store.path) is None
    store.close()


def test_a_newer_format_is_refused_with_the_way_out(tmp_path: Path) -> None:
    import msgspec

    store = opened(tmp_path / "s")
    store.about.format = 99
    newer = msgspec.json.encode(store.about)
    store.write(lambda transaction: transaction.put(b"m", b"store", newer))
    store.close()
    with pytest.raises(UnavailableError) as caught:
        opened(tmp_path / "s")
    assert "newer version" in str(caught.value.next)


def test_a_small_map_grows_until_everything_fits(tmp_path: Path) -> None:
    store = opened(tmp_path / "s", map_size=1 << 20)
    closed: list[int] = []
    store.before_growth.append(lambda: closed.append(1))
    texts = {f"k{n}": b'"' + os.urandom(300_000).hex().encode() + b'"' for n in range(10)}
    for key, text in texts.items():
        helpers.put(store, key, text)
    assert closed
    assert helpers.everything(store) == texts
    store.close()


def test_beyond_the_configured_size_the_call_fails_and_the_rest_stays(tmp_path: Path) -> None:
    store = opened(tmp_path / "s", map_size=1 << 20, max_size=8 << 20)
    helpers.put(store, "kept", b"1")
    with pytest.raises(QuotaError) as caught:
        for number in range(100):
            text = base64.b64encode(os.urandom(400_000))
            helpers.put(store, f"k{number}", b'"' + text + b'"')
    assert caught.value.data["max"] == 8 << 20
    assert helpers.get(store, "kept") == b"1"
    assert number > 5
    helpers.remove(store, "k0")
    with store.read() as transaction:
        assert verify.problems(transaction) == []
    store.close()


def test_processes_adopt_each_others_growth(tmp_path: Path) -> None:
    store = opened(tmp_path / "s", map_size=1 << 20)
    other = child(
        """
        for line in sys.stdin:
            key, count = line.split()
            helpers.put(store, key, b'"' + b"ab" * int(count) + b'"')
            print(len(helpers.get(store, "mine") or b""), flush=True)
        """,
        tmp_path / "s",
    )
    assert other.stdin is not None
    for size in (1_000_000, 3_000_000, 9_000_000):
        helpers.put(store, "mine", b'"' + b"cd" * size + b'"')
        other.stdin.write(b"theirs %d\n" % size)
        other.stdin.flush()
        assert line(other) == str(2 * size + 2)
        assert len(helpers.get(store, "theirs") or b"") == 2 * size + 2
    end(other)
    store.close()


def test_a_stopped_writer_makes_others_busy_and_not_hang(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    helpers.put(store, "k", b"1")
    other = child(
        """
        import time
        def job(transaction):
            print("inside", flush=True)
            time.sleep(60)
        store.write(job)
        """,
        tmp_path / "s",
    )
    assert line(other) == "inside"
    os.kill(other.pid, signal.SIGSTOP)
    with pytest.raises(BusyError):
        helpers.put(store, "k", b"2")
    assert helpers.get(store, "k") == b"1"
    end(other)
    helpers.put(store, "k", b"3")
    assert helpers.get(store, "k") == b"3"
    store.close()


def test_a_writer_killed_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    for round_ in range(8):
        process = child(
            """
            start = int(sys.argv[2])
            for number in range(start, start + 100_000):
                helpers.put(store, "n", b"%d" % number)
                helpers.put(store, "big", b'"' + b"QUJD" * (number % 5000 + 2000) + b'"')
                print(number, flush=True)
            """,
            tmp_path / "s",
            str(round_ * 100_000),
        )
        acknowledged = [line(process) for _ in range(15 + round_)]
        process.kill()
        assert process.stdout is not None
        # Not ``communicate``: it passes over what the buffer has already taken from the pipe.
        rest = process.stdout.read().decode().split()
        process.communicate()
        last = int(([*acknowledged, *rest])[-1])
        store = opened(tmp_path / "s")
        assert int(helpers.get(store, "n") or b"-1") - last in (0, 1)
        with store.read() as transaction:
            assert verify.problems(transaction) == []
        store.close()


def test_many_processes_may_make_the_store_at_once(tmp_path: Path) -> None:
    processes = [
        child(
            """
            helpers.put(store, sys.argv[2], b"1")
            print(store.about.epoch, flush=True)
            """,
            tmp_path / "s",
            f"k{number}",
        )
        for number in range(12)
    ]
    epochs = {process.communicate(timeout=60)[0] for process in processes}
    assert len(epochs) == 1
    store = opened(tmp_path / "s")
    assert len(helpers.everything(store)) == 12
    store.close()


def test_slots_of_killed_readers_are_taken_back(tmp_path: Path) -> None:
    for _ in range(3):
        process = child(
            """
            transaction = store.snapshot()
            transaction.head
            print("reading", flush=True)
            sys.stdin.read()
            """,
            tmp_path / "s",
        )
        assert line(process) == "reading"
        end(process)
    store = opened(tmp_path / "s")
    with store.read() as transaction:
        transaction.head  # noqa: B018 - takes the one slot of this process
        lines = store._environment.readers().strip().splitlines()
    assert len(lines) == 2  # a heading and this process
    store.close()


@pytest.mark.parametrize("replace", [False, True])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, replace: bool) -> None:
    store = opened(tmp_path / "s")
    helpers.put(store, "k", b"1")
    data = tmp_path / "s" / "store.mdb"
    data.rename(tmp_path / "moved.mdb")
    if replace:
        data.write_bytes((tmp_path / "moved.mdb").read_bytes())
    with pytest.raises(DamagedError, match="removed or replaced"):
        helpers.put(store, "k", b"2")
    with pytest.raises(DamagedError, match="removed or replaced"):
        helpers.get(store, "k")
    (tmp_path / "moved.mdb").rename(data)
    helpers.put(store, "k", b"3")
    assert helpers.get(store, "k") == b"3"
    store.close()


def test_pages_full_of_garbage_are_damage_and_no_fault_of_the_host(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    helpers.put(store, "k", b'"' + b"x" * 60_000 + b'"')
    for number in range(60):
        helpers.put(store, f"k{number}", b'"%b"' % (b"y" * 1500))
    store.close()
    data = tmp_path / "s" / "store.mdb"
    content = bytearray(data.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 + 8 : page * 4096 + 64] = os.urandom(56)
    data.write_bytes(content)
    with pytest.raises(DamagedError):
        opened(tmp_path / "s")
