"""The generated shell files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sidekeep.ops.launcher import (
    EXIT_UNAVAILABLE,
    Launch,
    launcher_text,
    read_launcher,
    real_interpreter,
)

NASTY = "a b'c\"d $(e) `f` \\n é 🐘 ;&|*?[x]~#!%"
PRINT = """
import os, sys
print(os.getpid())
print(sys.argv[1:])
print(sys.flags.isolated, sys.flags.utf8_mode)
"""


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("shell", [[], ["dash"], ["bash", "--posix"]])
def test_any_path_and_argument_arrives_unchanged_and_no_shell_stays(
    tmp_path: Path, shell: list[str]
) -> None:
    app = tmp_path / NASTY
    write(app / "start.py", PRINT.encode())
    config = str(tmp_path / NASTY / "config.json")
    text = launcher_text(Launch(real_interpreter(), app), "start.py", [config])
    launcher = write(tmp_path / "bin" / NASTY, text)
    process = subprocess.Popen(
        [*shell, launcher, "chrome-extension://x/", "two words"],
        stdout=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        cwd="/",
    )
    out, _ = process.communicate(timeout=10)
    pid, arguments, flags = os.fsdecode(out).splitlines()
    assert arguments == str([config, "chrome-extension://x/", "two words"])
    assert flags == "1 1"
    assert int(pid) == process.pid


def test_a_launcher_can_be_read_back(tmp_path: Path) -> None:
    launch = Launch(Path("/usr/bin/my python"), Path("/home/J 'D/app/1.2.3-abc"))
    launcher = write(tmp_path / "launcher", launcher_text(launch, "start.py", ["x"]))
    assert read_launcher(launcher) == launch
    assert launch.version == "1.2.3"


def test_something_else_is_no_launcher(tmp_path: Path) -> None:
    assert read_launcher(tmp_path / "missing") is None
    assert read_launcher(write(tmp_path / "other", b"#!/bin/sh\nexec true\n")) is None


@pytest.mark.parametrize("missing", ["interpreter", "app"])
def test_what_is_missing_is_named_in_one_line(tmp_path: Path, missing: str) -> None:
    app = tmp_path / "app"
    write(app / "start.py", PRINT.encode())
    gone = tmp_path / "gone %s \\n"
    launch = Launch(gone, app) if missing == "interpreter" else Launch(real_interpreter(), gone)
    launcher = write(tmp_path / "launcher", launcher_text(launch, "start.py", []))
    result = subprocess.run([launcher], capture_output=True, timeout=10, check=False)
    assert result.returncode == EXIT_UNAVAILABLE
    assert result.stdout == b""
    (line,) = os.fsdecode(result.stderr).splitlines()
    assert str(gone) in line
    assert "re-run install.sh" in line


def test_the_interpreter_is_a_real_file_outside_any_environment() -> None:
    interpreter = real_interpreter()
    assert not interpreter.is_symlink()
    text = "import sys; print(sys.prefix == sys.base_prefix, *sys.version_info[:3])"
    out = subprocess.run([interpreter, "-I", "-c", text], capture_output=True, check=True).stdout
    assert out.decode().split() == ["True", *map(str, sys.version_info[:3])]


def test_homebrews_lasting_path_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cellar = tmp_path / "Cellar" / "python@3.12" / "3.12.4"
    python = write(cellar / "bin" / "python3.12", b"")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt" / "python@3.12").symlink_to(cellar)
    monkeypatch.setattr(sys, "_base_executable", str(python))
    assert real_interpreter() == tmp_path / "opt" / "python@3.12" / "bin" / "python3.12"
