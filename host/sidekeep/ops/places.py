"""Where Sidekeep keeps its own files on this system.

Rules of this module: standard library only; nothing is created here; every path is absolute. The
system is told by the caller (install.sh asks ``uname``), so that the paths of macOS can be tried
elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sidekeep.errors import UnavailableError

HOST_NAME = "org.sidekeep.host"
MANIFEST_FILE = f"{HOST_NAME}.json"
SYSTEMS = ("Linux", "Darwin")


@dataclass(frozen=True)
class Places:
    """The user's folders, and the program home with what lies in it.

    ``config_bases``: where browsers keep their folders, best first. On Linux that is
    ``XDG_CONFIG_HOME`` and ``~/.config``, on macOS ``~/Library/Application Support``.
    """

    system: str
    home: Path
    program: Path
    config_bases: tuple[Path, ...]

    def with_program(self, program: Path) -> Places:
        """Return the same places around another program home."""
        return replace(self, program=program)

    @property
    def apps(self) -> Path:
        """Holds one folder per installed version."""
        return self.program / "app"

    @property
    def launcher(self) -> Path:
        """What every manifest names as its ``path``."""
        return self.program / "bin" / "sidekeep-host"

    @property
    def command(self) -> Path:
        """The ``sidekeep`` command."""
        return self.program / "bin" / "sidekeep"

    @property
    def command_link(self) -> Path:
        """Where a shell finds the command."""
        return self.home / ".local" / "bin" / "sidekeep"

    @property
    def config(self) -> Path:
        """What the host reads at start."""
        return self.program / "config.json"

    @property
    def registrations(self) -> Path:
        """What was registered where, for updates and for removal."""
        return self.program / "registrations.json"

    @property
    def lock(self) -> Path:
        """Held while files of the program home change."""
        return self.program / ".install.lock"

    @property
    def default_data(self) -> Path:
        """The stores' folder unless ``--data-dir`` moves it."""
        return self.program / "data"


def find_places(system: str, environment: Mapping[str, str]) -> Places:
    """Return the places for ``system`` (as ``uname -s`` says) and the given environment.

    Relative values of ``XDG_*`` count as unset, as the XDG base directory specification asks.
    Raises ``UnavailableError`` for another system or without an absolute ``HOME``.
    """
    if system not in SYSTEMS:
        raise UnavailableError(
            f"install.sh knows Linux and macOS (Darwin), not {system!r}.",
            next="On Windows registration is not ready yet.",
        )
    home_text = environment.get("HOME", "")
    if not home_text.startswith("/"):
        raise UnavailableError("HOME is not set to an absolute path.", next="Set HOME and retry.")
    data_text = environment.get("XDG_DATA_HOME", "")
    if not (is_plain(home_text) and is_plain(data_text)):
        raise UnavailableError(
            "HOME or XDG_DATA_HOME holds control characters or is not UTF-8, which a manifest "
            "cannot carry.",
            next="Set them to other folders and retry.",
        )
    home = Path(home_text)
    if system == "Darwin":
        support = home / "Library" / "Application Support"
        return Places(system, home, support / "Sidekeep", (support,))
    data = _xdg(environment, "XDG_DATA_HOME", home / ".local" / "share")
    bases = [_xdg(environment, "XDG_CONFIG_HOME", home / ".config")]
    if home / ".config" not in bases:
        bases.append(home / ".config")
    return Places(system, home, data / "sidekeep", tuple(bases))


def is_plain(path: str) -> bool:
    """Return whether a path can stand in a JSON file and on a line of a shell script."""
    return path.isprintable() and not any("\ud800" <= letter <= "\udfff" for letter in path)


def _xdg(environment: Mapping[str, str], name: str, default: Path) -> Path:
    value = environment.get(name, "")
    return Path(os.path.normpath(value)) if value.startswith("/") else default
