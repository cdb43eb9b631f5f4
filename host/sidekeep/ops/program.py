"""The program folder: one folder per version that nothing outside it is needed for.

Rules of this module: standard library only. A folder ``app/<version>-<hash>`` appears complete, by
one rename, or not at all; the hash covers everything it is made from, the interpreter's binary
interface included, so equal input means the same folder and a finished one is never written to.
Running hosts keep their folder: the previous one stays, and one that a process still uses.

In it: ``sidekeep/`` and ``manifest/``; ``libs/`` with lmdb and msgspec alone, since
typing_extensions beside msgspec costs each host 14 ms at start; ``tools/`` for the command;
``start.py`` and ``command.py``; ``contents.json`` with the hash of every file.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from sidekeep import __version__
from sidekeep.errors import ConflictError, UnavailableError
from sidekeep.ops.files import sync_folder
from sidekeep.ops.launcher import COMMAND, START, real_interpreter
from sidekeep.ops.libraries import copy_files, find_importable, install_with_pip, read_pins

CONTENTS = "contents.json"
HOST_LOCK = "host.txt"
TOOLS_LOCK = "tools.txt"
_LIBRARIES = {"libs": HOST_LOCK, "tools": TOOLS_LOCK}

# Run by the interpreter that the launcher will name, with its flags. It proves that each library is
# importable from this folder, not merely somewhere.
_CHECK = """\
import sys
app = sys.argv[1]
sys.path[:0] = [app, app + "/libs", app + "/tools"]
import lmdb, msgspec, click, rich.table, pydantic, sidekeep
for module in (lmdb, msgspec, click, rich.table, pydantic, sidekeep):
    if not module.__file__.startswith(app + "/"):
        sys.exit(f"{module.__name__} comes from {module.__file__}")
"""


def source_root() -> Path:
    """Return the checkout (or archive) this code runs from; raises ``UnavailableError``."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "requirements" / HOST_LOCK).is_file():
        raise UnavailableError(
            "This command runs from an installed copy, which cannot install itself.",
            next="Run install.sh from a checkout or a downloaded archive.",
        )
    return root


