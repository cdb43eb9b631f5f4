"""A user's machine in a temporary folder: a HOME, browsers' folders, install.sh, hosts.

install.sh runs with a HOME of its own and a bare environment, with the Python that runs the tests
(which has every library, so that pip is not called) unless a test chooses another.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.sidekeep_host import SidekeepHost

ROOT = Path(__file__).resolve().parents[2]
HOST_NAME = "org.sidekeep.host"
DEMO_ID = "andamljdfjmkeeaoodefglpnfbaoklhh"
DEMO_ADDON = "sidekeep@sidekeep.org"
SHIPPED = ("install.sh", "manifest", "requirements", "host")
TIMEOUT = 180


def copy_checkout(target: Path, source: Path = ROOT) -> Path:
    """Copy what an installation needs from the source tree to ``target`` and return it."""
    target.mkdir(parents=True)
    for name in SHIPPED:
        original = source / name
        if original.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(original, target / name, ignore=ignored)
        else:
            shutil.copy2(original, target / name)
    return target


def change_version(checkout: Path, version: str) -> Path:
    """Make a checkout one of another version."""
    module = checkout / "host" / "sidekeep" / "__init__.py"
    text = module.read_text(encoding="utf-8")
    assert '__version__ = "' in text
    before, _, rest = text.partition('__version__ = "')
    module.write_text(before + f'__version__ = "{version}"' + rest.partition('"')[2], "utf-8")
    return checkout


@dataclass
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- out\n{self.out}--- err\n{self.err}"


@dataclass
class Machine:
    """One user's HOME. ``environment`` is what install.sh sees besides HOME and PATH."""

    home: Path
    checkout: Path
    python: str | None = sys.executable
    environment: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=lambda: ["/usr/bin", "/bin"])
    shell: tuple[str, ...] = ()
    system: str = "Linux"

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def program(self) -> Path:
        """The program home."""
        if self.system == "Darwin":
            return self.home / "Library" / "Application Support" / "Sidekeep"
        return self.home / ".local" / "share" / "sidekeep"

    @property
    def launcher(self) -> Path:
        """The launcher that manifests name."""
        return self.program / "bin" / "sidekeep-host"

    @property
    def command(self) -> Path:
        """The sidekeep command."""
        return self.program / "bin" / "sidekeep"

    @property
    def apps(self) -> list[Path]:
        """The program folders, oldest first."""
        folders = list((self.program / "app").iterdir())
        return sorted(folders, key=lambda folder: folder.stat().st_mtime_ns)

    @property
    def config(self) -> dict[str, Any]:
        """What config.json says."""
        content = json.loads((self.program / "config.json").read_bytes())
        assert isinstance(content, dict)
        return content

    def browser(self, *folders: str) -> None:
        """Make browsers' folders below HOME."""
        for folder in folders:
            (self.home / folder).mkdir(parents=True, exist_ok=True)

    def full_environment(self) -> dict[str, str]:
        """Return the environment of a person's terminal."""
        return {"HOME": str(self.home), "PATH": ":".join(self.path), **self.environment}

    def run(self, command: Sequence[str | Path]) -> Result:
        """Run a command as this user, from a folder that is not the checkout."""
        result = subprocess.run(
            [str(word) for word in command],
            env=self.full_environment(),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT,
            check=False,
        )
        return Result(result.returncode, result.stdout, result.stderr)

    def install(self, *options: str | Path) -> Result:
        """Run install.sh and return how it ended."""
        python = ["--python", self.python] if self.python is not None else []
        return self.run([*self.shell, self.checkout / "install.sh", *python, *options])

    def installed(self, *options: str | Path) -> Result:
        """Run install.sh, which has to succeed."""
        result = self.install(*options)
        assert result.code == 0, result
        return result

    def sidekeep(self, *words: str | Path) -> Result:
        """Run the sidekeep command."""
        return self.run([self.command, *words])

    def manifests(self) -> dict[str, dict[str, Any]]:
        """Return all manifests below HOME: path relative to HOME, content."""
        return {
            path.parent.relative_to(self.home).as_posix(): json.loads(path.read_bytes())
            for path in sorted(self.home.rglob(f"{HOST_NAME}.json"))
            if self.program / "app" not in path.parents
        }

    def bare_environment(self) -> dict[str, str]:
        """Return what a browser started from a desktop passes on."""
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin"}

    def host(self, folder: str, *, extension: str | None = None) -> SidekeepHost:
        """Return a host to be started as the browser of that manifest folder would."""
        manifest = self.home / folder / f"{HOST_NAME}.json"
        content = json.loads(manifest.read_bytes())
        if "allowed_origins" in content:
            allowed = content["allowed_origins"][0]
            arguments = [allowed if extension is None else f"chrome-extension://{extension}/"]
        else:
            arguments = [str(manifest), extension or content["allowed_extensions"][0]]
        return SidekeepHost(
            [content["path"]], arguments=arguments, environment=self.bare_environment()
        )

    def launch(self, *arguments: str) -> Result:
        """Run the launcher to its end with an empty standard input."""
        result = subprocess.run(
            [self.launcher, *(arguments or (f"chrome-extension://{DEMO_ID}/",))],
            env=self.bare_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return Result(result.returncode, result.stdout, result.stderr)

    def snapshot(self, *, leave_out: Path | None = None) -> dict[str, tuple[int, int, bytes]]:
        """Return every file and folder below HOME: path, mode, time of change, content."""
        found = {}
        for path in self.home.rglob("*"):
            if leave_out is not None and (path == leave_out or leave_out in path.parents):
                continue
            status = path.lstat()
            if path.is_symlink():
                content = os.fsencode(path.readlink())
            else:
                content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found


def use_prepared_app(prepared: Machine, machine: Machine) -> None:
    """Give ``machine`` the finished program folders of ``prepared``, which spares building them.

    Their files are never written to, so hard links do.
    """
    machine.program.mkdir(mode=0o700, parents=True)
    shutil.copytree(
        prepared.program / "app", machine.program / "app", copy_function=os.link, dirs_exist_ok=True
    )
