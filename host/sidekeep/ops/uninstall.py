"""Takes Sidekeep away again, and leaves the data.

Rules of this module: standard library only, so that it works where the libraries are broken.
Manifests go first, so that nothing points at a missing program; only manifests that name this
launcher are removed. The data folder is never touched.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from sidekeep.errors import DamagedError
from sidekeep.ops.browsers import find_targets, read_table
from sidekeep.ops.files import remove_empty, write_atomically
from sidekeep.ops.places import MANIFEST_FILE, Places
from sidekeep.ops.state import State, read_state


def uninstall(places: Places) -> list[str]:
    """Remove manifests, launcher, command and program; return what was done, in sentences."""
    lines: list[str] = []
    try:
        before = read_state(places)
    except DamagedError as error:
        before = State()
        lines.append(f"{error.message} It is left where it is.")
    lines += remove_manifests(places, known_manifests(places, before))
    link = places.command_link
    if link.is_symlink() and link.readlink() == places.command:
        link.unlink()
        lines.append(f"removed {link}")
    for folder in (places.launcher.parent, places.apps):
        if folder.is_dir():
            shutil.rmtree(folder)
            lines.append(f"removed {folder}")
    lines += _leave_configuration(places, before)
    for leftover in (places.registrations, places.lock):
        leftover.unlink(missing_ok=True)
    if places.program.is_dir():
        remove_empty(places.program)
    return lines


def describe(places: Places) -> list[str]:
    """Return what ``uninstall`` would do, in sentences; nothing is touched."""
    before = read_state(places)
    lines = [
        f"would remove {manifest}"
        for manifest in known_manifests(places, before)
        if _starts_ours(places, manifest)
    ]
    things = (places.command_link, places.launcher.parent, places.apps)
    lines += [f"would remove {thing}" for thing in things if thing.is_symlink() or thing.exists()]
    data_dir = before.data_dir
    if data_dir is not None and data_dir.exists():
        lines.append(f"your data would stay in {data_dir}")
    return lines or ["Sidekeep is not installed here; there is nothing to remove"]


def _starts_ours(places: Places, manifest: Path) -> bool:
    """Whether the manifest is there and names our launcher."""
    try:
        content = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("path") == str(places.launcher)


def known_manifests(places: Places, before: State) -> list[Path]:
    """Return where manifests of ours may lie: recorded ones and every folder of the table."""
    table = read_table(places)
    everywhere = [place.manifests / MANIFEST_FILE for browser in table for place in browser.places]
    detected = [target.manifest for target in find_targets(table, (), ())]
    recorded = [target.manifest for target in before.targets]
    return list(dict.fromkeys([*recorded, *detected, *everywhere]))


def remove_manifests(places: Places, manifests: Iterable[Path]) -> list[str]:
    """Remove those manifests that name our launcher; return what was done, in sentences."""
    lines = []
    for manifest in manifests:
        if not manifest.is_file():
            continue
        if _starts_ours(places, manifest):
            manifest.unlink()
            remove_empty(manifest.parent)
            lines.append(f"removed {manifest}")
        else:
            lines.append(f"left {manifest}: it starts something else")
    return lines


def _leave_configuration(places: Places, before: State) -> list[str]:
    """Remove the configuration, unless it alone remembers where the data lies."""
    data_dir = before.data_dir
    if data_dir is None:
        return []
    if data_dir == places.default_data or not data_dir.exists():
        places.config.unlink(missing_ok=True)
    else:
        config = json.loads(places.config.read_bytes())
        config["extensions"] = []
        content = (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode()
        write_atomically(places.config, content, 0o600)
    if not data_dir.exists():
        return ["there was no data"]
    return [f"your data stays in {data_dir}; delete that folder if you no longer want it"]
