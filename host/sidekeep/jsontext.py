r"""Work on JSON *text* without parsing it: where it may be cut, where its long strings are.

Both the store (which takes long strings out of a value) and the wire (which sends them in pieces)
need these rules, so they stand below both. Everything here works on UTF-8 bytes that have already
been checked to be strict JSON.

Words used: the *escaped text* of a string is what stands between its quotes.
"""

from __future__ import annotations

import re

import msgspec

_object_of_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array_of_raw = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.encode

_BACKSLASH = 0x5C
_LETTER_U = 0x75

Path = tuple[str | int, ...]


class PathError(ValueError):
    """A path does not lead to a place in the text."""


def safe_cut(text: bytes | memoryview, limit: int) -> int:
    r"""Return the largest place <= ``limit`` (bytes) at which escaped string text may be cut.

    The cut never falls inside a UTF-8 sequence, inside an escape (``\n``, ``\u00e9``) or between
    the two escapes of a surrogate pair. ``text`` must begin at such a place itself. If all of
    ``text`` fits, its length is returned. ``limit`` must be at least 12.
    """
    if len(text) <= limit:
        return len(text)
    place = limit
    while text[place] & 0xC0 == 0x80:
        place -= 1
    # An escape that begins up to five bytes before the cut may reach over it.
    for start in range(place - 1, max(place - 6, -1), -1):
        if text[start] == _BACKSLASH:
            if _begins_escape(text, start):
                length = 6 if text[start + 1] == _LETTER_U else 2
                if start + length > place:
                    place = start
            break
    if (
        place >= 6
        and text[place] == _BACKSLASH
        and text[place + 1] == _LETTER_U
        and text[place - 6] == _BACKSLASH
        and text[place - 5] == _LETTER_U
        and bytes(text[place - 4 : place - 2]).lower() in {b"d8", b"d9", b"da", b"db"}
        and _begins_escape(text, place - 6)
    ):
        place -= 6
    return place


def _begins_escape(text: bytes | memoryview, backslash: int) -> bool:
    """Whether the backslash at that place begins an escape (an even number stands before it)."""
    before = backslash - 1
    while before >= 0 and text[before] == _BACKSLASH:
        before -= 1
    return (backslash - 1 - before) % 2 == 0


def string_growth(text: bytes | memoryview) -> int:
    r"""Return how many bytes longer Chromium writes this escaped text than ``JSON.stringify``.

    Chromium's writer escapes ``<`` as ``\u003C`` and the separators U+2028 and U+2029 (three bytes
    in UTF-8, six as an escape), which count in ``chrome.storage.local.getBytesInUse``.
    """
    data = text if isinstance(text, bytes) else bytes(text)
    growth = 5 * data.count(b"<")
    if b"\xe2\x80" in data:
        growth += 3 * (data.count(b"\xe2\x80\xa8") + data.count(b"\xe2\x80\xa9"))
    return growth


_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_TEN_DIGITS = re.compile(rb"\d{10}")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def text_growth(text: bytes) -> int:
    """Return how many bytes longer (or shorter) Chromium writes this JSON text."""
    return string_growth(text) + numbers_growth(text)


def numbers_growth(text: bytes) -> int:
    """Return how many bytes longer (or shorter) Chromium writes the numbers of this JSON text.

    What is no 32-bit integer is a double there, written with ".0" below 1e12 and with an exponent
    from 1e12 on. Measured on Chromium 156 with ``getBytesInUse``. ``text`` must be whole: a piece
    that begins inside a string would be misread.
    """
    if not _TEN_DIGITS.search(text):
        return 0
    return sum(
        _number_growth(match.group(), integral=match.group(1) is None)
        for match in _NUMBER.finditer(_STRING.sub(b'""', text))
        if match.group(2) is None
    )


def _number_growth(token: bytes, *, integral: bool) -> int:
    value = float(token)
    if integral and -(2**31) <= value < 2**31:
        return 0
    if abs(value) < 1e12:
        return 2 if integral else 0
    if abs(value) >= 1e21:
        return 0
    digits = len(repr(abs(value)).split("e")[0].replace(".", "").removesuffix("0").rstrip("0"))
    exponential = digits + (digits > 1) + len("e+12") + (value < 0)
    return exponential - len(token)


