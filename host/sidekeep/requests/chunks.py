"""Long Markdown in pieces that a model can condense one by one.

Source of the rules: the reference's chunker (§17 of its description) and its defect D28: a table's
header is said again only where the table itself was cut. Fenced blocks, tables and a heading with
the line below it stay together. What is longer than a piece by itself is cut all the same, a fence
only if it is longer than several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from sidekeep.requests.form import length
from sidekeep.text.graphemes import cut

BUDGET = 12_000
WHOLE_FENCE = 4
"""A fenced block is kept whole up to so many budgets: cut code is harder to make sense of."""

# A line of backticks with more of them behind is code within a line, no fence.
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(\s|$)")
_SENTENCE = re.compile(r"[.!?]\s|[。！？；]")
_LOOK_AHEAD = 64
_DELIMITER = re.compile(r"\s*\|?[\s:|\-]*-[\s:|\-]*\|?\s*")

Kind = Literal["fence", "table", "heading", "line", "blank"]


class _Unit(NamedTuple):
    """Lines that stay together. ``size``: their UTF-16 units, with the line feeds between them."""

    kind: Kind
    lines: list[str]
    size: int


def chunks(text: str, budget: int = BUDGET) -> list[str]:
    """Return the text in pieces of at most ``budget`` characters.

    Joined with line feeds they are the text, but for blank lines at the end of a piece, line feeds
    put into lines that are longer than a piece, and what is said again where a table or a fence was
    cut. A fence of up to four budgets is one piece. A blank text has none.
    """
    made: list[str] = []
    current: list[_Unit] = []
    used = 0
    for unit in _fitting(_units(text.split("\n")), budget):
        if current and used + unit.size + 1 > budget:
            moved = _headings_before(current, unit, budget)
            _flush(current[: len(current) - len(moved)], made)
            current = moved
            used = sum(one.size + 1 for one in moved)
        current.append(unit)
        used += unit.size + 1
    _flush(current, made)
    return made


def _flush(units: Sequence[_Unit], into: list[str]) -> None:
    lines = [line for unit in units for line in unit.lines]
    while lines and not lines[-1].strip():
        lines.pop()
    if lines:
        into.append("\n".join(lines))


def _headings_before(units: list[_Unit], coming: _Unit, budget: int) -> list[_Unit]:
    """Return the headings at the end that belong to the unit which begins the next piece."""
    start = len(units)
    while start and units[start - 1].kind in {"heading", "blank"}:
        start -= 1
    while start < len(units) and units[start].kind == "blank":
        start += 1
    moved = units[start:]
    if sum(one.size + 1 for one in moved) + coming.size + 1 > budget:
        return []
    return moved


def _units(lines: Sequence[str]) -> Iterator[_Unit]:
    at = 0
    while at < len(lines):
        end = at + 1
        kind: Kind = "line"
        fence = _FENCE.match(lines[at])
        if fence is not None:
            kind = "fence"
            end = _fence_end(lines, at, fence[1])
        elif is_table_row(lines[at]):
            kind = "table"
            while end < len(lines) and is_table_row(lines[end]):
                end += 1
        elif _HEADING.match(lines[at]):
            kind = "heading"
        elif not lines[at].strip():
            kind = "blank"
        yield _unit(kind, list(lines[at:end]))
        at = end


def _unit(kind: Kind, lines: list[str]) -> _Unit:
    return _Unit(kind, lines, sum(map(length, lines)) + len(lines) - 1)


def _fence_end(lines: Sequence[str], start: int, marker: str) -> int:
    """Return the place behind a fenced block: its closing line, or the end of the text."""
    for at in range(start + 1, len(lines)):
        if lines[at].strip().startswith(marker):
            return at + 1
    return len(lines)


def is_table_row(line: str) -> bool:
    """Whether a line of Markdown is a row of a table."""
    return line.lstrip().startswith("|")


def _fitting(units: Iterator[_Unit], budget: int) -> Iterator[_Unit]:
    """Yield the units, those that are too long for a piece in several."""
    for unit in units:
        if unit.size <= budget or (unit.kind == "fence" and unit.size <= WHOLE_FENCE * budget):
            yield unit
        elif unit.kind == "fence":
            yield from _cut_fence(unit, budget)
        elif unit.kind == "table":
            yield from _cut_table(unit, budget)
        else:
            yield from (_unit(unit.kind, [piece]) for piece in _cut_line(unit.lines[0], budget))


def _cut_table(unit: _Unit, budget: int) -> Iterator[_Unit]:
    """Cut between rows; each piece begins with the header."""
    has_header = len(unit.lines) > 1 and _DELIMITER.fullmatch(unit.lines[1]) is not None
    head = unit.lines[:2] if has_header else []
    yield from _packed("table", head, unit.lines[len(head) :], [], budget)


def _cut_fence(unit: _Unit, budget: int) -> Iterator[_Unit]:
    """Cut between lines; each piece is a fenced block."""
    fence = _FENCE.match(unit.lines[0])
    assert fence is not None
    closed = unit.lines[-1].strip().startswith(fence[1])
    inner = unit.lines[1:-1] if closed else unit.lines[1:]
    yield from _packed("fence", unit.lines[:1], inner, [fence[1]], budget)


def _packed(
    kind: Kind, head: list[str], lines: Sequence[str], tail: list[str], budget: int
) -> Iterator[_Unit]:
    """Yield units of as many lines as fit, each with ``head`` before and ``tail`` behind them."""
    around = sum(length(line) + 1 for line in [*head, *tail])
    room = budget - around
    if room < budget // 2:  # what would be said again is most of it
        head, tail, room = [], [], budget
    current: list[str] = []
    used = 0
    for line in lines:
        for piece in _cut_line(line, room):
            size = length(piece) + 1
            if current and used + size > room + 1:
                yield _unit(kind, [*head, *current, *tail])
                current, used = [], 0
            current.append(piece)
            used += size
    if current:
        yield _unit(kind, [*head, *current, *tail])


def _cut_line(line: str, room: int) -> list[str]:
    """Return a line in pieces of at most ``room`` characters, cut at sentences or words if it can.

    Each has at least one character.
    """
    pieces: list[str] = []
    start = 0
    while True:
        piece = line[start : start + room]
        if start + room >= len(line) and length(piece) <= room:
            return [*pieces, piece]
        # The characters behind tell whether the cut would part what is seen as one.
        piece = cut(line[start : start + room + _LOOK_AHEAD], room) or line[start]
        end = start + _good_end(piece)
        pieces.append(line[start:end])
        start = end


def _good_end(piece: str) -> int:
    """Return where in the second half of a piece a sentence ends, or a word, or the piece."""
    half = len(piece) // 2
    ends = [found.end() for found in _SENTENCE.finditer(piece, half)]
    if ends:
        return ends[-1]
    space = piece.rfind(" ", half)
    return space + 1 if space >= 0 else len(piece)


def safe_cut(text: str, cap: int) -> int:
    """Return the last end of a line at or before ``cap`` that is in no fence and no table.

    ``cap`` itself if there is none, or if the text is not longer. Both count code points.
    """
    if len(text) <= cap:
        return cap
    best = -1
    passed = 0
    marker = ""
    for line in text.split("\n"):
        end = passed + len(line)
        if end > cap:
            break
        found = _FENCE.match(line)
        if marker:
            if line.strip().startswith(marker):
                marker = ""
        elif found is not None:
            marker = found[1]
        if not marker and not is_table_row(line):
            best = end
        passed = end + 1
    return best if best >= 0 else cap
