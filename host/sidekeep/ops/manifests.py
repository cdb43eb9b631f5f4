"""Writing a host manifest and checking one that is there.

Rules of this module: a manifest is made from ``manifest/org.sidekeep.host.json`` and goes through
its model before it is written, atomically. The check is at least as strict as Chromium's, since a
check that passes what the browser refuses is worse than none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sidekeep.ops.browsers import Target, data_folder
from sidekeep.ops.files import make_folder, write_atomically
from sidekeep.ops.ids import CHROMIUM, family_of, origin
from sidekeep.ops.models import Manifest, manifest_model, sentences, to_bytes
from sidekeep.ops.places import MANIFEST_FILE


def make_manifest(family: str, launcher: Path, extensions: Iterable[str]) -> Manifest:
    """Return the manifest for a family of browsers, with its own among the ``extensions``."""
    template: dict[str, Any] = json.loads((data_folder() / MANIFEST_FILE).read_bytes())
    own = [value for value in extensions if family_of(value) == family]
    callers: dict[str, list[str]] = (
        {"allowed_origins": [origin(value) for value in own]}
        if family == CHROMIUM
        else {"allowed_extensions": own}
    )
    return manifest_model(family).model_validate({**template, "path": str(launcher), **callers})


def write_manifest(target: Target, launcher: Path, extensions: Iterable[str]) -> bool:
    """Write the manifest of ``target``; return whether anything had to change."""
    content = to_bytes(make_manifest(target.family, launcher, extensions))
    make_folder(target.folder)
    return write_atomically(target.manifest, content)


def read_manifest(path: Path, family: str) -> Manifest:
    """Return the manifest at ``path``; raises what ``check_manifest`` turns into sentences."""
    return manifest_model(family).model_validate(json.loads(path.read_bytes()))


def check_manifest(path: Path, family: str) -> list[str]:
    """Return, in sentences, what a browser of ``family`` would refuse in this manifest."""
    try:
        manifest = read_manifest(path, family)
    except OSError as error:
        return [f"cannot be read: {error.strerror}"]
    except ValidationError as error:
        return sentences(error)
    except ValueError as error:
        return [f"is not plain JSON: {error}"]
    problems = []
    if manifest.name != path.stem:
        problems.append(f"name: {manifest.name!r} is not the file's name")
    program = Path(manifest.path)
    if not program.is_file():
        problems.append(f"path: {program} is missing")
    elif not os.access(program, os.X_OK):
        problems.append(f"path: {program} may not be executed")
    return problems
