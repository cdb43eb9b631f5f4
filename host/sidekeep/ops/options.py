"""The options of install.sh, checked before anything else happens.

Rules of this module: standard library only; a wrong option is refused here, while nothing has been
written yet. install.sh itself knows only ``--python``, ``--help`` and the system's name.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sidekeep.errors import InvalidParams
from sidekeep.ops.ids import ExtensionId, parse_extension_id
from sidekeep.ops.places import is_plain


@dataclass(frozen=True)
class Options:
    """What the user asked for. Paths are absolute."""

    ids: tuple[ExtensionId, ...] = ()
    browsers: tuple[str, ...] = ()
    user_data_dirs: tuple[Path, ...] = ()
    data_dir: Path | None = None
    dry_run: bool = False
    uninstall: bool = False


@dataclass
class _Arguments(argparse.Namespace):
    system: str = ""
    extension_id: list[str] = field(default_factory=list)
    browser: list[str] = field(default_factory=list)
    user_data_dir: list[str] = field(default_factory=list)
    data_dir: str | None = None
    dry_run: bool = False
    uninstall: bool = False


def parse_arguments(arguments: Sequence[str]) -> tuple[str, Options]:
    """Return the system's name and the options; raises ``InvalidParams`` with the reason.

    An unknown option ends the process with 2, as argparse does it.
    """
    parser = argparse.ArgumentParser(prog="install.sh", allow_abbrev=False, add_help=False)
    parser.add_argument("--system", required=True)
    parser.add_argument("--extension-id", action="append", metavar="ID")
    parser.add_argument("--browser", action="append", metavar="NAME")
    parser.add_argument("--user-data-dir", action="append", metavar="DIR")
    parser.add_argument("--data-dir", metavar="DIR")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--uninstall", action="store_true")
    given = parser.parse_args(arguments, namespace=_Arguments())
    return given.system, make_options(
        ids=given.extension_id,
        browsers=given.browser,
        user_data_dirs=given.user_data_dir,
        data_dir=given.data_dir,
        dry_run=given.dry_run,
        uninstall=given.uninstall,
    )


def make_options(
    *,
    ids: Sequence[str] = (),
    browsers: Sequence[str] = (),
    user_data_dirs: Sequence[str] = (),
    data_dir: str | None = None,
    dry_run: bool = False,
    uninstall: bool = False,
) -> Options:
    """Return checked options from the words a person gave; raises ``InvalidParams``."""
    return Options(
        ids=tuple(dict.fromkeys(parse_extension_id(text) for text in ids)),
        browsers=tuple(dict.fromkeys(browsers)),
        user_data_dirs=tuple(
            dict.fromkeys(_folder("--user-data-dir", text) for text in user_data_dirs)
        ),
        data_dir=None if data_dir is None else _folder("--data-dir", data_dir),
        dry_run=dry_run,
        uninstall=uninstall,
    )


def _folder(option: str, text: str) -> Path:
    if not text or not is_plain(text):
        raise InvalidParams(f"{option} needs the path of a folder, not {text!r}.")
    path = Path(text).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise InvalidParams(f"{option} {path} is there and is not a folder.")
    return path
