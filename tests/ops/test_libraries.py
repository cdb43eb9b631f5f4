"""How the libraries get there: copied, by pip from wheels, or not at all with a way out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sidekeep.errors import UnavailableError
from sidekeep.ops.libraries import find_importable, read_pins
from tests.ops.machine import ROOT, Machine, copy_checkout
from tests.ops.wheels import use_local_wheels

CHROMIUM = ".config/chromium/NativeMessagingHosts"
NO_NETWORK = {"PIP_NO_INDEX": "1", "PIP_RETRIES": "0"}


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with pip and without libraries."""
    venv = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    return venv / "bin" / "python"


@pytest.fixture
def pip_spy(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return a file that exists once pip was called, and the environment that makes it so."""
    called = tmp_path / "pip was called"
    module = tmp_path / "spy" / "pip"
    module.mkdir(parents=True)
    code = f"import sys\nopen({str(called)!r}, 'a').close()\nsys.exit('pip is broken here')\n"
    (module / "__init__.py").write_text("")
    (module / "__main__.py").write_text(code)
    for name in ("pip", "pip3"):
        script = tmp_path / "spy" / name
        if not script.exists():
            script.write_text(f"#!{sys.executable}\n{code}")
            script.chmod(0o755)
    return called, {"PYTHONPATH": str(tmp_path / "spy")}


def test_pip_is_not_called_if_every_library_is_there(
    empty_machine: Machine, pip_spy: tuple[Path, dict[str, str]]
) -> None:
    called, environment = pip_spy
    empty_machine.environment = environment
    empty_machine.path.insert(0, environment["PYTHONPATH"])
    empty_machine.installed()
    assert not called.exists()


def test_a_failing_pip_registers_nothing_and_gives_the_command(
    empty_machine: Machine, bare_python: Path, pip_spy: tuple[Path, dict[str, str]]
) -> None:
    machine = empty_machine
    machine.browser(".config/chromium")
    called, machine.environment = pip_spy
    machine.python = str(bare_python)
    result = machine.install()
    assert result.code == 1, result
    assert called.exists()
    assert "-m pip install --require-hashes" in result.err
    assert "install.sh" in result.err
    assert machine.manifests() == {}
    assert not machine.launcher.exists()
    assert not (machine.program / "config.json").exists()
    assert machine.apps == []


def test_without_a_network_an_earlier_install_stays_as_it_was(
    machine: Machine, bare_python: Path, tmp_path: Path
) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    before = machine.snapshot()
    changed = copy_checkout(tmp_path / "changed", machine.checkout)
    with (changed / "host" / "sidekeep" / "errors.py").open("a") as module:
        module.write("\n# another version\n")
    machine.checkout = changed
    machine.python = str(bare_python)
    machine.environment = NO_NETWORK
    result = machine.install()
    assert result.code == 1, result
    assert "pip could not get the libraries of host.txt" in result.err
    after = machine.snapshot()
    for path in before:
        # Adding and removing a temporary folder shows in the time of the one that held it.
        if path != str(machine.program / "app"):
            assert after[path] == before[path], path
    assert set(after) == set(before)
    machine.environment = {}
    assert machine.sidekeep("doctor").code == 0


def test_pip_installs_from_wheels_with_hashes(
    empty_machine: Machine, bare_python: Path, tmp_path: Path
) -> None:
    machine = empty_machine
    machine.browser(".config/chromium")
    machine.checkout = copy_checkout(tmp_path / "checkout", machine.checkout)
    machine.environment = use_local_wheels(machine.checkout, tmp_path / "wheels")
    # A user's pip.conf of this kind must not get in the way of --target.
    machine.environment |= {"PIP_USER": "1", "PIP_REQUIRE_VIRTUALENV": "1"}
    machine.python = str(bare_python)
    machine.installed()
    (app,) = machine.apps
    assert {"lmdb", "msgspec"} <= {path.name for path in (app / "libs").iterdir()}
    assert not (app / "libs" / "typing_extensions.py").exists()
    assert not (app / "tools" / "bin").exists()
    assert machine.sidekeep("doctor").code == 0


def test_libraries_of_another_interpreter_are_not_kept(
    empty_machine: Machine, bare_python: Path, tmp_path: Path
) -> None:
    """They are importable by name and version, yet their binary part is for another Python."""
    machine = empty_machine
    machine.browser(".config/chromium")
    machine.checkout = copy_checkout(tmp_path / "checkout", machine.checkout)
    wheels = use_local_wheels(machine.checkout, tmp_path / "wheels")
    foreign = tmp_path / "foreign"
    for name in ("host.txt", "tools.txt"):
        files = find_importable(read_pins(machine.checkout / "requirements" / name))
        assert files is not None
        for source, relative in files:
            target = foreign / relative.replace("cpython-3", "cpython-9")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    for record in foreign.glob("*.dist-info/RECORD"):
        record.write_text(record.read_text("utf-8").replace("cpython-3", "cpython-9"), "utf-8")
    machine.python = str(bare_python)
    machine.environment = {**wheels, "PYTHONPATH": str(foreign)}
    machine.installed()
    machine.environment = {}
    assert machine.sidekeep("doctor").code == 0


def test_a_wheel_that_is_not_the_locked_one_is_refused(
    empty_machine: Machine, bare_python: Path, tmp_path: Path
) -> None:
    machine = empty_machine
    machine.checkout = copy_checkout(tmp_path / "checkout", machine.checkout)
    machine.environment = use_local_wheels(machine.checkout, tmp_path / "wheels")
    lock = machine.checkout / "requirements" / "host.txt"
    lock.write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", lock.read_text("utf-8")), "utf-8")
    machine.python = str(bare_python)
    result = machine.install()
    assert result.code == 1, result
    assert not machine.launcher.exists()


def test_a_python_without_pip_gets_one_for_the_occasion(
    empty_machine: Machine, tmp_path: Path
) -> None:
    machine = empty_machine
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    machine.checkout = copy_checkout(tmp_path / "checkout", machine.checkout)
    machine.environment = use_local_wheels(machine.checkout, tmp_path / "wheels")
    machine.python = str(tmp_path / "v" / "bin" / "python")
    machine.installed()
    assert machine.launcher.exists()


def test_a_library_of_another_version_is_not_copied(tmp_path: Path) -> None:
    assert find_importable({"msgspec": "0.0.1"}) is None
    assert find_importable({"no-such-distribution": "1"}) is None
    pins = read_pins(ROOT / "requirements" / "host.txt")
    files = find_importable(pins)
    assert files is not None
    roots = {relative.split("/")[0] for _, relative in files}
    packages = {root for root in roots if not root.endswith(".dist-info")}
    assert packages - {"pillow.libs"} == {"lmdb", "msgspec", "PIL"}


@pytest.mark.parametrize("line", ["lmdb>=3", "lmdb==3 ; sys_platform == 'win32'", "-r other.txt"])
def test_a_lock_file_holds_plain_pins_only(tmp_path: Path, line: str) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"# comment\nmsgspec==1.0 \\\n    --hash=sha256:ab\n{line}\n")
    with pytest.raises(UnavailableError):
        read_pins(lock)


def test_the_lock_files_agree_with_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    wanted = dict(re.findall(r'"([a-z-]+)==([0-9.]+)"', project))
    host = read_pins(ROOT / "requirements" / "host.txt")
    tools = read_pins(ROOT / "requirements" / "tools.txt")
    assert set(host) == {"lmdb", "msgspec", "pillow"}
    assert {"click", "rich", "pydantic"} <= set(tools)
    for name, version in {**host, **tools}.items():
        assert wanted.get(name, version) == version


def test_the_lock_files_name_no_index_and_hash_everything() -> None:
    for name in ("host.txt", "tools.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text("utf-8")
        assert "://" not in text
        assert "--index-url" not in text
        for block in re.split(r"\n(?=\S)", text.strip()):
            assert "--hash=sha256:" in block, block


def test_no_suitable_python_is_a_sentence(empty_machine: Machine, tmp_path: Path) -> None:
    machine = empty_machine
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("uname", "cat", "sh"):
        (tools / name).symlink_to(Path("/bin") / name)
    (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tools / "python3").chmod(0o755)
    machine.path = [str(tools)]
    machine.python = None
    result = machine.install()
    assert result.code == 1, result
    assert "no Python 3.10 or newer was found" in result.err
    for python in (str(tools / "python3"), str(tmp_path / "nowhere")):
        machine.python = python
        result = machine.install()
        assert result.code == 1, result
        assert python in result.err
    assert os.listdir(machine.home) == []
