"""Which browsers are there and in which folders they look for manifests.

Rules of this module: standard library only; the browsers are data (``manifest/browsers.json``), so
another browser is another entry and no code; looking creates nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidekeep.errors import InvalidParams, UnavailableError
from sidekeep.ops.ids import CHROMIUM
from sidekeep.ops.places import MANIFEST_FILE, Places


@dataclass(frozen=True)
class Place:
    """One folder of manifests, and the folder whose presence tells that its browser is there."""

    root: Path
    manifests: Path


@dataclass(frozen=True)
class Sandbox:
    """A snap or flatpak of a browser that was found; such a browser cannot start our host."""

    title: str
    kind: str
    root: Path

    @property
    def advice(self) -> str:
        """What a user of that package can do."""
        return (
            f"not supported: the {self.kind} of {self.title} may not start programs outside its "
            f"sandbox. Install {self.title} as an ordinary package of your system or from its "
            "maker, then run install.sh again."
        )


@dataclass(frozen=True)
class Browser:
    """One browser or channel of the table, resolved for one user and system."""

    name: str
    title: str
    family: str
    places: tuple[Place, ...]
    second: tuple[str, ...]
    sandboxes: tuple[Sandbox, ...]
    system_folders: tuple[Path, ...]
    windows_key: str | None


@dataclass(frozen=True)
class Target:
    """One manifest to write: for whom, of which family, where."""

    title: str
    family: str
    folder: Path

    @property
    def manifest(self) -> Path:
        """The manifest's path."""
        return self.folder / MANIFEST_FILE


def data_folder() -> Path:
    """Return ``manifest/``: beside the package when installed, one folder up in a checkout."""
    beside = Path(__file__).resolve().parents[2]
    for candidate in (beside / "manifest", beside.parent / "manifest"):
        if (candidate / "browsers.json").is_file():
            return candidate
    raise UnavailableError(
        "The table of browsers, manifest/browsers.json, is missing.",
        next="Take a complete copy of Sidekeep and run install.sh again.",
    )


def read_table(places: Places, folder: Path | None = None) -> list[Browser]:
    """Return all browsers of the table with their paths on this system, in the table's order."""
    path = (folder or data_folder()) / "browsers.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["browsers"]
    return [_resolve(row, places) for row in rows]


def _resolve(row: dict[str, Any], places: Places) -> Browser:
    resolved: list[Place] = []
    for base in places.config_bases:
        for entry in row[places.system]:
            place = Place(
                _expand(entry["root"], places, base), _expand(entry["manifests"], places, base)
            )
            if place not in resolved:
                resolved.append(place)
    title: str = row["title"]
    return Browser(
        name=row["name"],
        title=title,
        family=row["family"],
        places=tuple(resolved),
        second=tuple(row.get("second", ())),
        sandboxes=tuple(
            Sandbox(title, entry["kind"], _expand(entry["root"], places, places.home))
            for entry in (row.get("sandboxes", ()) if places.system == "Linux" else ())
        ),
        system_folders=tuple(Path(text) for text in row.get("system", ())),
        windows_key=row.get("windows"),
    )


def _expand(text: str, places: Places, base: Path) -> Path:
    return Path(text.replace("{home}", str(places.home)).replace("{config}", str(base)))


def find_targets(
    table: Sequence[Browser], names: Sequence[str], user_data_dirs: Iterable[Path]
) -> list[Target]:
    """Return the manifests to write, without doubles.

    Without ``names``: one for each browser folder that exists. With ``names``: only for these
    browsers, also where no folder exists yet. ``user_data_dirs`` are folders of Chromium browsers
    started with ``--user-data-dir`` and come in addition. A browser's second places (folders of
    another browser that it reads too) are used where that other browser's folder exists.

    Raises ``InvalidParams`` for a name that the table does not have, or that has no folder on this
    system.
    """
    by_name = {browser.name: browser for browser in table}
    chosen = named_browsers(table, names) if names else list(table)
    found: list[Target] = []
    for browser in chosen:
        present = [place for place in browser.places if place.root.is_dir()]
        if names and not present:
            present = [browser.places[0]]
        found += [Target(browser.title, browser.family, place.manifests) for place in present]
        if present:
            found += _second_targets(browser, by_name)
    found += [
        Target(f"--user-data-dir {folder}", CHROMIUM, folder / "NativeMessagingHosts")
        for folder in user_data_dirs
    ]
    return _without_doubles(found)


def named_browsers(table: Sequence[Browser], names: Sequence[str]) -> list[Browser]:
    """Return the browsers of these names; ``InvalidParams`` for one that this system has not."""
    known = {browser.name: browser for browser in table if browser.places}
    for name in names:
        if name.lower() not in known:
            raise InvalidParams(
                f"{name!r} is no browser that Sidekeep knows on this system.",
                next=f"Known names: {', '.join(known)}.",
            )
    return [known[name.lower()] for name in names]


def _second_targets(browser: Browser, by_name: dict[str, Browser]) -> list[Target]:
    return [
        Target(
            f"{by_name[name].title} (read by {browser.title} too)", browser.family, place.manifests
        )
        for name in browser.second
        for place in by_name[name].places
        if place.root.is_dir()
    ]


def _without_doubles(targets: Iterable[Target]) -> list[Target]:
    """Keep one target for each real folder; a browser's own entry wins over a second place."""
    kept: dict[str, Target] = {}
    for target in targets:
        kept.setdefault(os.path.realpath(target.folder), target)
    return list(kept.values())


def find_sandboxes(table: Iterable[Browser]) -> list[Sandbox]:
    """Return the snaps and flatpaks of browsers that this user has."""
    return [sandbox for browser in table for sandbox in browser.sandboxes if sandbox.root.is_dir()]
