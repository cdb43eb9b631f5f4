"""What an earlier install left: its configuration and its list of registrations.

Rules of this module: standard library only, reads and never writes. ``config.json`` is the truth on
data and ids; ``registrations.json`` remembers which manifests were written and which ids a person
gave (as against the shipped extension's, which given ones replace).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sidekeep.errors import DamagedError, SidekeepError
from sidekeep.ops.browsers import Target
from sidekeep.ops.ids import CHROMIUM, DEMO_IDS, FIREFOX, family_of
from sidekeep.ops.launcher import Launch, read_launcher
from sidekeep.ops.places import Places


@dataclass(frozen=True)
class State:
    """An earlier install, or the absence of one (all fields empty)."""

    launch: Launch | None = None
    data_dir: Path | None = None
    extensions: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    map_size: int | None = None
    max_size: int | None = None
    targets: tuple[Target, ...] = ()


def read_state(places: Places) -> State:
    """Return what is installed.

    Raises ``DamagedError`` for files that are there and cannot be understood: guessing at the data
    folder could show an empty store in place of a full one.
    """
    config = _read(places.config)
    record = _read(places.registrations)
    try:
        extensions = [str(value) for value in config.get("extensions", ())]
        for value in extensions:
            family_of(value)
        given = record.get("given")
        if given is None:
            given = [value for value in extensions if value not in DEMO_IDS.values()]
        return State(
            launch=read_launcher(places.launcher),
            data_dir=Path(config["data_dir"]) if config else None,
            extensions=tuple(extensions),
            given=tuple(given),
            map_size=config.get("map_size"),
            max_size=config.get("max_size"),
            targets=tuple(
                Target(entry["title"], entry["family"], Path(entry["path"]).parent)
                for entry in record.get("manifests", ())
            ),
        )
    except (KeyError, TypeError, AttributeError, SidekeepError) as error:
        raise DamagedError(
            f"The files of the earlier install in {places.program} are not what was written: "
            f"{error}.",
            next=f"Mend or move away {places.config.name} and {places.registrations.name} there, "
            "then run install.sh again.",
        ) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DamagedError(
            f"{path} cannot be read: {error}.",
            next="Mend it or move it away, then run install.sh again.",
        ) from error
    if not isinstance(content, dict):
        raise DamagedError(f"{path} does not hold a JSON object.", next="Move it away.")
    return content


def allowed_ids(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids a host lets in: the given ones, and the shipped one where none is given.

    Per family of browsers, since a manifest without any id could never be used.
    """
    families = {family: [v for v in given if family_of(v) == family] for family in DEMO_IDS}
    return tuple(
        value
        for family in (CHROMIUM, FIREFOX)
        for value in (families[family] or [DEMO_IDS[family]])
    )
