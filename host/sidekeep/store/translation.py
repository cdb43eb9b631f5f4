"""Errors of LMDB and of the system, as callers understand them."""

from __future__ import annotations

import os

import lmdb

from sidekeep.errors import DiskFullError, SidekeepError, UnavailableError
from sidekeep.store.files import ERRNO_NO_SPACE
from sidekeep.store.transaction import BROKEN, damaged


def translated(error: lmdb.Error | OSError, path: str, folder: str) -> SidekeepError:
    """Return the error that a caller understands. ``folder``: what was written to.

    LMDB reports a full disk as ``DiskError`` or as a bare input/output error of the commit.
    """
    if isinstance(error, (*BROKEN, lmdb.VersionMismatchError)):
        return damaged(f"The data file {path} is damaged ({error}).")
    space = os.statvfs(folder)
    number = getattr(error, "errno", None)
    no_room = number == ERRNO_NO_SPACE or isinstance(error, lmdb.DiskError)
    text = str(error)
    if no_room or "No space" in text or "Input/output error" in text:
        free = space.f_bavail * space.f_frsize
        return DiskFullError(
            f"The disk has no room for the change ({free} bytes are free at {folder}).",
            next="free space on that disk; what was stored before is intact",
            free=free,
        )
    return UnavailableError(f"The data file {path} cannot be used: {error}.")
