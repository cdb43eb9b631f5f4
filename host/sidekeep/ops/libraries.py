"""Getting the pinned libraries into a program folder.

Rules of this module: standard library only; exactly the versions of the lock files
(``requirements/*.txt``). If the chosen interpreter has them all, their files are copied and pip is
not called. Otherwise pip installs them with hashes from wheels; nothing is ever built from source.
Anything that fails stops the installation with the command to run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from sidekeep.errors import UnavailableError

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)\s*(;.*?)?\\?$")


def read_pins(lock_file: Path) -> dict[str, str]:
    """Return ``{distribution: version}`` of a lock file.

    Raises ``UnavailableError`` for a line that is no pin, or one that depends on the system: which
    files to copy must not be a guess.
    """
    pins: dict[str, str] = {}
    for line in lock_file.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith(("#", "--hash=")):
            continue
        match = _PIN.fullmatch(text)
        if match is None or match.group(3):
            raise UnavailableError(f"{lock_file} has a line that is no plain pin: {text}")
        pins[match.group(1)] = match.group(2)
    return pins


def find_importable(pins: dict[str, str]) -> list[tuple[Path, str]] | None:
    """Return ``(file, path inside the library folder)`` of the pinned distributions.

    They are looked for where the running interpreter imports from. ``None`` unless every one is
    there in exactly its version, with a list of its files. Scripts and compiled files are left out.
    """
    files: list[tuple[Path, str]] = []
    for name, version in pins.items():
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            return None
        if distribution.version != version or not distribution.files:
            return None
        for entry in distribution.files:
            if ".." in entry.parts or "__pycache__" in entry.parts or entry.is_absolute():
                continue
            source = Path(str(distribution.locate_file(entry)))
            if not source.is_file():
                return None
            files.append((source, str(entry)))
    return files


def copy_files(files: list[tuple[Path, str]], target: Path) -> None:
    """Copy what ``find_importable`` found into ``target``."""
    for source, relative in files:
        destination = target / relative
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)


def install_with_pip(lock_file: Path, target: Path) -> None:
    """Let pip install the lock file's wheels into ``target``.

    Raises ``UnavailableError`` with pip's last words and the command to run.
    """
    sys.stdout.write(f"getting the libraries of {lock_file.name} with pip\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="sidekeep-pip-") as folder:
        python = _python_with_pip(Path(folder), lock_file)
        command = [
            str(python), "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:",
            "--no-compile", "--target", str(target), "-r", str(lock_file),
        ]  # fmt: skip
        result = subprocess.run(  # noqa: S603 - arguments are made here, no shell
            command, env=_pip_environment(), capture_output=True, text=True, check=False
        )
    if result.returncode != 0:
        raise UnavailableError(
            f"pip could not get the libraries of {lock_file.name} for {sys.executable}:\n"
            f"{_last_lines(result.stdout + result.stderr)}",
            next=_advice(lock_file),
        )
    shutil.rmtree(target / "bin", ignore_errors=True)


def _python_with_pip(folder: Path, lock_file: Path) -> Path:
    """Return an interpreter that has pip: the running one or a temporary environment of it."""
    probe = [sys.executable, "-m", "pip", "--version"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:  # noqa: S603
        return Path(sys.executable)
    create = [sys.executable, "-m", "venv", str(folder / "venv")]
    result = subprocess.run(create, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode != 0:
        raise UnavailableError(
            f"{sys.executable} has no pip, and an environment with one cannot be made:\n"
            f"{_last_lines(result.stdout + result.stderr)}",
            next="Install pip (Debian and Ubuntu: apt install python3-venv python3-pip), or "
            + _advice(lock_file),
        )
    return folder / "venv" / "bin" / "python"


def _pip_environment() -> dict[str, str]:
    # A user's pip.conf may ask for --user or for a virtual environment, which --target excludes.
    return {
        **os.environ,
        "PIP_USER": "0",
        "PIP_REQUIRE_VIRTUALENV": "0",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-6:])


def _advice(lock_file: Path) -> str:
    environment = "./sidekeep-libraries"
    folder = lock_file.parent
    install = shlex.join(
        [
            f"{environment}/bin/python", "-m", "pip", "install", "--require-hashes",
            "--only-binary", ":all:", "-r", str(folder / "host.txt"),
            "-r", str(folder / "tools.txt"),
        ]
    )  # fmt: skip
    return (
        "run this where the network and wheels for your Python are to be had, then install from "
        "it (any Python from 3.10 on will do):\n"
        f"    {shlex.quote(sys.executable)} -m venv {environment}\n"
        f"    {install}\n"
        f"    {shlex.quote(str(folder.parent / 'install.sh'))} --python {environment}/bin/python"
    )
