"""Folders and files that belong to their owner alone, from their first byte on."""

from __future__ import annotations

import contextlib
import os

from sidekeep.errors import DiskFullError, SidekeepError, UnavailableError

ERRNO_NO_SPACE = 28


def make_private_folder(folder: str) -> None:
    """Make the folder and its missing parents, each for its owner alone from the first moment."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    if parent != folder:
        make_private_folder(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)


def write_private_file(path: str, content: bytes) -> None:
    """Write a file for its owner alone, all of it or nothing of it."""
    unfinished = f"{path}.{os.getpid()}.new"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(unfinished, path)


def reserve(path: str, size: int) -> None:
    """Make a private file of at least ``size`` bytes that really has its place on the disk.

    Where the system cannot promise that (macOS, Windows), nothing is done.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def sync_folder(folder: str) -> None:
    """Make renames in the folder survive a power cut (where the system can open folders)."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unusable_folder(folder: str, error: OSError) -> SidekeepError:
    """Return the error that says why a folder cannot be used."""
    if error.errno == ERRNO_NO_SPACE:
        return DiskFullError(
            f"The disk has no room for the folder {folder}.", next="free space on that disk"
        )
    return UnavailableError(
        f"The folder {folder} cannot be used: {error.strerror}.",
        next="see to it that the folder belongs to you and can be written",
    )
