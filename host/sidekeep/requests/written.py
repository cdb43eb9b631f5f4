"""A request as JSON text: long strings and pictures stand in it as cuts, to be sent apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from sidekeep.jsontext import Path
from sidekeep.store.rope import Blob
from sidekeep.wire.held import LongText
from sidekeep.wire.messages import Cut, Pieces

_encode = msgspec.json.encode
_APART_FROM = 65_536

PictureCut = Callable[[Path, Blob, bool], Cut]
"""Gives the cut for the picture at a path: its whole data URL, or only the data in it."""


class Pixels(NamedTuple):
    """A stored picture in a request. ``whole``: its data URL, else only the data in it."""

    blob: Blob
    whole: bool = True


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
