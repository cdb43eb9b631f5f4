"""What the wire hands to the service and takes back from it.

Rules of this module:

* JSON travels as bytes that were checked once. Nothing here is parsed a second time.
* A string above 64 KB never needs to be in one piece: coming in it is a :class:`Hole`, going out a
  :class:`Cut`. Both carry the JSON-escaped text between the quotes, since that is what stands on
  the pipe in either direction.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Hole(Struct, gc=False):
    """A string that was cut out of an incoming message.

    ``path``: where the string belongs, relative to ``params``; object keys are strings, array
    indexes integers. ``pieces``: its JSON-escaped text without the quotes, UTF-8, strict; every
    piece ends at the border of a code point and of an escape. ``length``: bytes of all pieces.
    """

    path: tuple[str | int, ...]
    pieces: list[bytes]
    length: int


class Call(Struct, gc=False):
    """One request or notification that decoded well.

    ``id``: the JSON text of the id (``b"5"``, ``b'"a"'``, ``b"null"``), or ``None`` for a
    notification. ``params``: strict JSON text of an object, ``b"{}"`` when absent; holes stand in
    it as ``""``. ``op``: 0 … 2^53 or ``None``. ``batch``: whether it stood in an array.
    """

    id: bytes | None
    method: str
    params: bytes
    op: int | None = None
    holes: tuple[Hole, ...] = ()
    batch: bool = False


class Cut:
    """A string of an outgoing message that may travel as a hole. Made to be subclassed.

    ``path``: from the root of the message, for instance ``("result", "items", "shot")``.
    ``length``: bytes of its JSON-escaped text.
    """

    __slots__ = ("length", "path")

    def __init__(self, path: tuple[str | int, ...], length: int) -> None:
        self.path = path
        self.length = length

    def read(self) -> Iterator[bytes]:
        """Yield the JSON-escaped text (no quotes), ``length`` bytes in all.

        Pieces hold at most 262,144 bytes and end at the border of a code point and of an escape,
        never between the two escapes of a surrogate pair. May raise a ``SidekeepError``, which is
        then the answer to the call.
        """
        raise NotImplementedError


Pieces = list[bytes | Cut]
"""The JSON text of a result. A cut stands between its quotes: ``[b'{"a":"', cut, b'"}']``."""
