"""Small disks for tests: a tmpfs of a few MiB that a host sees, without touching the system's.

As root the tmpfs is mounted for the length of a block. Otherwise the host is started in a user
and mount namespace of its own, in which anybody may mount one; where the system forbids that too
the test fails and says so, since a full disk that was never tried is not a passed test.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[list[str]]:
    """Make ``folder`` a disk of ``size`` bytes, as seen by commands with the given prefix.

    Yields the words to put before a command so that it sees that disk: none if it is mounted for
    all. A second command with the prefix may see another, empty disk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() == 0 and subprocess.run(["mount", *options], check=False).returncode == 0:
        try:
            yield []
        finally:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        return
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    script = 'folder=$1; size=$2; shift 2; mount -t tmpfs -o "size=$size,mode=0700" tmpfs "$folder"'
    words = [*prefix, f'{script} && exec "$@"', "sh", str(folder), str(size)]
    if subprocess.run([*words, "true"], check=False).returncode != 0:
        pytest.fail("no small disk can be mounted here, neither as root nor in a namespace")
    yield words
