"""Wheels made from the libraries that the tests run with, so that pip works without a network."""

from __future__ import annotations

import hashlib
import re
import zipfile
from importlib import metadata
from pathlib import Path


def pack(name: str, folder: Path) -> tuple[str, str, str]:
    """Pack the installed distribution ``name`` as a wheel; return (name, version, sha256)."""
    distribution = metadata.distribution(name)
    tag = re.search(r"^Tag: (.+)$", distribution.read_text("WHEEL") or "", re.M)
    assert tag is not None
    stem = re.sub(r"[-_.]+", "_", name)
    wheel = folder / f"{stem}-{distribution.version}-{tag.group(1)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for entry in distribution.files or ():
            path = Path(str(distribution.locate_file(entry)))
            if ".." in entry.parts or "__pycache__" in entry.parts or not path.is_file():
                continue
            # What pip itself adds when it installs.
            if entry.name in {"INSTALLER", "REQUESTED", "direct_url.json"}:
                continue
            archive.write(path, str(entry))
    return name, distribution.version, hashlib.sha256(wheel.read_bytes()).hexdigest()


def use_local_wheels(checkout: Path, folder: Path) -> dict[str, str]:
    """Make wheels of all that ``checkout`` locks, lock these, and return pip's environment."""
    folder.mkdir()
    for lock in ("host.txt", "tools.txt"):
        path = checkout / "requirements" / lock
        names = re.findall(r"^([a-z0-9-]+)==", path.read_text("utf-8"), re.M)
        packed = [pack(name, folder) for name in names]
        path.write_text(
            "".join(
                f"{name}=={version} \\\n    --hash=sha256:{digest}\n"
                for name, version, digest in packed
            ),
            encoding="utf-8",
        )
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder)}
