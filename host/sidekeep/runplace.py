"""Where the session area of a browser run lies: in memory where the system offers it.

Rules:

* ``/run/user/<uid>``, else ``/dev/shm/sidekeep-<uid>``, else the temporary folder. By the user's
  number and not by the environment, so that all hosts of a user agree.
* Owner and mode are checked and a symbolic link is refused: other users can write into
  ``/dev/shm`` and into the temporary folder, too.
* The folder's name is a hash of profile and run token. A token that was never used before is a new
  run, and sees nothing of older ones. Folders of older runs of the same profile that nobody has
  open are removed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from sidekeep.errors import ForbiddenError
from sidekeep.places import extension_folder
from sidekeep.store.files import make_private_folder
from sidekeep.store.layout import hash_of
from sidekeep.store.locks import FileLock


def memory_root() -> str:
    """Return the folder of all session areas of this user, made if need be.

    ``ForbiddenError`` if somebody else owns it, or may write into it.
    """
    if sys.platform == "win32":  # not run; the user's own temporary folder
        import tempfile

        return os.path.join(tempfile.gettempdir(), "sidekeep")
    user = os.getuid()
    runtime = f"/run/user/{user}"
    if _is_private(runtime, user):
        return _made(os.path.join(runtime, "sidekeep"), user)
    if os.path.isdir("/dev/shm"):  # noqa: S108 - checked below
        return _made(f"/dev/shm/sidekeep-{user}", user)  # noqa: S108
    import tempfile

    return _made(os.path.join(tempfile.gettempdir(), f"sidekeep-{user}"), user)


def _is_private(folder: str, user: int) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    mode = stat.S_IMODE(found.st_mode)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == user and not mode & 0o077


def _made(folder: str, user: int) -> str:
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if not _is_private(folder, user):
        raise ForbiddenError(
            f"The folder {folder} does not belong to you alone.",
            next=f"remove it, or make it yours with mode 0700: {folder}",
        )
    return folder


def run_folder(root: str, extension: str, profile: str, run: str) -> str:
    """Return the folder of the session area of one browser run."""
    place = hash_of(profile.encode()).hex()[:24]
    return os.path.join(
        extension_folder(root, extension), f"{place}-{hash_of(run.encode()).hex()[:24]}"
    )


def remove_dead_runs(folder: str) -> int:
    """Remove the session areas of older runs of the profile that ``folder`` belongs to.

    Those that some process still has open stay. Returns how many went.
    """
    parent, mine = os.path.split(folder)
    prefix = mine.split("-")[0] + "-"
    gone = 0
    for name in os.listdir(parent) if os.path.isdir(parent) else ():
        if name.startswith(prefix) and name != mine:
            gone += _remove_if_unused(os.path.join(parent, name))
    return gone


def _remove_if_unused(folder: str) -> bool:
    try:
        lock = FileLock(os.path.join(folder, "use.lock"), "using this session area")
    except FileNotFoundError:  # another process has just removed it
        return False
    try:
        if not lock.try_acquire():
            return False
        import shutil

        shutil.rmtree(folder)
        return True
    finally:
        lock.close()


def prepare(extension: str, profile: str, run: str) -> str:
    """Return the folder for the session area of this run; older runs' areas are removed."""
    folder = run_folder(memory_root(), extension, profile, run)
    if not os.path.isdir(folder):
        remove_dead_runs(folder)
    make_private_folder(folder)
    return folder
