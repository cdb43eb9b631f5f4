"""The place of a hit, shown in the text as it was written.

A hit is found in the folded text, whose length differs. As folding distributes over graphemes, its
place is led back by folding the original in blocks that end between graphemes, and then, in the
block that was hit, one grapheme after the other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from sidekeep.text.fold import folded
from sidekeep.text.graphemes import boundary_after, boundary_before, first_codepoints

# Two lines of a list, and how much of them stands before a hit that has text on both sides.
CHARACTERS = 100
_LEAD = 30
_BLOCK = 512
# So much is taken on either side, because runs of white space become shorter.
_REACH = 4 * CHARACTERS
_ELLIPSIS = "…"
_WHITE_SPACE = re.compile(r"\s+")
_SURROGATES = re.compile("[\ud800-\udfff]")


def excerpt(original: str, query: str) -> str | None:
    """Return about 100 characters of ``original`` around the first place that fits ``query``.

    White space is shown as single spaces; an ellipsis stands where the text goes on. A hit longer
    than that is cut at its end. ``None`` if nothing fits or the query is blank.
    """
    wanted = folded(query.strip())
    place = find(original, wanted) if wanted else None
    if place is None:
        return None
    start, end = place
    hit = _plain(original[start:end])
    shown = first_codepoints(hit, CHARACTERS)
    left = _plain(original[boundary_after(original, max(start - _REACH, 0)) : start])
    right = _plain(original[end : boundary_before(original, min(end + _REACH, len(original)))])
    room = CHARACTERS - len(shown)
    shown_right = right[: boundary_before(right, _within(room - min(_LEAD, len(left)), right))]
    room -= len(shown_right)
    shown_left = left[boundary_after(left, len(left) - _within(room, left)) :]
    begins = start <= _REACH and shown_left == left
    ends = len(original) - end <= _REACH and shown_right == right and shown == hit
    text = _plain(shown_left + shown + shown_right).strip()
    return f"{'' if begins else _ELLIPSIS}{text}{'' if ends else _ELLIPSIS}"


def _plain(text: str) -> str:
    return _SURROGATES.sub("\ufffd", _WHITE_SPACE.sub(" ", text))


def _within(count: int, text: str) -> int:
    return min(max(count, 0), len(text))


def find(original: str, wanted: str) -> tuple[int, int] | None:
    """Return start and end, between graphemes, of the first place that fits ``wanted`` (folded)."""
    if original.isascii():
        start = folded(original).find(wanted)  # as long as the original
        return None if start < 0 else (start, start + len(wanted))
    blocks = list(_blocks(original))
    pieces = [folded(block) for block in blocks]
    at = "".join(pieces).find(wanted)
    if at < 0:
        return None
    starts = [0, *accumulate(map(len, blocks))]
    folded_starts = [0, *accumulate(map(len, pieces))]

    def lead_back(index: int, *, end: bool) -> int:
        block = bisect_right(folded_starts, index) - 1
        reached = folded_starts[block]
        place = starts[block]
        for grapheme in graphemes(blocks[block]):
            following = reached + len(folded(grapheme))
            if following > index:
                return place + len(grapheme) if end else place
            reached = following
            place += len(grapheme)
        return place

    return lead_back(at, end=False), lead_back(at + len(wanted) - 1, end=True)


def graphemes(text: str) -> Iterator[str]:
    """Yield the graphemes of a text."""
    start = 0
    while start < len(text):
        end = boundary_after(text, start + 1)
        yield text[start:end]
        start = end


def _blocks(text: str) -> Iterator[str]:
    """Yield pieces of a text that end between graphemes."""
    start = 0
    while start < len(text):
        # Looked at by itself, because finding a boundary may mean to look back far.
        window = text[start : start + 2 * _BLOCK]
        length = boundary_after(window, min(_BLOCK, len(window)))
        if length == len(window):  # the end of the window, and perhaps no boundary
            length = boundary_after(text, start + length) - start
        yield text[start : start + length]
        start += length
