"""The small generated files between a browser and the host's Python code.

Rules of this module: standard library only; the texts are made from absolute paths alone, so equal
input gives equal bytes. A launcher ends in ``exec``: no shell stays between browser and host. It
names the real interpreter, never a virtual environment's, a shim or a name to look up in PATH,
since a browser started from a desktop has another PATH and environments get removed.

The host's launcher is also the switch between versions: one rename changes interpreter, program
folder and version at once.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

# Both sources run with -I -S: nothing of the user's environment or of site-packages is looked at;
# and with -X utf8: paths in JSON files mean the same bytes whatever the browser's locale is.
START = """\
import sys
app = __file__.rpartition("/")[0]
sys.path[:0] = [app, app + "/libs"]
from sidekeep.__main__ import main
sys.exit(main(sys.argv))
"""

COMMAND = """\
import sys
app = __file__.rpartition("/")[0]
sys.path[:0] = [app, app + "/libs", app + "/tools"]
from sidekeep.cli import main
main()
"""

# EX_UNAVAILABLE of sysexits.h.
EXIT_UNAVAILABLE = 69


@dataclass(frozen=True)
class Launch:
    """What a launcher starts: the interpreter and the program folder."""

    interpreter: Path
    app: Path

    @property
    def version(self) -> str:
        """The version in the program folder's name, ``<version>-<hash>``."""
        return self.app.name.rpartition("-")[0]


def real_interpreter() -> Path:
    """Return the running interpreter's own file, past virtual environments, shims and links."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    return _lasting(Path(os.path.realpath(base)))


def _lasting(interpreter: Path) -> Path:
    """Return Homebrew's path that outlives an update of Python, where there is one.

    ``…/Cellar/python@3.12/3.12.4/…`` goes away with the next patch release, ``…/opt/python@3.12/…``
    is a link that Homebrew keeps pointing to the newest one.
    """
    parts = interpreter.parts
    if "Cellar" in parts:
        at = parts.index("Cellar")
        if len(parts) > at + 3:
            lasting = Path(*parts[:at], "opt", parts[at + 1], *parts[at + 3 :])
            if lasting.exists() and lasting.samefile(interpreter):
                return lasting
    return interpreter


def launcher_text(launch: Launch, start: str, arguments: list[str]) -> bytes:
    """Return the POSIX shell text that becomes ``interpreter … app/start arguments "$@"``.

    If the interpreter or the program folder is gone it says so in one line on standard error, with
    nothing on standard output, and ends with 69.
    """
    words = " ".join(shlex.quote(word) for word in arguments)
    text = f"""\
#!/bin/sh
# Written by Sidekeep's install.sh. Run install.sh again instead of changing this file.
python={shlex.quote(str(launch.interpreter))}
app={shlex.quote(str(launch.app))}
if [ ! -x "$python" ]; then
  printf 'sidekeep: the Python interpreter %s is missing; re-run install.sh\\n' "$python" >&2
  exit {EXIT_UNAVAILABLE}
fi
if [ ! -r "$app/{start}" ]; then
  printf 'sidekeep: the program folder %s is missing; re-run install.sh\\n' "$app" >&2
  exit {EXIT_UNAVAILABLE}
fi
exec "$python" -I -S -X utf8 "$app/{start}"{" " if words else ""}{words} "$@"
"""
    return os.fsencode(text)


def read_launcher(path: Path) -> Launch | None:
    """Return what the launcher at ``path`` starts, or ``None`` if it is no launcher of ours."""
    try:
        lines = os.fsdecode(path.read_bytes()).splitlines()
    except OSError:
        return None
    found: dict[str, Path] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and name in {"python", "app"}:
            words = shlex.split(value)
            if len(words) == 1:
                found[name] = Path(words[0])
    if "python" in found and "app" in found:
        return Launch(found["python"], found["app"])
    return None
