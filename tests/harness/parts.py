"""Messages in parts, both ways, written from ``docs/protocol.md`` and not from the host's code.

Rules (section "Parts" of that page): a message above 262,144 bytes of JSON text travels as its
text, with each string above 65,536 bytes cut out and sent as bare JSON strings after it; pieces
hold at most 262,144 bytes and are cut at code points; parts are numbered without gaps.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .strict_json import parse_strict

MESSAGE_LIMIT = 262_144
"""A message with more bytes of JSON text than this travels in parts."""

STRING_LIMIT = 65_536
"""A string with more bytes of JSON text (between its quotes) than this is cut out."""

PIECE_LIMIT = 262_144
"""Most bytes of JSON text in one piece."""

Path = list[str | int]

_HOLE_PIECE = re.compile(rb'"s"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"')


class PartError(Exception):
    """The parts received break a rule of the protocol."""


def to_json(value: Any, *, ascii_only: bool = False) -> bytes:
    """Return compact JSON text; with ``ascii_only`` every other character becomes an escape.

    Lone surrogates, which UTF-8 cannot carry, are always written as escapes.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def pieces(text: bytes, limit: int = PIECE_LIMIT) -> list[bytes]:
    """Cut JSON text (of anything, or of a string between its quotes) into pieces.

    ``limit``: most bytes in one, at least 12. Never cuts inside a UTF-8 sequence, inside an escape
    or between the escapes of a surrogate pair. Empty text is one empty piece.
    """
    result = []
    start = 0
    while len(text) - start > limit:
        cut = _safe_cut(text, start, start + limit)
        result.append(text[start:cut])
        start = cut
    result.append(text[start:])
    return result


def _safe_cut(text: bytes, start: int, cut: int) -> int:
    while text[cut] & 0xC0 == 0x80:
        cut -= 1
    escape = _escape_over(text, start, cut)
    if escape is not None:
        cut = escape
    # The cut now lies between two characters; keep the two halves of a surrogate pair together.
    if (
        text[cut : cut + 2] == b"\\u"
        and text[cut + 2 : cut + 4].lower() in {b"dc", b"dd", b"de", b"df"}
        and text[cut - 6 : cut - 2].lower() in {b"\\ud8", b"\\ud9", b"\\uda", b"\\udb"}
        and _escape_over(text, start, cut - 5) == cut - 6
    ):
        cut -= 6
    return cut


def _escape_over(text: bytes, start: int, cut: int) -> int | None:
    """Return where the escape begins that a cut at ``cut`` would split, or ``None``."""
    last = text.rfind(b"\\", max(start, cut - 5), cut)
    if last < 0:
        return None
    run = last
    while run > start and text[run - 1 : run] == b"\\":
        run -= 1
    if (last - run) % 2 == 1:
        return None  # the last backslash is itself escaped
    length = 6 if text[last + 1 : last + 2] == b"u" else 2
    return last if last + length > cut else None


def split_message(
    value: Any, of: int, *, ascii_only: bool = False, limit: int = PIECE_LIMIT
) -> list[bytes]:
    """Return the frame bodies that carry the message ``value`` in parts, as message number ``of``.

    ``limit`` (bytes) makes the pieces smaller than the protocol's, which is allowed. The value is
    not changed. Whether a message may travel whole is the caller's decision.
    """
    paths: list[Path] = []
    holes: list[bytes] = []

    def without_big(node: Any, path: Path) -> Any:
        if isinstance(node, str):
            if len(node) * 6 > STRING_LIMIT:
                inner = to_json(node, ascii_only=ascii_only)[1:-1]
                if len(inner) > STRING_LIMIT:
                    paths.append(path)
                    holes.append(inner)
                    return ""
            return node
        if isinstance(node, dict):
            return {key: without_big(item, [*path, key]) for key, item in node.items()}
        if isinstance(node, list):
            return [without_big(item, [*path, index]) for index, item in enumerate(node)]
        return node

    text = to_json(without_big(value, []), ascii_only=ascii_only)
    bodies = []
    cut = pieces(text, limit)
    for index, piece in enumerate(cut):
        last = index == len(cut) - 1
        part: dict[str, Any] = {"of": of, "i": index, "last": last}
        if index == 0 and paths:
            part["holes"] = paths
        bodies.append(to_json({"part": part, "text": piece.decode()}))
    for number, hole in enumerate(holes):
        cut = pieces(hole, limit)
        for index, piece in enumerate(cut):
            head = to_json(
                {"of": of, "hole": number, "i": len(bodies), "last": index == len(cut) - 1}
            )
            bodies.append(b'{"part":' + head + b',"s":"' + piece + b'"}')
    return bodies


