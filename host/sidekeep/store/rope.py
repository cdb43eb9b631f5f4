"""A value as a rope: its JSON text with the long strings taken out.

Rules:

* Concatenating a rope gives back, byte for byte, the text that was sent.
* A string of 4 KB or more becomes a blob: its bytes if it is base64 (with or without ``data:…``
  before it) and encoding them again gives the same text, else its escaped text.
* A run of text that is still long after that becomes a blob as well, so that rows stay small.
* No user value can be mistaken for a reference: references are no JSON, and text is never searched
  for them. (A token is no reference in stored text: it never gets that far, see ``tokens``.)

Nothing here touches the file; ``blobs`` and ``records`` write what this module makes.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from sidekeep.jsontext import (
    Path,
    long_strings,
    numbers_growth,
    paths_of,
    safe_cut,
    split_at,
    string_growth,
    text_growth,
)
from sidekeep.store import tokens
from sidekeep.store.layout import (
    BLOB_FROM,
    CHUNK,
    KIND_BASE64,
    KIND_FRAGMENT,
    KIND_STRING,
    TEXT_RUN_LIMIT,
    hash_of,
)

# A long string needs its path if it may be longer than what the wire sends within a text.
PATH_FROM = 65_536
_PREFIX_LIMIT = 256


class LongString(Protocol):
    """A string that arrived apart from the text it belongs to."""

    path: Path
    pieces: list[bytes]
    length: int


class Blob:
    """A piece of a rope that is kept apart: content under its hash, and what it stands for.

    ``kind``: what the bytes are (``layout.KIND_…``). ``hash``: the name of the content. ``length``:
    bytes of JSON text that the content stands for, without ``prefix``. ``prefix``: escaped text
    before it in the same string (``data:image/png;base64,``). ``path``: where the string stands in
    the value, ``None`` for strings that are too short to need it and for fragments. ``chunks``: the
    content, only while it is being written.
    """

    __slots__ = ("chunks", "hash", "kind", "length", "path", "prefix")

    def __init__(
        self,
        kind: int,
        name: bytes,
        length: int,
        prefix: bytes,
        path: Path | None,
        chunks: list[bytes] | None = None,
    ) -> None:
        self.kind = kind
        self.hash = name
        self.length = length
        self.prefix = prefix
        self.path = path
        self.chunks = chunks

    @property
    def is_picture(self) -> bool:
        """Whether the string says that it is a picture: ``data:image/…``."""
        return self.prefix.startswith(b"data:image/")


class Value:
    """A value ready to be stored: its pieces, and its size as ``chrome.storage`` counts it."""

    __slots__ = ("body", "pieces", "size")

    def __init__(self, pieces: list[bytes | Blob], size: int) -> None:
        self.pieces = pieces
        self.size = size
        if len(pieces) == 1 and isinstance(pieces[0], bytes):
            self.body = pieces[0]
        else:
            self.body = _encode(pieces)

    @property
    def blobs(self) -> list[Blob]:
        """The pieces that are blobs."""
        return [piece for piece in self.pieces if isinstance(piece, Blob)]

    @property
    def is_text(self) -> bool:
        """Whether the value is one piece of text."""
        return self.body is self.pieces[0]

    @property
    def tokens(self) -> list[Blob]:
        """The strings that are given as tokens: blobs whose content is in the store already."""
        return [blob for blob in self.blobs if blob.chunks is None]


def _encode(pieces: Iterable[bytes | Blob]) -> bytes:
    return msgspec.msgpack.encode(
        [
            piece
            if isinstance(piece, bytes)
            else (piece.kind, piece.hash, piece.length, piece.prefix, piece.path)
            for piece in pieces
        ]
    )


def decode(body: bytes | memoryview) -> list[bytes | Blob]:
    """Return the pieces that ``Value.body`` was made of (blobs without their content)."""
    pieces: list[bytes | Blob] = []
    for piece in msgspec.msgpack.decode(body):
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            kind, name, length, prefix, path = piece
            pieces.append(Blob(kind, name, length, prefix, None if path is None else tuple(path)))
    return pieces


def build(text: bytes, strings: Sequence[LongString] = ()) -> Value:
    """Make a value of strict JSON text.

    ``strings``: those that stand in ``text`` as ``""`` because they arrived apart, with paths from
    the root of ``text``, in the order of the text. Raises ``jsontext.PathError`` where they do not
    fit.
    """
    marked = tokens.MARK in text
    if len(text) < BLOB_FROM and not strings and not marked:
        return Value([text], len(text) + text_growth(text))
    parts = split_at(text, [string.path for string in strings]) if strings else [text]
    pieces: list[bytes | Blob] = []
    lacking: list[Blob] = []
    for number, part in enumerate(parts):
        start = 0
        # Behind a string that arrived apart a part begins with the quote that closes it.
        for begin, end in _apart(part, 1 if number else 0, marked=marked):
            blob = _token(part[begin:end]) if marked else None
            if blob is None:
                if end - begin < BLOB_FROM:
                    continue
                blob = _string([part[begin:end]], end - begin, None)
            _add_text(pieces, part[start:begin])
            if end - begin > PATH_FROM or blob.is_picture:
                lacking.append(blob)
            pieces.append(blob)
            start = end
        _add_text(pieces, part[start:])
        if number < len(strings):
            string = strings[number]
            pieces.append(_string(string.pieces, string.length, string.path))
    if lacking:
        _find_paths(pieces, lacking)
    # Numbers are counted over all of the text, with "" where a string was taken out.
    emptied = b"".join(map(_text_of, pieces))
    return Value(pieces, sum(map(_size, pieces)) + numbers_growth(emptied))


def _apart(text: bytes, start: int, *, marked: bool) -> list[tuple[int, int]]:
    """Return the places of the strings behind ``start`` that may have to leave the text."""
    if marked:
        return long_strings(text, tokens.SHORTEST, start)
    return long_strings(text, BLOB_FROM, start) if len(text) >= BLOB_FROM else []


def _token(text: bytes) -> Blob | None:
    """Return the picture that the string stands for, if it is a token."""
    found = tokens.read(text)
    return None if found is None else Blob(*found, None)


def _text_of(piece: bytes | Blob) -> bytes:
    """Return the piece's text, nothing for a string."""
    if isinstance(piece, bytes):
        return piece
    return b"".join(piece.chunks or ()) if piece.kind == KIND_FRAGMENT else b""


