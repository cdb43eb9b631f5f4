"""The ends of a helper: over its borders, by accident, given up, and with its host."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidekeep.helper.frames import job_header
from sidekeep.helper.parent import JobFailed
from sidekeep.helper.process import command

from .waiting import TABLE, Make, ask, gone_within, outcomes, pid_of, readable, script, step

# Borders


def test_a_job_that_takes_too_long_is_ended_and_the_rest_goes_to_a_fresh_child(make: Make) -> None:
    helper = make(seconds=0.5)
    first = pid_of(helper)
    slow = helper.submit(b"sleep%600")
    after = helper.submit(b"pid%")
    found = outcomes(helper, 2)
    error = found[slow]
    assert isinstance(error, JobFailed)
    assert error.message == "It took longer than 0.5 s."
    assert isinstance(found[after], bytes)
    assert int(found[after]) != first  # type: ignore[arg-type]
    assert gone_within(first, 5)


def test_processor_time_has_a_border_that_does_not_depend_on_the_parent(make: Make) -> None:
    helper = make(seconds=0.5)
    pid = pid_of(helper)
    helper.submit(b"spin%")
    assert gone_within(pid, 30)  # without a call of take that could have ended it
    (error,) = outcomes(helper, 1).values()
    assert isinstance(error, JobFailed)
    assert error.message == "The helper for work used up its processor time."


def test_a_job_that_needs_too_much_memory_is_told_so_and_the_next_one_works(make: Make) -> None:
    helper = make(memory=268_435_456)
    if ask(helper, b"hog%1000000") != b"1000000":
        pytest.fail("a small job must fit")
    first = pid_of(helper)
    hog = helper.submit(b"hog%500000000")
    after = helper.submit(b"pid%")
    found = outcomes(helper, 2)
    assert isinstance(found[hog], JobFailed)
    assert found[hog].message == "It needs more memory than it may have."  # type: ignore[union-attr]
    assert int(found[after]) != first  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (b"kill%9", "was killed"),
        (b"kill%11", "crashed (signal 11)"),
        (b"exit%7", "exit code 7"),
        (b"exit%0", "exit code 0"),
    ],
)
def test_a_job_that_ends_its_child_fails_alone_and_is_not_tried_again(
    make: Make, job: bytes, words: str
) -> None:
    helper = make()
    bad = helper.submit(job)
    good = helper.submit(b"echo%good")
    worse = helper.submit(job)
    better = helper.submit(b"echo%better")
    found = outcomes(helper, 4)
    for number in (bad, worse):
        error = found[number]
        assert isinstance(error, JobFailed)
        assert words in error.message
    assert (found[good], found[better]) == (b"good", b"better")


def test_no_job_is_blamed_for_a_child_that_was_killed_while_it_had_nothing_to_do(
    make: Make,
) -> None:
    helper = make()
    for noticed in (True, False):
        pid = pid_of(helper)
        os.kill(pid, signal.SIGKILL)
        assert gone_within(pid, 5)
        if noticed:
            assert step(helper) == []
            assert not readable(helper)
        assert ask(helper, b"echo%again") == b"again"


def test_core_files_are_not_written(make: Make, tmp_path: Path) -> None:
    pid = pid_of(helper := make())
    if hasattr(resource, "prlimit"):
        assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
    else:
        assert ask(helper, b"echo%") == b""


# Giving up


def test_a_cancelled_job_is_never_told_of(make: Make) -> None:
    helper = make()
    pid = pid_of(helper)
    short = helper.submit(b"sleep%0.1")
    waiting = helper.submit(b"exit%1")
    after = helper.submit(b"pid%")
    helper.cancel(short)
    helper.cancel(waiting)
    helper.cancel(waiting)
    helper.cancel(12345)
    assert outcomes(helper, 1) == {after: str(pid).encode()}


def test_a_long_job_that_was_cancelled_does_not_go_on(make: Make) -> None:
    helper = make()
    pid = pid_of(helper)
    long = helper.submit(b"sleep%600")
    after = helper.submit(b"echo%after")
    helper.cancel(long)
    assert outcomes(helper, 1) == {after: b"after"}
    assert gone_within(pid, 5)


def test_an_outcome_that_was_not_taken_can_still_be_cancelled(make: Make) -> None:
    helper = make("missing")
    first, second = helper.submit(b""), helper.submit(b"")
    outcomes(helper, 2)
    third, fourth = helper.submit(b""), helper.submit(b"")
    helper.cancel(third)
    assert [number for number, _ in helper.take()] == [fourth]
    assert len({first, second, third, fourth}) == 4


@pytest.mark.parametrize("job", [b"sleep%600", b"hold%", b"digest%" + bytes(12_000_000)])
def test_close_ends_the_child_whatever_it_does(make: Make, job: bytes) -> None:
    helper = make()
    pid = pid_of(helper)
    helper.submit(job)
    helper.submit(b"echo%never")
    helper.close()
    assert gone_within(pid, 1)
    assert (helper.descriptor, helper.patience(), helper.take()) == (-1, None, [])
    helper.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("job", [b"sleep%600", b"spin%", b"hold%", b""])
def test_the_child_is_gone_within_a_second_of_its_host(how: signal.Signals, job: bytes) -> None:
    if job == b"hold%" and sys.platform != "linux":
        pytest.skip("only Linux ends a process with its parent")
    with script(
        "import time\n"
        "from tests.helper.waiting import TABLE, pid_of\n"
        "from sidekeep.helper.parent import Helper\n"
        "helper = Helper('work', seconds=600, memory=None, table=TABLE)\n"
        "print(pid_of(helper), flush=True)\n"
        f"helper.submit({job!r}) if {job!r} else None\n"
        "time.sleep(0.2)\n"  # until the job is under way
        "print('sent', flush=True)\n"
        "time.sleep(600)\n"
    ) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert host.stdout.readline() == b"sent\n"
        host.send_signal(how)
        host.wait()
        assert gone_within(pid, 1.0)


@pytest.mark.parametrize("job", [b"sleep%600", b"spin%"])
def test_the_hang_up_of_its_input_alone_ends_a_busy_child(job: bytes) -> None:
    with subprocess.Popen(
        command(TABLE, "work", 600, None), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert len(child.stdout.read(17)) == 17
        child.stdin.write(job_header(1, len(job)) + job)
        child.stdin.flush()
        child.stdin.close()
        try:
            assert gone_within(child.pid, 1.0)
        finally:
            child.kill()
