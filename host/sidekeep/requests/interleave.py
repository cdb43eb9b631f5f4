"""Pictures stand where the text says so: behind the line with ``[图N]``.

Source of the rules: the reference's ``interleaveImageParts`` (§14 of its description). A line may
hold several anchors; each counts once, and one without a picture is plain text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TypeVar

Image = TypeVar("Image")
_ANCHOR = re.compile(r"\[图([0-9]{1,4})\]")


def interleave(text: str, images: Sequence[Image], start: int = 0) -> list[str | Image]:
    """Return the text in parts with each image once: behind its anchor's line, else at the end.

    ``images``: image N belongs to ``[图N]``. ``start``: where in the text anchors begin to count,
    so that a header may hold what looks like one. The texts joined with line feeds are the text,
    but for blank lines at its end.
    """
    parts: list[str | Image] = []
    lines: list[str] = []
    placed: set[int] = set()
    passed = 0
    for line in text.split("\n"):
        lines.append(line)
        found = _anchors(line, len(images), placed) if images and passed >= start else []
        passed += len(line) + 1
        if found:
            parts.append("\n".join(lines))
            parts += [images[number - 1] for number in found]
            placed.update(found)
            lines = []
    rest = "\n".join(lines)
    if rest.strip() or not parts:
        parts.append(rest)
    parts += [image for at, image in enumerate(images) if at + 1 not in placed]
    return parts


def numbers(parts: Sequence[str | None]) -> list[int]:
    """Return the number N of each image, in the order of the parts; ``None`` stands for an image.

    The reverse of ``interleave``: the images behind a line with anchors have their numbers, the
    others those that are left, in order. Images that stood at an anchor and were removed since keep
    their numbers, so that those of the others stay the same. What ``interleave`` may have made of
    all images is taken for that: a number above their count, at the very end, is plain text.
    """
    count = sum(part is None for part in parts)
    found, named = _at_anchors(parts, count)
    left = set(range(1, count + 1)).difference(found)
    if left & named or not _only_at_end(parts, found):
        # An image is not where it was put: some were removed, and numbers may be above the count.
        found, named = _at_anchors(parts, None)
    free = (number for number in itertools.count(1) if number not in named)
    return [next(free) if number is None else number for number in found]


def _at_anchors(
    parts: Sequence[str | None], count: int | None
) -> tuple[list[int | None], set[int]]:
    """Return the number of each image that stands behind its anchor, and all numbers at anchors.

    ``count``: the highest number that an anchor may have, ``None`` for any.
    """
    found: list[int | None] = []
    named: set[int] = set()
    waiting: list[int] = []
    for part in parts:
        if part is None:
            found.append(waiting.pop(0) if waiting else None)
            continue
        waiting = _anchors(part.rpartition("\n")[2], count, named)
        named.update(waiting)
    return found, named


def _only_at_end(parts: Sequence[str | None], found: Sequence[int | None]) -> bool:
    """Return whether images without an anchor stand behind all text only, as they are put there."""
    images = iter(found)
    loose = False
    for part in parts:
        if part is None:
            loose = next(images) is None or loose
        elif loose:
            return False
    return True


def in_number_order(parts: Sequence[str | None], images: Sequence[Image]) -> list[Image]:
    """Return the images of an entry as ``interleave`` takes them.

    ``parts``: its parts, ``None`` for an image. ``images``: its images, in the order of the parts.
    """
    order = zip(numbers(parts), images, strict=True)
    return [image for _, image in sorted(order, key=lambda one: one[0])]


def _anchors(line: str, count: int | None, placed: set[int]) -> list[int]:
    """Return the numbers of the line's anchors that have an image which is not placed yet.

    ``count``: the highest number that has one, ``None`` if that is not known.
    """
    found = []
    for match in _ANCHOR.finditer(line):
        number = int(match[1])
        in_range = number >= 1 and (count is None or number <= count)
        if in_range and number not in placed and number not in found:
            found.append(number)
    return found
