"""The search as a kind of slow work for a helper process: msgpack in, msgpack out.

A job says where the store is; the helper opens it by itself, like any other process, and keeps it
open for the next query (a fresh map costs as much as a query). It never makes a store, since the
host that asks has it open.
"""

from __future__ import annotations

import msgspec

from sidekeep.errors import SidekeepError
from sidekeep.searching import sessions
from sidekeep.searching.sessions import Hit, Page
from sidekeep.store.environment import Store


class Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a store is: its folder, and whose it is."""

    folder: str
    extension: str
    profile: str


class Find(msgspec.Struct, tag="find", frozen=True):
    """The job of finding all sessions that fit. Its answer: a list of ``Hit``.

    ``prefixes``: how the text of an attachment begins.
    """

    place: Place
    query: str
    prefixes: list[str]


class FindPage(msgspec.Struct, tag="page", frozen=True):
    """The same for some of the sessions, with excerpts. Its answer: a ``Page``.

    So that the host, where small calls wait, neither sorts nor reads thousands of hits.
    """

    place: Place
    query: str
    prefixes: list[str]
    offset: int = 0
    limit: int | None = None


class Excerpts(msgspec.Struct, tag="excerpts", frozen=True):
    """The job of showing what fits in some records. Its answer: a text or ``None`` for each."""

    place: Place
    query: str
    records: list[int]


Job = Find | FindPage | Excerpts

_decode_job = msgspec.msgpack.Decoder(Job).decode
_decode_hits = msgspec.msgpack.Decoder(list[Hit]).decode
_decode_page = msgspec.msgpack.Decoder(Page).decode
_decode_excerpts = msgspec.msgpack.Decoder(list[str | None]).decode
_encode = msgspec.msgpack.encode


def job(work: Job) -> bytes:
    """Return the job to be sent."""
    return _encode(work)


def hits(answer: bytes) -> list[Hit]:
    """Read the answer to ``Find``."""
    return _decode_hits(answer)


def page(answer: bytes) -> Page:
    """Read the answer to ``FindPage``."""
    return _decode_page(answer)


def shown(answer: bytes) -> list[str | None]:
    """Read the answer to ``Excerpts``."""
    return _decode_excerpts(answer)


def run(data: bytes) -> bytes:
    """Do one job; what the store raises goes to the caller, and the store is opened anew."""
    work = _decode_job(data)
    try:
        with _stores.of(work.place).read() as transaction:
            if isinstance(work, Find):
                return _encode(sessions.find(transaction, work.query, work.prefixes))
            if isinstance(work, FindPage):
                return _encode(
                    sessions.page(transaction, work.query, work.prefixes, work.offset, work.limit)
                )
            return _encode(sessions.excerpts(transaction, work.query, work.records))
    except SidekeepError:
        _stores.close()
        raise


class _Stores:
    """The one store that is open."""

    def __init__(self) -> None:
        self._place: Place | None = None
        self._store: Store | None = None

    def of(self, place: Place) -> Store:
        """Return the store at that place, in place of another one."""
        if self._store is None or place != self._place:
            self.close()
            self._store = Store(
                place.folder,
                extension=place.extension,
                profile=place.profile,
                readahead=True,
            )
            self._place = place
        return self._store

    def close(self) -> None:
        """Close what is open."""
        if self._store is not None:
            self._store.close()
        self._store = self._place = None


_stores = _Stores()
