"""Proving registrations: a manifest is believed when a host started through it worked.

Rules of this module: what is started is the ``path`` that the manifest names, read from the file as
a browser reads it, once for each extension of its family.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sidekeep.ops.ids import family_of
from sidekeep.ops.probe import Caller, outcome

WORKS = "works: kept a value over a kill and a new start"


def prove_manifest(
    manifest: Path, family: str, extensions: Iterable[str], home: Path, data_dir: Path
) -> str:
    """Return why the host behind ``manifest`` does not work for one of its ids, or nothing."""
    try:
        launcher = Path(json.loads(manifest.read_bytes())["path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the manifest cannot be read: {error}"
    own = [value for value in extensions if family_of(value) == family]
    return prove_launcher(launcher, manifest, own, home, data_dir)


def prove_launcher(
    launcher: Path, manifest: Path, extensions: Iterable[str], home: Path, data_dir: Path
) -> str:
    """Return why ``launcher`` does not work for one of these ids, or nothing."""
    for extension in extensions:
        problem = outcome(launcher, Caller(extension, manifest), home, data_dir)
        if problem:
            return f"{extension}: {problem}"
    return ""
