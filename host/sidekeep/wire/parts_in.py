"""Incoming messages in parts are joined here (docs/protocol.md, "Parts").

Rules of this module:

* A hole's pieces are kept as they came, JSON-escaped; they are decoded once, only to be checked.
* Memory is bounded by what has arrived: nothing is set aside for a length that is only announced.
* A part that breaks a rule ends its message, once: what still comes of it is acknowledged, so that
  the sender's window empties, and dropped.
* A piece is measured as the UTF-8 text it stands for. How its sender wrote it cannot be told, since
  a browser escapes once more on the way (``<`` arrives as six bytes).
"""

from __future__ import annotations

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from sidekeep.errors import InvalidRequest, SidekeepError, TooLargeError
from sidekeep.wire.frames import PIECE_BYTES
from sidekeep.wire.messages import Call, Hole
from sidekeep.wire.rpc import Part, Refusal, read_element

LARGEST_MESSAGE = 536_870_912
"""Bytes of JSON text in one message, its holes included."""
LARGEST_TOTAL = 2 * LARGEST_MESSAGE
"""Bytes of JSON text in all unfinished messages together."""
MOST_UNFINISHED = 64
FAILURES_KEPT = 1_024
LARGEST_NUMBER = 2**53


class _Head(Struct, gc=False):
    of: int
    i: int
    last: bool
    hole: int | UnsetType = UNSET
    holes: list[list[str | int]] | UnsetType = UNSET


_decode_head = Decoder(_Head).decode
_decode_text = Decoder(str).decode


class _Fault(Exception):
    """A rule was broken: ``error`` is the answer, under the id ``name``, and ends the message."""

    def __init__(self, error: SidekeepError, name: bytes = b"null") -> None:
        super().__init__(error.message)
        self.error = error
        self.name = name


class _Unfinished:
    """A message of which some parts have come."""

    __slots__ = ("call", "holes", "next", "paths", "pieces", "size", "text")

    def __init__(self) -> None:
        self.next = 0
        self.size = 0
        self.text: list[bytes] = []
        self.paths: list[list[str | int]] = []
        self.call: Call | None = None
        """The request, once its text is complete; only its holes are missing then."""
        self.holes: list[Hole] = []
        self.pieces: list[bytes] = []