def program_name(root: Path) -> str:
    """Return ``<version>-<hash>`` for what would be installed from ``root`` by this interpreter."""
    digest = hashlib.sha256()
    binary = (sys.implementation.cache_tag, sysconfig.get_config_var("SOABI"), sys.platform)
    digest.update(repr(binary).encode())
    digest.update((START + COMMAND).encode())
    for file in _sources(root):
        relative = file.relative_to(root).as_posix()
        digest.update(f"{relative}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:16]}"


def _sources(root: Path) -> list[Path]:
    """Return what a program folder is made from, in a fixed order."""
    files = [
        file
        for folder in (root / "host" / "sidekeep", root / "manifest")
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]
    files += [root / "requirements" / name for name in (HOST_LOCK, TOOLS_LOCK)]
    return sorted(files)


def is_complete(app: Path) -> bool:
    """Return whether every file of ``app`` is there as it was installed."""
    try:
        listed: dict[str, str] = json.loads((app / CONTENTS).read_bytes())
        return all(_hash(app / name) == value for name, value in listed.items())
    except (OSError, ValueError):
        return False


def build(root: Path, apps: Path, name: str) -> Path:
    """Make the program folder ``apps/name`` if it is not there yet, and return it.

    Raises ``UnavailableError`` if a library cannot be had; then nothing but temporary files was
    written, and they are gone again.
    """
    final = apps / name
    if is_complete(final):
        return final
    staging = Path(tempfile.mkdtemp(prefix=".new-", dir=apps))
    try:
        _fill(staging, root)
        if final.exists():
            # Damaged by somebody: hosts that run from it keep their open files.
            damaged = Path(tempfile.mkdtemp(prefix=".damaged-", dir=apps))
            final.rename(damaged / name)
            shutil.rmtree(damaged)
        staging.chmod(0o755)
        staging.rename(final)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    sync_folder(apps)
    return final


def _fill(staging: Path, root: Path) -> None:
    no_compiled = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(root / "host" / "sidekeep", staging / "sidekeep", ignore=no_compiled)
    shutil.copytree(root / "manifest", staging / "manifest", ignore=no_compiled)
    (staging / "start.py").write_text(START, encoding="utf-8")
    (staging / "command.py").write_text(COMMAND, encoding="utf-8")
    _put_libraries(root, staging)
    # Unchecked: a host must not look at each source before its first reply, and the files of a
    # program folder never change.
    compiled = compileall.compile_dir(
        staging,
        maxlevels=20,
        quiet=2,
        force=True,
        stripdir=str(staging),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if not compiled:
        raise UnavailableError("A file of the program cannot be compiled by this Python.")
    contents = {
        file.relative_to(staging).as_posix(): _hash(file)
        for file in sorted(staging.rglob("*"))
        if file.is_file()
    }
    (staging / CONTENTS).write_text(json.dumps(contents, indent=0), encoding="utf-8")
    os.sync()


def _put_libraries(root: Path, staging: Path) -> None:
    """Copy the libraries or let pip install them, and see the launcher's interpreter import them.

    Copies that it cannot import (made for another interpreter) are replaced by pip's.
    """
    copied = False
    for name, lock_name in _LIBRARIES.items():
        lock_file, target = root / "requirements" / lock_name, staging / name
        target.mkdir()
        files = find_importable(read_pins(lock_file))
        if files is None:
            install_with_pip(lock_file, target)
        else:
            copy_files(files, target)
            copied = True
    problem = _check(staging)
    if problem and copied:
        for name, lock_name in _LIBRARIES.items():
            shutil.rmtree(staging / name)
            install_with_pip(root / "requirements" / lock_name, staging / name)
        problem = _check(staging)
    if problem:
        raise UnavailableError(
            f"The libraries do not work with {real_interpreter()}: {problem}",
            next="Choose another Python with --python.",
        )


def _check(app: Path) -> str:
    """Return why the launcher's interpreter cannot import the program, or an empty string."""
    command = [str(real_interpreter()), "-I", "-S", "-B", "-c", _CHECK, str(app)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode == 0:
        return ""
    lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    return lines[-1]


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version like ``1.10.2``, which sort by age."""
    return tuple(int(digits) for digits in re.findall(r"\d+", version))


def refuse_downgrade(installed: str) -> None:
    """Raise ``ConflictError`` if ``installed`` is newer than the version of this code."""
    if version_key(installed) > version_key(__version__):
        raise ConflictError(
            f"Sidekeep {installed} is installed, which is newer than this {__version__}; "
            "nothing was changed.",
            next="Use the newer installer, or remove Sidekeep first with --uninstall (the data "
            "stays).",
        )


def remove_unused(apps: Path, current: Path, previous: Path | None) -> list[Path]:
    """Remove program folders that nobody needs, and what a killed install left; return them.

    ``current`` and ``previous`` stay, as does a folder that a running process was started from.
    Without a ``previous`` the newest other folder stays, so that a second run removes nothing.
    """
    others = [folder for folder in apps.iterdir() if folder.is_dir() and folder != current]
    finished = [folder for folder in others if not folder.name.startswith(".")]
    if previous is None or previous not in finished:
        previous = max(finished, key=lambda folder: folder.stat().st_mtime_ns, default=None)
    commands = _running_commands()
    removed = []
    for folder in others:
        if folder == previous or str(folder) in commands:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    return removed


def _running_commands() -> str:
    """Return the command lines of all processes."""
    process = Path("/proc")
    if (process / "self" / "cmdline").exists():
        lines = []
        for entry in process.glob("[0-9]*/cmdline"):
            try:
                lines.append(os.fsdecode(entry.read_bytes()))
            except OSError:
                continue  # it ended meanwhile, or belongs to another user
        return "\n".join(lines)
    command = ["/bin/ps", "-axww", "-o", "command="]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
