"""What a check of a store finds: problems with a code and their place, counts, how far it is.

The codes are those of docs/protocol.md, "The check of a store": names here only grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

Code = Literal["damaged", "missing", "count", "orphan", "index", "order"]

KEY_SHOWN = 64
"""Characters of a key that are told: it may be of any length."""
BLOB_SHOWN = 16
"""Hexadecimal digits of a content's name that are told."""
BYTES_PER_STEP = 16_384
"""Content that takes about as long to check as a row."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One problem: its code, a sentence, and where it lies, as far as that is a place.

    ``item``: the beginning of the key of an item or list. ``record``: the number of a record.
    ``blob``: the beginning of a content's hash.
    """

    code: str
    text: str
    item: str | None = None
    record: int | None = None
    blob: str | None = None


class Findings:
    """Collects what one check finds. ``tell``: called with the steps done, after each of them.

    A step is a row, or ``BYTES_PER_STEP`` bytes of content.
    """

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self.problems: list[Problem] = []
        self.checked: dict[str, int] = dict.fromkeys(
            ("items", "lists", "entries", "records", "blobs", "blobBytes", "journal"), 0
        )
        self._tell = tell
        self._steps = 0
        self._bytes = 0

    def general(self, code: Code, text: str) -> None:
        """Note a problem of the store as a whole."""
        self.problems.append(Problem(code, text))

    def item(self, code: Code, key: str, text: str, *, kind: str = "item") -> None:
        """Note a problem of an item; ``kind``: the word for it."""
        shown = key[:KEY_SHOWN]
        self.problems.append(Problem(code, f"{kind} {shown!r}: {text}", item=shown))

    def record(self, code: Code, number: int, text: str) -> None:
        """Note a problem of a record; ``text`` follows its number."""
        self.problems.append(Problem(code, f"record {number}{text}", record=number))

    def blob(self, code: Code, name: bytes, text: str) -> None:
        """Note a problem of a piece of content; ``text`` follows its name."""
        shown = name.hex()[:BLOB_SHOWN]
        self.problems.append(Problem(code, f"blob {shown}{text}", blob=shown))

    def looked_at(self, what: str) -> None:
        """Count a row of a kind that ``checked`` names."""
        self.checked[what] += 1
        self.step()

    def step(self, size: int = 0) -> None:
        """Go on by a row with ``size`` bytes of content."""
        self._steps += 1
        self._bytes += size
        if self._tell is not None:
            self._tell(self._steps + self._bytes // BYTES_PER_STEP)