def split_at(text: bytes, paths: list[Path]) -> list[bytes]:
    """Cut ``text`` at the strings that the paths lead to.

    ``paths``: from the root of ``text`` to strings that stand in it as ``""``, in the order in
    which they stand. Returns one piece more than there are paths: the texts before, between and
    behind them, each ending with the opening and beginning with the closing quote. Raises
    ``PathError`` where a path leads nowhere, to something else than ``""``, or out of order.
    """
    pieces: list[list[bytes]] = [[]]
    _split(text, list(enumerate(paths)), 0, pieces)
    if len(pieces) != len(paths) + 1:
        raise PathError("two paths lead to the same string")
    return [b"".join(piece) for piece in pieces]


def _split(
    text: bytes, wanted: list[tuple[int, Path]], depth: int, pieces: list[list[bytes]]
) -> None:
    number, path = wanted[0]
    if len(path) == depth:
        if len(wanted) > 1 or text.strip() != b'""':
            raise PathError("a path does not lead to an empty string")
        if number != len(pieces) - 1:
            raise PathError("the paths are not in the order of the text")
        pieces[-1].append(b'"')
        pieces.append([b'"'])
        return
    groups: dict[str | int, list[tuple[int, Path]]] = {}
    for one in wanted:
        if len(one[1]) <= depth:
            raise PathError("a path leads to something that holds another path's string")
        groups.setdefault(one[1][depth], []).append(one)
    try:
        if isinstance(path[depth], str):
            fields = _object_of_raw.decode(text)
            named = [(_encode(name) + b":", name, bytes(raw)) for name, raw in fields.items()]
            pieces[-1].append(b"{")
            close = b"}"
            found = sum(name in groups for name in fields)
            members: list[tuple[bytes, str | int, bytes]] = list(named)
        else:
            elements = _array_of_raw.decode(text)
            pieces[-1].append(b"[")
            close = b"]"
            members = [(b"", index, bytes(raw)) for index, raw in enumerate(elements)]
            found = sum(0 <= index < len(elements) for index in groups if isinstance(index, int))
    except msgspec.DecodeError as error:
        raise PathError("a path leads through something that is no object or array") from error
    if found != len(groups):
        raise PathError("a path leads to a place that does not exist")
    comma = b""
    for label, name, member in members:
        pieces[-1].append(comma + label)
        comma = b","
        inner = groups.get(name)
        if inner is None:
            pieces[-1].append(member)
        else:
            _split(member, inner, depth + 1, pieces)
    pieces[-1].append(close)


def long_strings(text: bytes, at_least: int, start: int = 0) -> list[tuple[int, int]]:
    """Return ``(start, end)`` of the escaped text of every string of ``at_least`` bytes or more.

    Keys of objects are strings too, but stay in the text: they are left out. ``start``: where to
    begin, outside of any string.
    """
    found = []
    for match in _STRING.finditer(text, start):
        begin, end = match.start() + 1, match.end() - 1
        if end - begin >= at_least and text[end + 1 : end + 33].lstrip()[:1] != b":":
            found.append((begin, end))
    return found


def paths_of(pieces: list[bytes]) -> list[Path]:
    """Return the path of each string that was cut out between the given pieces.

    ``pieces`` are JSON text with strings missing between them (each gap stands between quotes).
    """
    import os

    mark = os.urandom(12).hex()
    joined = bytearray(pieces[0])
    for number, piece in enumerate(pieces[1:]):
        joined += f"{mark}{number}".encode()
        joined += piece
    paths: list[Path] = [()] * (len(pieces) - 1)
    stack: list[tuple[Path, object]] = [((), msgspec.json.decode(bytes(joined)))]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            stack.extend(((*path, name), inner) for name, inner in node.items())
        elif isinstance(node, list):
            stack.extend(((*path, index), inner) for index, inner in enumerate(node))
        elif isinstance(node, str) and node.startswith(mark):
            paths[int(node[len(mark) :])] = path
    return paths
