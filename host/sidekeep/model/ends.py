"""What two sequences have in common at their ends, so that only what lies between is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def common_ends(
    old: Sequence[A], new: Sequence[B], same: Callable[[A, B], bool]
) -> tuple[int, int]:
    """Return how many elements are the same at the beginning and, of the rest, at the end."""
    most = min(len(old), len(new))
    start = 0
    while start < most and same(old[start], new[start]):
        start += 1
    end = 0
    while end < most - start and same(old[-1 - end], new[-1 - end]):
        end += 1
    return start, end
