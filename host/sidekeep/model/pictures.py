"""How pictures of entries are delivered: whole, as tokens, with thumbnails, within a budget.

Source of the rules: the seed storage model ("Ciclo de vida das imagens") and docs/protocol.md,
"Pictures". Nothing stored is ever changed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sidekeep.store import previews, records, tokens
from sidekeep.store.lists import Entry
from sidekeep.store.previews import Preview
from sidekeep.store.records import Record
from sidekeep.store.rope import Blob
from sidekeep.store.transaction import Transaction

Pixels = Literal["full", "bounded", "thumbnail", "none"]
EDGE = 480
# What opening a panel has to read at the most, in characters of data URLs.
BUDGET = 8 * 1024 * 1024


class Shown(NamedTuple):
    """An entry to be delivered. ``left_out``: its pictures that are given as tokens."""

    entry: Entry
    record: Record
    left_out: list[Blob]


class Left(NamedTuple):
    """A picture that was left out: where it stands and what there is in its place."""

    entry: Entry
    blob: Blob
    preview: Preview | None

    @property
    def token(self) -> str:
        """The token that stands in the entry."""
        return tokens.write(self.blob).decode()

    @property
    def mime(self) -> str:
        """The type that the data URL claims."""
        claimed = self.blob.prefix.removeprefix(b"data:").decode(errors="replace")
        return claimed.rstrip(",").partition(";")[0]


def choose(
    transaction: Transaction, entries: Sequence[Entry], pixels: Pixels, budget: int = BUDGET
) -> list[Shown]:
    """Decide for each entry, in order, which of its pictures are left out."""
    shown = []
    for entry in entries:
        record = records.read(transaction, entry.record)
        left_out: list[Blob] = []
        if pixels == "none":
            left_out = record.pictures
        elif pixels == "thumbnail":
            left_out = _larger(transaction, record.pictures)
        shown.append(Shown(entry, record, left_out))
    return _bounded(transaction, shown, budget) if pixels == "bounded" else shown


def _larger(transaction: Transaction, pictures: Sequence[Blob]) -> list[Blob]:
    """Return the pictures that are not their own thumbnails: leaving those out saves nothing."""
    return [
        blob
        for blob in pictures
        if not isinstance(previews.find(transaction, blob.hash, EDGE), previews.Whole)
    ]


def _bounded(transaction: Transaction, shown: list[Shown], budget: int) -> list[Shown]:
    """Leave out the pictures of the oldest entries until the rest fits; the newest is spared."""
    pictures = [one.record.pictures for one in shown]
    bearing = [number for number, found in enumerate(pictures) if found]
    total = sum(_length(blob) for found in pictures for blob in found)
    result = list(shown)
    for number in bearing[:-1]:
        if total <= budget:
            break
        total -= sum(map(_length, pictures[number]))
        result[number] = shown[number]._replace(left_out=_larger(transaction, pictures[number]))
    return result


def _length(blob: Blob) -> int:
    return len(blob.prefix) + blob.length


def left(transaction: Transaction, shown: Sequence[Shown], *, thumbnails: bool) -> list[Left]:
    """Return what was left out, in order, with the thumbnails that there are."""
    return [
        Left(
            one.entry,
            blob,
            previews.find(transaction, blob.hash, EDGE) if thumbnails else None,
        )
        for one in shown
        for blob in one.left_out
    ]
