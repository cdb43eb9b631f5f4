"""How many pictures a turn may bring along.

Source of the rules: the reference's limits (§19 of its description): at most 8 pictures with 3 MiB
of URLs together, the first that fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sidekeep.store import tokens

MOST_IMAGES = 8
MOST_BYTES = 3 * 1024 * 1024

Refusal = Literal["shape", "count", "size", "budget"]


def refusal(
    url: object,
    count: int,
    used: int,
    images: int = MOST_IMAGES,
    bytes: int = MOST_BYTES,
) -> Refusal | None:
    """Return why a picture may not join a turn that has ``count`` with ``used`` characters.

    ``shape``: it is no ``http(s)`` or ``data:image/`` URL, nor a token of a picture. ``count``:
    there are enough. ``size``: it is too large for any turn. ``budget``: for what is left of this.
    """
    size = _size(url)
    if size is None:
        return "shape"
    if count >= images:
        return "count"
    if size > bytes:
        return "size"
    return "budget" if used + size > bytes else None


def trimmed_picture(url: str) -> str | None:
    """Return a picture's URL without white space around it, ``None`` if it is none at all."""
    return None if _size(url) is None else url.strip()


def admitted(
    urls: Iterable[object] | None,
    images: int = MOST_IMAGES,
    bytes: int = MOST_BYTES,
) -> tuple[list[str], int]:
    """Return the URLs, trimmed, that may go with a turn, and how many others there were.

    One that does not fit is passed over, and smaller ones behind it may still fit.
    """
    kept: list[str] = []
    used = dropped = 0
    for url in urls or ():
        if isinstance(url, str) and refusal(url, len(kept), used, images, bytes) is None:
            kept.append(url.strip())
            used += _size(url) or 0
        else:
            dropped += 1
    return kept, dropped


def _size(url: object) -> int | None:
    """Return the characters of a picture's URL, ``None`` if it is none."""
    if not isinstance(url, str):
        return None
    trimmed = url.strip()
    if trimmed[:11].lower().startswith(("http://", "https://", "data:image/")):
        return len(trimmed)
    token = tokens.read(trimmed.encode()) if trimmed.startswith("sidekeep:") else None
    if token is None or not token[3].startswith(b"data:image/"):
        return None
    return token[2] + len(token[3])
