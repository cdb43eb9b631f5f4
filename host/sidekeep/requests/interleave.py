"""Pictures stand where the text says so: behind the line with ``[图N]``.

Source of the rules: the reference's ``interleaveImageParts`` (§14 of its description). A line may
hold several anchors; each counts once, and one without a picture is plain text.
"""

from __future__ import annotations

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
    others those that are left, in order.
    """
    count = sum(part is None for part in parts)
    found: list[int | None] = []
    placed: set[int] = set()
    waiting: list[int] = []
    for part in parts:
        if part is None:
            found.append(waiting.pop(0) if waiting else None)
            continue
        waiting = _anchors(part.rpartition("\n")[2], count, placed)
        placed.update(waiting)
    left = iter(sorted(set(range(1, count + 1)).difference(found)))
    return [next(left) if number is None else number for number in found]


def in_number_order(parts: Sequence[str | None], images: Sequence[Image]) -> list[Image]:
    """Return the images of an entry as ``interleave`` takes them.

    ``parts``: its parts, ``None`` for an image. ``images``: its images, in the order of the parts.
    """
    order = zip(numbers(parts), images, strict=True)
    return [image for _, image in sorted(order, key=lambda one: one[0])]


def _anchors(line: str, count: int, placed: set[int]) -> list[int]:
    """Return the numbers of the line's anchors that have an image which is not placed yet."""
    found = []
    for match in _ANCHOR.finditer(line):
        number = int(match[1])
        if 1 <= number <= count and number not in placed and number not in found:
            found.append(number)
    return found
