"""The helper's process: started late, fed without waiting, answering every job once."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from sidekeep.errors import InternalError, NotFoundError, UnavailableError
from sidekeep.helper import parent
from sidekeep.helper.parent import JobFailed
from sidekeep.helper.process import Process

from .waiting import Make, ask, gone_within, outcomes, pid_of, readable, script, state, step

# Start


def test_nothing_is_started_or_imported_before_the_first_job() -> None:
    with script(
        "before = set(sys.modules)\n"
        "from sidekeep.helper.parent import Helper\n"
        "from sidekeep.helper import previews\n"
        "helper = Helper('thumbnails', seconds=1, memory=None)\n"
        "assert (helper.descriptor, helper.patience(), helper.take()) == (-1, None, [])\n"
        "print(*sorted(set(sys.modules) - before))\n"
    ) as process:
        assert process.stdout is not None
        imported = process.stdout.read().decode().split()
    assert process.returncode == 0
    assert "sidekeep.helper.parent" in imported
    unwanted = {"PIL", "subprocess", "selectors", "select", "signal", "socket"}
    assert not unwanted & set(imported)
    assert not {"sidekeep.helper.process", "sidekeep.helper.child"} & set(imported)


def test_jobs_are_answered_in_order_under_rising_numbers(make: Make) -> None:
    helper = make()
    numbers = [helper.submit(b"echo%" + str(count).encode()) for count in range(20)]
    assert numbers == sorted(set(numbers))
    found = outcomes(helper, 20)
    assert list(found) == numbers
    assert [found[number] for number in numbers] == [str(count).encode() for count in range(20)]


def test_the_child_runs_the_same_interpreter_and_finds_the_same_modules_whatever_the_environment(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "msgspec.py"))
    monkeypatch.setenv("PATH", "")
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/o'd\xff\n")
    monkeypatch.syspath_prepend(odd)
    monkeypatch.syspath_prepend("relative")
    answer = ask(make(), b"path%")
    assert isinstance(answer, bytes)
    path = [entry for entry in sys.path if entry.startswith("/")]
    assert odd in path
    assert answer.decode().startswith(repr((sys.executable, path))[:-1])
    assert "isolated=1" in answer.decode()
    assert "no_site=1" in answer.decode()


def test_the_child_has_none_of_the_parents_descriptors(make: Make, tmp_path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("this system does not show descriptors")
    environment = lmdb.open(str(tmp_path))  # does not close its file on exec
    with environment.begin(), open(tmp_path / "data.mdb", "rb") as file:
        os.set_inheritable(file.fileno(), True)
        pid = pid_of(make())
        leads_to = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    environment.close()
    assert leads_to.count("/dev/null") >= 1
    assert sum(link.startswith("pipe:") for link in leads_to[3:]) == 2
    assert len(leads_to) == 5


def test_a_child_that_cannot_start_answers_every_job_and_is_not_started_again(make: Make) -> None:
    helper = make("missing")
    numbers = [helper.submit(b"echo%") for _ in range(3)]
    found = outcomes(helper, 3)
    for number in numbers:
        error = found[number]
        assert isinstance(error, UnavailableError)
        assert not isinstance(error, JobFailed)
        assert "exit code 1" in error.message
    assert helper.patience() is None
    number = helper.submit(b"echo%")
    assert helper.patience() == 0.0
    assert not readable(helper)
    assert helper.take() == [(number, error)]


def test_an_interpreter_that_is_gone_is_an_answer(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python3")
    error = ask(make(), b"echo%")
    assert isinstance(error, UnavailableError)
    assert "No such file" in error.message


def test_a_child_without_work_is_ended_after_a_while(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parent, "IDLE_SECONDS", 0.1)
    helper = make()
    first = pid_of(helper)
    descriptor = helper.descriptor
    while helper.patience() is not None:
        assert step(helper) == []
    assert gone_within(first, 5)
    assert not readable(helper, 0.1)
    assert pid_of(helper) != first
    assert helper.descriptor == descriptor


# Jobs


def test_a_big_job_does_not_hold_the_parent_up_and_arrives_whole(make: Make) -> None:
    helper = make()
    pid = pid_of(helper)
    data = os.urandom(12_000_000)
    os.kill(pid, signal.SIGSTOP)
    while state(pid) != "T":
        time.sleep(0.01)
    rescue = threading.Timer(20, os.kill, (pid, signal.SIGCONT))
    rescue.start()
    big = helper.submit(b"digest%" + data)
    small = helper.submit(b"echo%small")
    assert helper.take() == []
    assert state(pid) == "T", "the parent waited until the child went on"
    rescue.cancel()
    os.kill(pid, signal.SIGCONT)
    assert outcomes(helper, 2) == {big: hashlib.sha256(data).digest(), small: b"small"}


def test_writers_that_are_late_close_the_pipe_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all = Process._write_all

    def write_and_linger(process: Process, data: bytes | memoryview) -> None:
        write_all(process, data)
        time.sleep(0.3)

    monkeypatch.setattr(Process, "_write_all", write_and_linger)
    helper = make()
    assert [ask(helper, b"echo%" + word) for word in (b"one", b"two")] == [b"one", b"two"]
    helper.close()
    mine = [descriptor for _ in range(4) for descriptor in os.pipe()]
    time.sleep(0.5)
    for descriptor in mine:
        os.close(descriptor)  # OSError if a writer has closed it meanwhile


@pytest.mark.parametrize("size", [0, 1, 65_531, 65_536, 65_541, 1_114_112, 3_000_000])
def test_jobs_and_answers_of_every_size_arrive_whole(make: Make, size: int) -> None:
    data = os.urandom(size)
    helper = make()
    assert ask(helper, b"echo%" + data) == data
    assert ask(helper, b"many%" + str(size).encode()) == b"x" * size


def test_a_job_that_is_a_function_is_asked_for_when_its_turn_has_come(make: Make) -> None:
    helper = make()
    asked: list[str] = []

    def job(name: str) -> Callable[[], bytes]:
        def fetch() -> bytes:
            asked.append(name)
            if name == "gone":
                raise NotFoundError("The picture is gone.")
            return b"echo%" + name.encode()

        return fetch

    pid_of(helper)
    numbers = [helper.submit(job(name)) for name in ("one", "gone", "two")]
    assert asked == ["one"]
    found = outcomes(helper, 3)
    assert asked == ["one", "gone", "two"]
    assert (found[numbers[0]], found[numbers[2]]) == (b"one", b"two")
    assert isinstance(found[numbers[1]], NotFoundError)


def test_errors_of_a_job_come_back_as_they_are_and_the_child_goes_on(make: Make) -> None:
    helper = make()
    pid = pid_of(helper)
    refused = ask(helper, b"refuse%")
    assert isinstance(refused, NotFoundError)
    assert (refused.message, refused.next) == ("There is no such thing.", "look elsewhere")
    fault = ask(helper, b"fault%")
    assert isinstance(fault, InternalError)
    assert "ZeroDivisionError" in fault.message
    assert pid_of(helper) == pid


def test_what_a_job_prints_does_not_reach_the_frames(make: Make) -> None:
    helper = make()
    assert ask(helper, b"print%") == b"done"
    assert ask(helper, b"echo%after") == b"after"


def test_ctrl_c_and_hang_up_do_not_end_the_child(make: Make) -> None:
    helper = make()
    assert ask(helper, b"interrupt%") == b"done"


def test_the_child_steps_back_behind_others(make: Make) -> None:
    assert ask(make(), b"nice%") == str(min(os.nice(0) + 10, 19)).encode()
