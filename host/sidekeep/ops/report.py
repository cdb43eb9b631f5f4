"""The table at the end of an install and of the doctor.

Rules of this module: a row says in words what was seen; on a terminal it is a rich table, elsewhere
plain lines that nothing wraps or cuts, so that they can be searched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class Row:
    """One line: what it is about, which file, what was seen.

    ``good`` is ``None`` for something that was not done and is not counted as done.
    """

    title: str
    file: str
    result: str
    good: bool | None


def show(rows: Sequence[Row], headings: tuple[str, str, str], out: TextIO | None = None) -> None:
    """Print the rows to ``out`` (standard output unless given)."""
    stream = out or sys.stdout
    if stream.isatty():
        _show_rich(rows, headings, stream)
        return
    words = {True: "ok", False: "FAILED", None: "-"}
    cells = [("", *headings)] + [(words[row.good], row.title, row.file, row.result) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    for line in cells:
        padded = [line[column].ljust(widths[column]) for column in range(3)]
        stream.write("  ".join([*padded, line[3]]).rstrip() + "\n")


def _show_rich(rows: Sequence[Row], headings: tuple[str, str, str], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    styles = {True: "green", False: "bold red", None: "yellow"}
    for row in rows:
        file = row.file.replace(os.environ.get("HOME", "~"), "~", 1)  # leaves room for the rest
        table.add_row(Text(row.title), Text(file), Text(row.result, style=styles[row.good]))
    Console(file=stream).print(table)
