"""Collect figures, print them as one table with ratios, write them as JSON.

A figure is a list of samples in one unit. The table shows medians and, per line, one ratio to the
contender that the line is judged by, beside the wanted limit. The ratio of the best samples stands
beside it: where other programs disturb the machine it says more. Nothing is asserted: people read
these figures.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).resolve().parent / "results"
SMALL_RATIO = 0.1
"""Ratios below it are shown as fractions."""


@dataclass
class Line:
    """One kind of work: samples per contender, and what its ratio is wanted to be at most.

    ``against``: the contender that Sidekeep is divided by, ``None`` for a plain figure that
    ``wanted`` limits itself. ``digits``: how many decimals the unit is worth.
    """

    title: str
    unit: str
    against: str | None = None
    wanted: float | None = None
    digits: int = 2
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contender: str, *values: float) -> None:
        """Add samples of one contender."""
        self.samples.setdefault(contender, []).extend(values)

    def median(self, contender: str) -> float | None:
        """Return the median of a contender's samples, ``None`` if it has none."""
        values = self.samples.get(contender)
        return statistics.median(values) if values else None

    def ratio(self) -> float | None:
        """Return Sidekeep's median divided by that of the contender it is judged by."""
        own = self.median("Sidekeep")
        other = self.median(self.against) if self.against else None
        return own / other if own is not None and other else None

    def best_ratio(self) -> float | None:
        """Return Sidekeep's smallest sample divided by that of the contender it is judged by."""
        own = self.samples.get("Sidekeep")
        other = self.samples.get(self.against) if self.against else None
        return min(own) / min(other) if own and other else None

    def missed(self) -> bool:
        """Whether the wanted limit is not reached."""
        value = self.ratio() if self.against else self.median("Sidekeep")
        return self.wanted is not None and value is not None and value > self.wanted


class Spread(Line):
    """The same work of Sidekeep under several conditions, one in the place of each contender.

    Its ratio is the largest median divided by the smallest. ``against`` says so in the table.
    """

    def __init__(self, title: str, unit: str, wanted: float | None = None, digits: int = 2) -> None:
        super().__init__(title, unit, "the least", wanted, digits)

    def ratio(self) -> float | None:
        """Return the largest median divided by the smallest."""
        return _largest_to_smallest([statistics.median(of) for of in self.samples.values() if of])

    def best_ratio(self) -> float | None:
        """Return the largest of the best samples divided by the smallest of them."""
        return _largest_to_smallest([min(of) for of in self.samples.values() if of])


def _largest_to_smallest(values: list[float]) -> float | None:
    least = min(values, default=0.0)
    return max(values) / least if least else None


def as_ratio(value: float) -> str:
    """Return a ratio as text, small ones as a fraction: ``1.15``, ``1/300``."""
    return f"1/{1 / value:.0f}" if 0 < value < SMALL_RATIO else f"{value:.2f}"


def _limit(value: float) -> str:
    return as_ratio(value) if value < SMALL_RATIO else f"{value:g}"


def show(title: str, lines: list[Line], contenders: list[str]) -> None:
    """Print the table."""
    table = Table(title=title)
    table.add_column("work")
    for contender in contenders:
        table.add_column(contender, justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("of the best", justify="right")
    table.add_column("wanted", justify="right")
    for line in lines:
        cells = [f"{line.title} [{line.unit}]".replace("[", r"\[")]
        for contender in contenders:
            median = line.median(contender)
            cells.append("" if median is None else f"{median:.{line.digits}f}")
        ratio = line.ratio()
        colour = "red" if line.missed() else "green" if line.wanted is not None else "default"
        shown = f"{as_ratio(ratio)} × {line.against}" if ratio is not None else ""
        cells.append(f"[{colour}]{shown}[/]")
        best = line.best_ratio()
        cells.append("" if best is None else as_ratio(best))
        limit = "" if line.wanted is None else f"≤ {_limit(line.wanted)}"
        cells.append(f"[{colour}]{limit}[/]")
        table.add_row(*cells)
    Console(width=170).print(table)


def save(name: str, lines: list[Line], *, folder: Path = RESULTS, **about: object) -> Path:
    """Write all samples, medians and ratios to ``<folder>/<name>-<time>.json``; return the path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    content = {
        "program": name,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
        },
        **about,
        "lines": [
            {
                "title": line.title,
                "unit": line.unit,
                "against": line.against,
                "wanted": line.wanted,
                "ratio": line.ratio(),
                "ratio_of_the_best": line.best_ratio(),
                "medians": {name: line.median(name) for name in line.samples},
                "samples": line.samples,
            }
            for line in lines
        ],
    }
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return path
