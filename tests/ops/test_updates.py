"""New versions, other interpreters, interrupted and simultaneous installs."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sidekeep import __version__
from sidekeep.errors import ConflictError
from sidekeep.ops.program import refuse_downgrade, remove_unused, version_key
from tests.ops.machine import Machine, change_version, copy_checkout

CHROMIUM = ".config/chromium/NativeMessagingHosts"


@pytest.fixture
def newer(tmp_path: Path, checkout: Path) -> Path:
    """Return a checkout of a newer version."""
    return change_version(copy_checkout(tmp_path / "newer", checkout), "99.0.0")


def versions(machine: Machine) -> set[str]:
    return {folder.name.rpartition("-")[0] for folder in machine.apps}


async def test_an_update_switches_new_hosts_and_leaves_running_ones(
    machine: Machine, newer: Path
) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    async with machine.host(CHROMIUM) as old:
        await old.hello()
        await old.set({"a": 1})
        machine.checkout = newer
        await asyncio.to_thread(machine.installed)
        async with machine.host(CHROMIUM) as new:
            await new.hello()
            assert (await new.status())["versions"]["sidekeep"] == "99.0.0"
            assert await new.get() == {"a": 1}
        # Modules that the old host had not imported yet are still the old ones.
        assert (await old.status())["versions"]["sidekeep"] == __version__
        await old.set({"a": 2})
    assert versions(machine) == {__version__, "99.0.0"}


def test_an_older_installer_refuses_and_changes_nothing(machine: Machine, newer: Path) -> None:
    machine.browser(".config/chromium")
    older = machine.checkout
    machine.checkout = newer
    machine.installed()
    before = machine.snapshot()
    machine.checkout = older
    result = machine.install("--extension-id", "abcdefghijklmnopabcdefghijklmnop")
    assert result.code == 1, result
    assert "99.0.0 is installed, which is newer" in result.err
    assert "--uninstall" in result.err
    assert machine.snapshot() == before
    assert machine.install("--dry-run").code == 1


def test_after_an_uninstall_an_older_version_may_come(machine: Machine, newer: Path) -> None:
    older = machine.checkout
    machine.checkout = newer
    machine.installed()
    machine.installed("--uninstall")
    machine.checkout = older
    machine.installed()


def test_versions_are_compared_by_number() -> None:
    assert version_key("0.10.0") > version_key("0.9.9")
    refuse_downgrade(__version__)
    refuse_downgrade("0.0.1")
    with pytest.raises(ConflictError):
        refuse_downgrade("0.10.0")


def program_folder(apps: Path, name: str, age: int) -> Path:
    folder = apps / name
    folder.mkdir(parents=True)
    os.utime(folder, ns=(0, 10**18 - age))
    return folder


def test_the_current_and_the_previous_program_stay(tmp_path: Path) -> None:
    current, previous, old, older = (
        program_folder(tmp_path, name, age)
        for name, age in (("3-c", 0), ("1-a", 3), ("2-b", 1), ("0-z", 9))
    )
    interrupted = program_folder(tmp_path, ".new-x", 0)
    assert set(remove_unused(tmp_path, current, previous)) == {old, older, interrupted}
    assert {path.name for path in tmp_path.iterdir()} == {"3-c", "1-a"}
    assert remove_unused(tmp_path, current, None) == []


def test_a_program_that_a_process_still_uses_stays(tmp_path: Path) -> None:
    current, previous, used = (
        program_folder(tmp_path, name, age) for name, age in (("3-c", 0), ("2-b", 1), ("1-a", 2))
    )
    code = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, used / "start.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert remove_unused(tmp_path, current, previous) == []
        process.communicate()
    assert remove_unused(tmp_path, current, previous) == [used]


async def test_a_new_program_that_does_not_work_changes_nothing(
    machine: Machine, newer: Path
) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    before = machine.snapshot(leave_out=machine.program / "app")
    (newer / "host" / "sidekeep" / "connection.py").write_text("raise SystemExit(9)")
    machine.checkout = newer
    result = await asyncio.to_thread(machine.install)
    assert result.code == 1, result
    assert "does not work" in result.err
    after = machine.snapshot(leave_out=machine.program / "app")
    for path in (machine.launcher, machine.command, machine.program / "config.json"):
        assert after[str(path)] == before[str(path)]
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert (await host.status())["versions"]["sidekeep"] == __version__


def test_simultaneous_installs_do_not_disturb_each_other(machine: Machine) -> None:
    shutil.rmtree(machine.program)
    machine.browser(".config/chromium")
    ids = ["abcdefghijklmnopabcdefghijklmnop", "ponmlkjihgfedcbaponmlkjihgfedcba"]
    script = str(machine.checkout / "install.sh")
    command = [script, "--python", sys.executable, "--extension-id"]
    started = [
        subprocess.Popen(
            [*command, value],
            env=machine.full_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for value in ids
    ]
    for process in started:
        out, _ = process.communicate(timeout=180)
        assert process.returncode == 0, out.decode()
    assert set(ids) < set(machine.config["extensions"])
    assert machine.sidekeep("doctor").code == 0


@pytest.mark.parametrize("delay", [0.1, 0.25, 0.5, 0.8, 1.2, 1.6, 2.0])
def test_a_killed_update_leaves_a_working_install(
    machine: Machine, newer: Path, delay: float
) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    command = [str(newer / "install.sh"), "--python", sys.executable]
    with subprocess.Popen(
        command,
        env=machine.full_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    result = machine.sidekeep("doctor")
    assert result.code == 0, result
    machine.checkout = newer
    machine.installed()
    assert machine.sidekeep("doctor").code == 0
    assert versions(machine) == {__version__, "99.0.0"}


def relocated_python(folder: Path) -> Path:
    """Make an interpreter that lives in ``folder`` and can be removed; it borrows its library."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    real = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    shutil.copy2(real, folder / "bin" / name)
    (folder / "lib" / name).symlink_to(Path(os.__file__).parent)
    return folder / "bin" / name


