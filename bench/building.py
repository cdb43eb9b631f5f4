"""Make the hosts to compare with, in a temporary folder: C ones compiled here, a bare Python one.

Every host is a command list that a browser or ``stdio.py`` starts. Rules: the C hosts are built
with the system's ``cc -O2``; the bare Python host has the interpreter, the flags and the search
path of Sidekeep's own launcher, so that only what Sidekeep itself adds differs.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

HOSTS = Path(__file__).resolve().parent / "hosts"

_BARE_START = """\
import sys
sys.path[:0] = {folders!r}
from bare import main
main()
"""


def compile_host(name: str, folder: Path) -> Path:
    """Compile ``hosts/<name>.c`` into ``folder`` and return the program.

    Raises ``SystemExit`` with a sentence when there is no C compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("The comparison hosts need a C compiler (cc); install gcc or clang.")
    program = folder / name
    source = HOSTS / f"{name}.c"
    subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-o", program, source], check=True)
    return program


def bare_host(folder: Path, interpreter: list[str], libraries: Path) -> list[str]:
    """Return the command of the bare Python host.

    ``interpreter``: program and flags; ``libraries``: the folder that holds lmdb and msgspec.
    """
    module = folder / "bare" / "bare.py"
    module.parent.mkdir()
    shutil.copy(HOSTS / "bare.py", module)  # its compiled form lies beside it from the first start
    start = folder / "bare" / "start.py"
    folders = [str(module.parent), str(libraries)]
    start.write_text(_BARE_START.format(folders=folders), encoding="utf-8")
    return [*interpreter, str(start)]
