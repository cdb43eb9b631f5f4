"""Look at an LMDB file without mapping it.

A mapped file that is shorter than its own tree says kills the process with a bus error, which no
``except`` can catch; and LMDB opens an empty file as a new, empty store. So both are looked for
before the file is mapped, for the price of reading two pages.

Source of the layout: ``mdb.c`` of LMDB 0.9 (``MDB_page``, ``MDB_meta``, ``MDB_db``). Page 0 and
page 1 each hold one meta page; the one with the higher transaction number is valid.
"""

from __future__ import annotations

import os
import struct

_MAGIC = 0xBEEFC0DE
_VERSION = 1
_META_FLAG = 0x08
# Page header (page number, padding, flags, …), then magic, version, address, map size.
_START = struct.Struct("=QHHIII")
# From byte 40 on: padding of the free database, which holds the page size.
_PAGE_SIZE = struct.Struct("=I")
_LAST_PAGE_AND_TRANSACTION = struct.Struct("=QQ")
_SMALLEST = 512
_LARGEST = 65_536


def problem_of(path: str) -> str | None:
    """Return what is wrong with the file, as the end of a sentence, or ``None`` if nothing is.

    Sees an empty, a foreign and a truncated file. It does not look into the tree. A file that is
    too short may be sound, see ``completed``.
    """
    found = _sizes(path)
    if isinstance(found, str):
        return found
    size, needed = found
    return _short(size, needed) if size < needed else None


def _short(size: int, needed: int) -> str:
    return f"is cut short: {size} of at least {needed} bytes are there"


def completed(path: str) -> tuple[str | None, int | None]:
    """Make a file as long as its tree says, if its tree is whole; see ``problem_of``.

    LMDB never writes pages at the end that were allocated and freed in one transaction, yet counts
    them. So a sound file may be shorter than it says, when its writer was killed before it could
    mend that (``Store.write`` does after each commit). Returns what is wrong, and the size that the
    file had if it was made longer: its content is then still to be checked. The caller holds the
    writer's lock.
    """
    found = _sizes(path)
    if isinstance(found, str):
        return found, None
    size, needed = found
    if size >= needed:
        return None, None
    from lmdb.verify import verify

    os.truncate(path, needed)  # a hole: reading it gives zeros and no signal
    if verify(path):  # type: ignore[no-untyped-call]
        os.truncate(path, size)
        return _short(size, needed), None
    return None, size


def _sizes(path: str) -> tuple[int, int] | str:
    """Return the file's size and the one that its tree says, or what is wrong with it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        start = os.pread(descriptor, 152, 0)
        if not start:
            return "is empty"
        first = _meta(start)
        if first is None:
            return "is not an LMDB data file"
        page_size = first[2]
        second = _meta(os.pread(descriptor, 152, page_size))
        if second is None or second[2] != page_size:
            return "has lost its second meta page"
        # The size is read after the pages: a writer lets the file grow before it says so there.
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    last_page = max(first, second)[1]
    return size, (last_page + 1) * page_size


def _meta(page: bytes) -> tuple[int, int, int] | None:
    """Return ``(transaction number, last page, page size)`` or ``None`` if it is no meta page."""
    if len(page) < 152:
        return None
    _, _, flags, _, magic, version = _START.unpack_from(page)
    if magic != _MAGIC or version != _VERSION or not flags & _META_FLAG:
        return None
    (page_size,) = _PAGE_SIZE.unpack_from(page, 40)
    if not _SMALLEST <= page_size <= _LARGEST or page_size & (page_size - 1):
        return None
    last_page, transaction = _LAST_PAGE_AND_TRANSACTION.unpack_from(page, 136)
    return transaction, last_page, page_size
