"""Writing files so that a reader sees the old one or the new one, never half of one.

Rules of this module: standard library only; a file whose bytes and mode are already right is not
touched, so that a second run changes nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> bool:
    """Make ``path`` hold ``content`` with ``mode``; return whether anything had to change.

    The folder must exist. The content is on the disk before the name points to it.
    """
    if same_file(path, content, mode):
        return False
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return True


def same_file(path: Path, content: bytes, mode: int) -> bool:
    """Return whether ``path`` is a plain file with exactly these bytes and this mode."""
    try:
        status = path.lstat()
        return (
            stat.S_ISREG(status.st_mode)
            and stat.S_IMODE(status.st_mode) == mode
            and path.read_bytes() == content
        )
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Make renames in ``folder`` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Create ``folder`` and its parents; ``mode`` is for the last one if it is new."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=mode)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is there and is not a folder")


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` (created when missing), waiting for another holder to finish."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write("another install is running; waiting for it to end\n")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def remove_empty(folder: Path) -> None:
    """Remove ``folder`` if nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()
