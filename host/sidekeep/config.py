"""The part of the configuration that a host reads at start.

Rules of this module: it imports msgspec and the errors and nothing else, since every host pays for
it before its first reply; it never writes (``sidekeep.ops`` writes the file and checks it more
strictly); an unreadable file is a sentence, not a traceback.
"""

from __future__ import annotations

import msgspec

from sidekeep.errors import UnavailableError


class HostConfig(msgspec.Struct, frozen=True):
    """What ``config.json`` says.

    ``data_dir`` is an absolute path. ``extensions`` holds bare ids: 32 letters a-p for Chromium,
    the add-on id for Firefox. ``map_size`` is the first size of the memory map and ``max_size`` the
    largest size of a store, both in bytes; ``None`` leaves the choice to the store.
    """

    version: int
    data_dir: str
    extensions: list[str]
    map_size: int | None = None
    max_size: int | None = None


def load_host_config(path: str) -> HostConfig:
    """Read the configuration file at ``path``.

    Raises ``UnavailableError`` with one sentence if it cannot be read, is not the expected JSON or
    belongs to a version that this host does not know.
    """
    repair = "Run install.sh again; it writes this file."
    try:
        with open(path, "rb") as file:  # a host does not import pathlib
            config = msgspec.json.decode(file.read(), type=HostConfig)
    except OSError as error:
        raise UnavailableError(
            f"The configuration {path} cannot be read: {error.strerror}.", next=repair
        ) from error
    except msgspec.MsgspecError as error:
        raise UnavailableError(
            f"The configuration {path} is not what install.sh wrote: {error}.", next=repair
        ) from error
    if config.version != 1:
        raise UnavailableError(
            f"The configuration {path} has version {config.version}; this host knows version 1.",
            next="Install a newer Sidekeep.",
        )
    if not config.data_dir.startswith("/") and config.data_dir[1:3] not in {":\\", ":/"}:
        raise UnavailableError(
            f"The configuration {path} names a data folder that is not absolute.", next=repair
        )
    return config
