"""Fixtures that tests of several layers share: a folder to run hosts in, and a running host."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.harness.sidekeep_host import Sandbox, SidekeepHost


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a fresh folder with a configuration from which hosts can be started."""
    return Sandbox(tmp_path / "sandbox")


@pytest_asyncio.fixture
async def host(sandbox: Sandbox) -> AsyncIterator[SidekeepHost]:
    """Return a running host that has answered hello and granted parts."""
    async with sandbox.open() as started:
        yield started


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--no-skips``, with which a skipped test fails the run."""
    parser.addoption("--no-skips", action="store_true", help="fail the run if a test is skipped")


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Return random numbers that ``--hypothesis-seed`` repeats; a failure shows the seed."""
    given = request.config.getoption("--hypothesis-seed", default=None)
    seed = str(random.randrange(1 << 32) if given is None else given)
    print(f"repeat with --hypothesis-seed={seed}")  # noqa: T201 - pytest shows it on failure
    return random.Random(seed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long forms of tests to ``SIDEKEEP_LONG=1``: they take an hour or so."""
    if os.environ.get("SIDEKEEP_LONG"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if not item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print the seed of the random tests, so that the run can be repeated."""
    seed = config.getoption("--hypothesis-seed", default=None)
    if seed is not None:
        terminalreporter.write_line(f"random tests ran with seed {seed}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the run if a test was skipped and none may be."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if skipped and session.config.getoption("--no-skips") and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