class Assembler:
    """Joins the parts of all incoming messages."""

    def __init__(self) -> None:
        self._unfinished: dict[int, _Unfinished] = {}
        self._newest = 0
        self._failed: dict[int, None] = {}
        self._size = 0

    def take(self, part: Part) -> tuple[tuple[int, int] | None, Call | Refusal | None]:
        """Take one part.

        Returns what to acknowledge as ``(of, i)``, or ``None``, and what the part brought about: a
        call that is now complete, a refusal that ended a message, or nothing.
        """
        try:
            head = _decode_head(part.part)
        except MsgspecError:
            error = InvalidRequest(
                "A part is {of, i, last, hole?, holes?} with integers, a boolean and paths."
            )
            return None, Refusal(b"null", error)
        if not 0 < head.of <= LARGEST_NUMBER:
            return None, Refusal(b"null", InvalidRequest("of rises from 1."))
        place = (head.of, head.i)
        if head.of in self._failed:
            return place, None
        message = self._unfinished.get(head.of)
        try:
            if message is None:
                message = self._begin(head)
            finished = self._add(message, head, part)
        except _Fault as fault:
            return place, self._end(head.of, fault)
        if finished:
            call = message.call
            del self._unfinished[head.of]
            self._size -= message.size
            if call is not None:
                call.holes = tuple(message.holes)
            return place, call
        return place, None

    def _begin(self, head: _Head) -> _Unfinished:
        if head.of <= self._newest:
            raise _Fault(InvalidRequest("A part belongs to no message that is under way."))
        if len(self._unfinished) >= MOST_UNFINISHED:
            self._newest = head.of
            raise _Fault(
                TooLargeError(f"More than {MOST_UNFINISHED} messages in parts are unfinished.")
            )
        self._newest = head.of
        message = self._unfinished[head.of] = _Unfinished()
        return message

    def _end(self, of: int, fault: _Fault) -> Refusal:
        """End message ``of`` and return the answer to it."""
        self._failed[of] = None
        if len(self._failed) > FAILURES_KEPT:
            del self._failed[next(iter(self._failed))]
        name = fault.name
        message = self._unfinished.pop(of, None)
        if message is not None:
            self._size -= message.size
            if message.call is not None and message.call.id is not None:
                name = message.call.id
        return Refusal(name, fault.error, of=of if name == b"null" else None)

    def _add(self, message: _Unfinished, head: _Head, part: Part) -> bool:
        """Add a part to its message and return whether the message is complete now."""
        if head.i != message.next:
            raise _Fault(InvalidRequest(f"Part {message.next} was due, part {head.i} came."))
        message.next += 1
        if head.hole is UNSET:
            return self._add_text(message, head, part)
        return self._add_hole(message, head, part)

    def _add_text(self, message: _Unfinished, head: _Head, part: Part) -> bool:
        if message.call is not None:
            raise _Fault(InvalidRequest("A text part came after the last one."))
        if not part.text or part.s:
            raise _Fault(InvalidRequest('A text part has a string "text" and no "s".'))
        try:
            piece = _decode_text(part.text).encode()
        except MsgspecError as error:
            raise _Fault(InvalidRequest(f"The text of a part is not sound: {error}.")) from None
        _check_piece(len(piece))
        self._grow(message, len(piece))
        message.text.append(piece)
        if head.holes is not UNSET:
            message.paths.extend(head.holes)
        if not head.last:
            return False
        message.call = _read_request(b"".join(message.text), message.paths)
        message.text.clear()
        return not message.paths

    def _add_hole(self, message: _Unfinished, head: _Head, part: Part) -> bool:
        number = len(message.holes)
        if message.call is None:
            raise _Fault(InvalidRequest("A hole came before the last text part."))
        if head.hole != number:
            raise _Fault(InvalidRequest(f"Hole {number} was due, hole {head.hole} came."))
        if not part.s or part.text or head.holes is not UNSET:
            raise _Fault(InvalidRequest('A part of a hole has a string "s" and no "text".'))
        try:
            length = len(part.s) - 2
            text = _decode_text(part.s)
        except MsgspecError as error:
            raise _Fault(InvalidRequest(f"A piece of a hole is not sound: {error}.")) from None
        _check_piece(length if length <= PIECE_BYTES else len(text.encode()))
        self._grow(message, length)
        if length:
            message.pieces.append(bytes(memoryview(part.s)[1:-1]))
        if not head.last:
            return False
        pieces, message.pieces = message.pieces, []
        path = tuple(message.paths[number][1:])
        message.holes.append(Hole(path, pieces, sum(map(len, pieces))))
        return len(message.holes) == len(message.paths)

    def _grow(self, message: _Unfinished, size: int) -> None:
        message.size += size
        self._size += size
        if message.size > LARGEST_MESSAGE or self._size > LARGEST_TOTAL:
            raise _Fault(
                TooLargeError(
                    f"A message in parts may hold {LARGEST_MESSAGE} bytes.",
                    next="Send less in one call.",
                )
            )


def _check_piece(size: int) -> None:
    if size > PIECE_BYTES:
        raise _Fault(InvalidRequest(f"A piece may hold {PIECE_BYTES} bytes."))


def _read_request(text: bytes, paths: list[list[str | int]]) -> Call:
    """Return the call that the joined text is, with its holes still missing."""
    element = read_element(text)
    if type(element) is Refusal:
        raise _Fault(element.error, element.id)
    if type(element) is not Call:
        raise _Fault(InvalidRequest("A message in parts must be a request."))
    if paths:
        places: _Places = {}
        seen = set()
        for path in paths:
            key = tuple(path)
            if key in seen or path[:1] != ["params"] or not _is_empty_string(text, path, places):
                wrong = 'Each hole needs a path of its own from "params" to an empty string.'
                raise _Fault(InvalidRequest(wrong), element.id or b"null")
            seen.add(key)
    return element


_Places = dict[tuple[str | int, ...], dict[str, Raw] | list[Raw]]
_decode_members = Decoder(dict[str, Raw]).decode
_decode_items = Decoder(list[Raw]).decode


def _is_empty_string(text: bytes, path: list[str | int], places: _Places) -> bool:
    """Return whether ``path`` leads to an empty string in ``text``.

    Only the containers on the way are opened, each once: ``places`` keeps them for the next path.
    """
    node = Raw(text)
    for depth, step in enumerate(path):
        way = tuple(path[:depth])
        children = places.get(way)
        if children is None:
            kind = bytes(memoryview(node)[:1])
            if kind == b"{":
                children = _decode_members(node)
            elif kind == b"[":
                children = _decode_items(node)
            else:
                return False
            places[way] = children
        child: Raw | None = None
        if type(children) is dict and type(step) is str:
            child = children.get(step)
        elif type(children) is list and type(step) is int and 0 <= step < len(children):
            child = children[step]
        if child is None:
            return False
        node = child
    return len(node) == 2 and bytes(node) == b'""'
