"""A request as JSON text: long strings and pictures stand in it as cuts, to be sent apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from sidekeep.jsontext import Path, safe_cut
from sidekeep.store.layout import TEXT_PIECE
from sidekeep.store.rope import Blob
from sidekeep.wire.messages import Cut, Pieces

_encode = msgspec.json.encode
_APART_FROM = 65_536

PictureCut = Callable[[Path, Blob, bool], Cut]
"""Gives the cut for the picture at a path: its whole data URL, or only the data in it."""


class Pixels(NamedTuple):
    """A stored picture in a request. ``whole``: its data URL, else only the data in it."""

    blob: Blob
    whole: bool = True


class LongText(Cut):
    """A long text of a request; it lies in memory."""

    __slots__ = ("_escaped",)

    def __init__(self, path: Path, escaped: bytes) -> None:
        super().__init__(path, len(escaped))
        self._escaped = escaped

    def read(self) -> Iterator[bytes]:
        """Yield the escaped text in pieces that may be cut apart."""
        rest = memoryview(self._escaped)
        while rest:
            place = safe_cut(rest, TEXT_PIECE)
            yield bytes(rest[:place])
            rest = rest[place:]


def pieces(value: Any, picture: PictureCut, path: Path) -> Pieces:  # noqa: ANN401 - any JSON value
    """Return a JSON value, which may hold ``Pixels``, as pieces of a message.

    ``path``: where it stands in that message.
    """
    written: Pieces = []
    _write(value, picture, path, written)
    return _joined(written)


def _write(value: Any, picture: PictureCut, path: Path, into: Pieces) -> None:  # noqa: ANN401
    if isinstance(value, Pixels):
        into += [b'"', picture(path, value.blob, value.whole), b'"']
    elif isinstance(value, str):
        text = _encode(value)
        if len(text) <= _APART_FROM:
            into.append(text)
        else:
            into += [b'"', LongText(path, text[1:-1]), b'"']
    elif isinstance(value, dict):
        for index, (name, member) in enumerate(value.items()):
            into.append((b"," if index else b"{") + _encode(name) + b":")
            _write(member, picture, (*path, name), into)
        into.append(b"}" if value else b"{}")
    elif isinstance(value, list):
        for index, element in enumerate(value):
            into.append(b"," if index else b"[")
            _write(element, picture, (*path, index), into)
        into.append(b"]" if value else b"[]")
    else:
        into.append(_encode(value))


def _joined(written: Pieces) -> Pieces:
    """Put neighbouring texts together."""
    joined: Pieces = []
    texts: list[bytes] = []
    for piece in written:
        if isinstance(piece, bytes):
            texts.append(piece)
            continue
        joined += [b"".join(texts), piece]
        texts = []
    joined.append(b"".join(texts))
    return joined
