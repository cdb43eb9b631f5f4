"""Strings of outgoing messages that lie in memory."""

from __future__ import annotations

from collections.abc import Iterator

from sidekeep.jsontext import Path, safe_cut
from sidekeep.wire.frames import PIECE_BYTES
from sidekeep.wire.messages import Cut


class LongText(Cut):
    """A string given as its escaped text (bytes), which is cut while it is sent."""

    __slots__ = ("_escaped",)

    def __init__(self, path: Path, escaped: bytes) -> None:
        super().__init__(path, len(escaped))
        self._escaped = escaped

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text in pieces that may be cut apart."""
        rest = memoryview(self._escaped)
        while rest:
            place = safe_cut(rest, PIECE_BYTES)
            yield bytes(rest[:place])
            rest = rest[place:]