def _size(piece: bytes | Blob) -> int:
    """Return the bytes of the piece's text as Chromium writes it, numbers aside."""
    if isinstance(piece, bytes):
        return len(piece) + string_growth(piece)
    size = len(piece.prefix) + piece.length + string_growth(piece.prefix)
    if piece.kind != KIND_BASE64:
        size += sum(map(string_growth, piece.chunks or ()))
    return size


def _add_text(pieces: list[bytes | Blob], text: bytes) -> None:
    if len(text) <= TEXT_RUN_LIMIT:
        pieces.append(text)
        return
    chunks = []
    start = 0
    while start < len(text):
        end = min(start + CHUNK, len(text))
        while end < len(text) and text[end] & 0xC0 == 0x80:
            end -= 1
        chunks.append(text[start:end])
        start = end
    pieces.append(Blob(KIND_FRAGMENT, hash_of(*chunks), len(text), b"", None, chunks))


def _string(pieces: list[bytes], length: int, path: Path | None) -> Blob:
    """Make a blob of a string's escaped text, which arrived in ``pieces`` of ``length`` bytes."""
    prefix = b""
    rest = pieces
    start = pieces[0][:_PREFIX_LIMIT]
    if start.startswith(b"data:"):
        end = start.find(b",")
        if end >= 0 and b"\\" not in start[:end]:
            prefix = start[: end + 1]
            rest = [pieces[0][len(prefix) :], *pieces[1:]]
    inner = length - len(prefix)
    chunks = None
    if not prefix or prefix.endswith(b";base64,"):
        chunks = _base64(rest, inner)
    if chunks is not None:
        return Blob(KIND_BASE64, hash_of(*chunks), inner, prefix, path, chunks)
    chunks = list(_text_chunks(rest))
    return Blob(KIND_STRING, hash_of(*chunks), inner, prefix, path, chunks)


def _base64(pieces: list[bytes], length: int) -> list[bytes] | None:
    """Return the bytes, in chunks, whose base64 form is exactly this text, or ``None``."""
    if length % 4 or not length:
        return None
    chunks: list[bytes] = []
    current = bytearray()
    carry = b""
    padded = False
    for piece in pieces:
        text = carry + piece if carry else piece
        whole = len(text) - len(text) % 4
        carry = text[whole:]
        if carry:
            text = text[:whole]
        if not text:
            continue
        if padded:  # padding in the middle decodes, but the whole would not encode back
            return None
        try:
            content = binascii.a2b_base64(text)
        except binascii.Error:
            return None
        if binascii.b2a_base64(content, newline=False) != text:
            return None
        padded = text.endswith(b"=")
        current += content
        while len(current) >= CHUNK:
            chunks.append(bytes(current[:CHUNK]))
            del current[:CHUNK]
    if current:
        chunks.append(bytes(current))
    return chunks


def _text_chunks(pieces: list[bytes]) -> Iterable[bytes]:
    """Join and cut escaped text into chunks that each end where text may be cut."""
    current: list[bytes] = []
    room = CHUNK
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            if len(rest) > room:
                if current:
                    yield b"".join(current)
                    current, room = [], CHUNK
                    continue
                place = safe_cut(rest, CHUNK)
                yield bytes(rest[:place])
                rest = rest[place:]
                continue
            current.append(bytes(rest))
            room -= len(rest)
            break
    if current:
        yield b"".join(current)


def _find_paths(pieces: list[bytes | Blob], lacking: list[Blob]) -> None:
    """Give the long strings that were found inside the text their paths."""
    texts: list[bytes] = [b""]
    gaps: list[Blob] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            texts[-1] += piece
        elif piece.kind == KIND_FRAGMENT:
            texts[-1] += b"".join(piece.chunks or ())
        else:
            gaps.append(piece)
            texts.append(b"")
    for blob, path in zip(gaps, paths_of(texts), strict=True):
        if blob in lacking:
            blob.path = path


def checksum(*parts: bytes | memoryview) -> int:
    """Return the CRC-32 over the parts' concatenation."""
    value = 0
    for part in parts:
        value = zlib.crc32(part, value)
    return value