class _Message:
    """What has arrived of one message."""

    def __init__(self) -> None:
        self.next = 0
        self.text: list[str] = []
        self.text_done = False
        self.paths: list[Path] = []
        self.hole = 0
        self.strings: list[list[str]] = []


class PartJoiner:
    """Puts the messages of one direction together and checks every rule of the protocol."""

    def __init__(self) -> None:
        self._open: dict[int, _Message] = {}
        self._highest = 0

    @property
    def unfinished(self) -> list[int]:
        """The numbers of the messages of which parts are missing."""
        return sorted(self._open)

    def add(self, frame: dict[str, Any], body: bytes) -> Any | None:
        """Take in one part (value and text of its frame); return the message when it is whole.

        Raises ``PartError`` with the rule that was broken.
        """
        part = frame["part"]
        number, index, last = part.get("of"), part.get("i"), part.get("last")
        if type(number) is not int or type(index) is not int or type(last) is not bool:
            raise PartError(f"a part without of, i or last: {part}")
        if number not in self._open:
            if number <= self._highest:
                raise PartError(f"message {number} begins after message {self._highest}")
            self._open[number] = _Message()
            self._highest = number
        message = self._open[number]
        if index != message.next:
            raise PartError(f"part {index} of message {number} where {message.next} is due")
        message.next += 1
        if "hole" in part:
            self._add_string(message, part, frame, body)
        else:
            self._add_text(message, part, frame)
        if not message.text_done or message.hole < len(message.paths):
            return None
        del self._open[number]
        return _fill(message)

    @staticmethod
    def _add_text(message: _Message, part: dict[str, Any], frame: dict[str, Any]) -> None:
        if message.text_done:
            raise PartError(f"text after the last text: {part}")
        piece = frame["text"]
        if len(piece.encode()) > PIECE_LIMIT:
            raise PartError(f"a piece of text of {len(piece.encode())} bytes: {part}")
        message.text.append(piece)
        message.paths += part.get("holes", [])
        message.text_done = part["last"]

    @staticmethod
    def _add_string(
        message: _Message, part: dict[str, Any], frame: dict[str, Any], body: bytes
    ) -> None:
        if not message.text_done or part["hole"] != message.hole:
            raise PartError(f"hole {message.hole} is due: {part}")
        found = _HOLE_PIECE.search(body)
        if found is None:
            raise PartError(f"no string in {part}")
        if len(found[1]) > PIECE_LIMIT:
            raise PartError(f"a piece of a string of {len(found[1])} bytes: {part}")
        while len(message.strings) <= message.hole:
            message.strings.append([])
        message.strings[message.hole].append(frame["s"])
        if part["last"]:
            message.hole += 1


def _fill(message: _Message) -> Any:
    text = "".join(message.text).encode()
    strings = ["".join(string) for string in message.strings]
    if len(text) + sum(len(string) * 6 for string in strings) <= MESSAGE_LIMIT:
        raise PartError(f"a message of {len(text)} bytes of text came in parts")
    root = parse_strict(text)
    _refuse_long(root)
    for path, string in zip(message.paths, strings, strict=True):
        if len(to_json(string, ascii_only=True)) - 2 <= STRING_LIMIT:
            raise PartError(f"a string of {len(string)} characters was cut out at {path}")
        node = root
        for step in path[:-1]:
            node = node[step]
        if node[path[-1]] != "":
            raise PartError(f"{path} does not lead to an empty string")
        node[path[-1]] = string
    return root


def _refuse_long(node: Any) -> None:
    """Refuse big strings in the text; those under a huge key stay, since a path names the key."""
    if isinstance(node, str):
        if len(node) > STRING_LIMIT:
            raise PartError(f"a string of {len(node)} characters was left in the text")
    elif isinstance(node, dict):
        for key, item in node.items():
            if len(key) <= STRING_LIMIT:
                _refuse_long(item)
    elif isinstance(node, list):
        for item in node:
            _refuse_long(item)
