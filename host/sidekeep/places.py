"""Which folder belongs to which extension and profile.

Rule: nothing a message says can name a path. The extension's id comes from the browser and is one
of those allowed at install; a profile is a checked word, and its hash names the folder (so that
file systems that do not tell letter cases apart cannot mix two profiles).
"""

from __future__ import annotations

import os
import re

from sidekeep.errors import InvalidParams
from sidekeep.store.layout import hash_of

_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHROMIUM_ID = re.compile(r"[a-p]{32}")
_ORIGIN = re.compile(r"chrome-extension://([a-p]{32})/")


def checked_word(name: str, word: str) -> str:
    """Return ``word`` if it may name a profile, run or client; else ``InvalidParams``."""
    if not _WORD.fullmatch(word):
        raise InvalidParams(
            f"{name} must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -.",
        )
    return word


def caller(arguments: list[str]) -> str | None:
    """Return the id of the extension that the browser's arguments name, or ``None``.

    Chromium gives the origin first (``chrome-extension://<id>/``); Firefox gives the path of the
    host manifest and then the add-on's id.
    """
    if not arguments:
        return None
    origin = _ORIGIN.fullmatch(arguments[0])
    if origin:
        return origin.group(1)
    if len(arguments) >= 2 and arguments[0].endswith(".json"):
        return arguments[1]
    return None


def extension_folder(data_dir: str, extension: str) -> str:
    """Return the folder of all stores of an extension."""
    if _CHROMIUM_ID.fullmatch(extension):
        return os.path.join(data_dir, extension)
    # A Firefox id holds characters such as @ and { that not every file system likes.
    readable = re.sub(r"[^A-Za-z0-9._-]", "_", extension)[:40].strip("._") or "extension"
    return os.path.join(data_dir, f"{readable}-{hash_of(extension.encode()).hex()[:16]}")


def store_folder(data_dir: str, extension: str, profile: str) -> str:
    """Return the folder of the store of an extension's profile (a checked word)."""
    return os.path.join(extension_folder(data_dir, extension), hash_of(profile.encode()).hex()[:32])
