"""The stores on the disk, as the command shows them.

Rules of this module: it opens only stores that are there and never makes one; a store that cannot
be opened is a line that says why, not the end of the list. Opening follows the rules of
``sidekeep.store``: hosts of browsers may work on the same file meanwhile.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sidekeep.errors import DamagedError, InvalidParams, NotFoundError, SidekeepError
from sidekeep.model import areas
from sidekeep.store import backup, blobs, records, report, verify
from sidekeep.store.environment import DATA_FILE, Store
from sidekeep.store.founding import ABOUT_FILE
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction


@dataclass(frozen=True)
class StoreFolder:
    """One store: the extension and profile it belongs to, and its folder."""

    extension: str
    profile: str
    folder: Path


def find_stores(data_dir: Path) -> list[StoreFolder]:
    """Return all stores below ``data_dir``, ordered by extension and profile."""
    found = []
    for about in data_dir.glob(f"*/*/{ABOUT_FILE}"):
        try:
            content = json.loads(about.read_bytes())
            found.append(StoreFolder(content["extension"], content["profile"], about.parent))
        except (OSError, ValueError, KeyError, TypeError):
            found.append(StoreFolder(about.parent.parent.name, "?", about.parent))
    return sorted(found, key=lambda store: (store.extension, store.profile))


def choose_store(
    stores: list[StoreFolder], extension: str | None, profile: str | None
) -> StoreFolder:
    """Return the one store that fits; beginnings are enough, and a whole word wins over them.

    Raises ``NotFoundError`` if none fits and ``InvalidParams`` if several do.
    """
    fitting = [
        store
        for store in stores
        if store.extension.startswith(extension or "") and store.profile.startswith(profile or "")
    ]
    if not stores:
        raise NotFoundError(
            "There is no store yet.",
            next="It is made when an extension first calls; `sidekeep status` shows where.",
        )
    if not fitting:
        raise NotFoundError("There is no such store.", next="`sidekeep status` lists the stores.")
    exact = [
        store
        for store in fitting
        if extension in {None, store.extension} and profile in {None, store.profile}
    ]
    if len(fitting) > 1 and len(exact) == 1:
        return exact[0]
    if len(fitting) > 1:
        names = "\n".join(f"  --extension {s.extension} --profile {s.profile}" for s in fitting)
        raise InvalidParams("Several stores fit:\n" + names, next="Name one of them.")
    return fitting[0]


@contextlib.contextmanager
def opened(found: StoreFolder) -> Iterator[Store]:
    """Open a store that is there."""
    if not (found.folder / DATA_FILE).exists():
        raise NotFoundError(f"The data file of {found.folder} is gone.")
    store = Store(str(found.folder), extension=found.extension, profile=found.profile)
    try:
        yield store
    finally:
        store.close()


def figures_of(found: StoreFolder) -> dict[str, object]:
    """Return the figures of a store, or ``{"problem": sentence}``."""
    try:
        with opened(found) as store:
            return report.figures(store)
    except SidekeepError as error:
        return {"problem": error.message}


def value_text(found: StoreFolder, key: str) -> Iterator[bytes]:
    """Yield the JSON text of a value in pieces; raises ``NotFoundError`` for a missing key."""
    with opened(found) as store, store.read() as transaction:
        rows = list(areas.get(transaction, [key]))
        if not rows:
            raise NotFoundError(f"There is no key {key!r}.", next="`sidekeep keys` lists them.")
        held = rows[0][1]
        if isinstance(held, Record):
            yield from _text(transaction, held)
            return
        yield b"["
        for number, entry in enumerate(held.entries()):
            if number:
                yield b","
            yield from _text(transaction, records.read(transaction, entry.record))
        yield b"]"


def _text(transaction: Transaction, record: Record) -> Iterator[bytes]:
    for piece in record.pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from blobs.text(transaction, piece)


def keys_of(found: StoreFolder) -> list[str]:
    """Return all keys of a store in byte order."""
    with opened(found) as store, store.read() as transaction:
        return areas.get_keys(transaction)


def back_up(found: StoreFolder, target: Path) -> int:
    """Write a checked copy to the new file ``target``; return its size in bytes."""
    with opened(found) as store:
        return backup.create(store, str(target))


def put_back(found: StoreFolder, source: Path) -> str | None:
    """Put a copy in the store's place; return where the old file lies now."""
    return backup.restore(str(found.folder), str(source))


def problems_of(found: StoreFolder) -> list[str]:
    """Return what ``store.verify`` finds; also that the store cannot be read at all."""
    try:
        with opened(found) as store, store.read() as transaction:
            return verify.problems(transaction)
    except DamagedError as error:
        return [error.message]