def libraries_of_the_tests() -> str:
    import msgspec

    return str(Path(msgspec.__file__).parents[1])


async def test_another_python_takes_over_with_the_data(machine: Machine, tmp_path: Path) -> None:
    machine.browser(".config/chromium")
    python = relocated_python(tmp_path / "py thon")
    machine.python = str(python)
    machine.environment["PYTHONPATH"] = libraries_of_the_tests()
    await asyncio.to_thread(machine.installed)
    assert str(python) in machine.launcher.read_text("utf-8")
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        await host.set({"a": "kept"})
    python.unlink()
    result = machine.launch()
    assert result.code == 69
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert str(python) in line
    assert "re-run install.sh" in line
    machine.python = sys.executable
    await asyncio.to_thread(machine.installed)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert await host.get() == {"a": "kept"}


def test_a_venv_that_was_active_may_go_away(machine: Machine, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    machine.browser(".config/chromium")
    machine.python = None
    machine.path.insert(0, str(venv / "bin"))
    machine.environment.update(
        VIRTUAL_ENV=str(venv), PYTHONPATH=libraries_of_the_tests(), PYTHONHOME=""
    )
    machine.installed()
    shutil.rmtree(venv)
    machine.environment.clear()
    machine.path = ["/usr/bin", "/bin"]
    result = machine.sidekeep("doctor")
    assert result.code == 0, result


Remover = Callable[[Machine], None]
REMOVERS: dict[str, Remover] = {
    "bin": lambda machine: shutil.rmtree(machine.program / "bin"),
    "app": lambda machine: shutil.rmtree(machine.program / "app"),
    "config": lambda machine: (machine.program / "config.json").unlink(),
    "record": lambda machine: (machine.program / "registrations.json").unlink(),
    "manifests": lambda machine: shutil.rmtree(machine.home / CHROMIUM),
}


@pytest.mark.parametrize("part", REMOVERS)
def test_whatever_part_was_removed_comes_back(machine: Machine, part: str) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    REMOVERS[part](machine)
    machine.installed()
    assert machine.sidekeep("doctor").code == 0
