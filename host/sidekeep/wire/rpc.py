"""JSON-RPC 2.0: the body of a frame becomes calls and refusals, results become responses.

Rules of this module:

* A body that is in order is decoded twice by msgspec (typed, and plain to prove that it is strict)
  and touched by nothing else.
* Whatever is wrong is a :class:`Refusal` of that element alone. Only if the elements of a batch
  cannot be told apart does the batch fail as a whole.
* Every response made here is strict JSON, whatever stood in the request or in the error.
* Depth is counted in the text of one element: the brace of the request itself is the first.
"""

from __future__ import annotations

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from sidekeep.errors import (
    InvalidParams,
    InvalidRequest,
    ParseError,
    SidekeepError,
    TooLargeError,
)
from sidekeep.wire import strict
from sidekeep.wire.messages import Call
from sidekeep.wire.strict import encode

LARGEST_OPERATION = 2**53
MOST_ELEMENTS = 65_536
"""Elements of one batch; more would let a frame of 64 MB become many times as much memory."""
LONGEST_MESSAGE = 500
"""Characters of the sentence of an error, which may quote what a caller sent."""
LARGEST_ERROR = 65_536
"""Bytes of one error object; beyond it the further fields of ``data`` are left out."""

_ID_STARTS = b'"-0123456789n'
_LONGEST_ID = 1_024
_ABSENT = Raw()


class Refusal(Struct, gc=False):
    """An element that is answered with ``error`` under ``id`` (JSON text) and goes no further.

    ``of``: the message in parts that ends with it and whose id is not known.
    """

    id: bytes
    error: SidekeepError
    batch: bool = False
    of: int | None = None

    def __post_init__(self) -> None:
        # A traceback holds the frames that it passed, and with them the text of a big message; in a
        # cycle with this object it would stay for ever.
        self.error.__traceback__ = None
        self.error.__context__ = None


class Acknowledgement(Struct, gc=False):
    """``{"ack": {"of", "i"}}``: part ``i`` of message ``of`` and all before it have arrived."""

    of: int
    i: int


class Part(Struct, gc=False):
    """A part as it stood in the frame; ``s`` and ``text`` are checked for grammar only."""

    part: Raw
    text: Raw = _ABSENT
    s: Raw = _ABSENT


Element = Call | Refusal | Acknowledgement | Part


class _Message(Struct, gc=False):
    jsonrpc: str = ""
    id: Raw = _ABSENT
    method: str | UnsetType = UNSET
    params: Raw = _ABSENT
    op: int | UnsetType = UNSET
    part: Raw = _ABSENT
    text: Raw = _ABSENT
    s: Raw = _ABSENT
    ack: Raw = _ABSENT


_decode_message = Decoder(_Message).decode
_decode_messages = Decoder(list[_Message]).decode
_decode_elements = Decoder(list[Raw]).decode
_decode_members = Decoder(dict[str, Raw]).decode
_decode_part = Decoder(Part).decode
_decode_acknowledgement = Decoder(Acknowledgement).decode


def read(body: bytes) -> list[Element]:
    """Return the elements of the frame with this body, in order."""
    first = body[:1]
    if first not in (b"{", b"["):
        body = body.lstrip(b" \t\r\n")
        first = body[:1]
    if first == b"[":
        return _read_batch(body)
    if body.startswith(b'{"part":'):
        part = _read_plain_part(body)
        if part is not None:
            return [part]
    return [read_element(body)]


def read_element(text: bytes, *, batch: bool = False) -> Element:
    """Return what one object, alone in a frame or an element of a batch, asks for."""
    try:
        message = _decode_message(text)
        strict.check(text)
    except (MsgspecError, RecursionError, SidekeepError):
        return _explain(text, batch=batch)
    return _judge(message, batch)


def _read_plain_part(body: bytes) -> Part | None:
    """Return a part that is written without spaces and has no further members.

    The whole body need not be decoded then to know that no key stands twice.
    """
    try:
        part = _decode_part(body)
        strict.check(bytes(part.part))
    except (MsgspecError, RecursionError, SidekeepError):
        return None
    size = len('{"part":}') + len(part.part)
    if part.s:
        size += len(',"s":') + len(part.s)
    if part.text:
        size += len(',"text":') + len(part.text)
    return part if size == len(body) else None


def _read_batch(body: bytes) -> list[Element]:
    try:
        messages = _decode_messages(body)
        strict.check(body, batch=True)
    except (MsgspecError, RecursionError, SidekeepError):
        return _read_faulty_batch(body)
    if not messages:
        return [Refusal(b"null", InvalidRequest("An empty array asks for nothing."))]
    if len(messages) > MOST_ELEMENTS:
        return [_too_many()]
    if strict.brackets(body) > strict.DEEPEST and not _surely_shallow(body, messages):
        return [read_element(bytes(text), batch=True) for text in _decode_elements(body)]
    return [_judge(message, True) for message in messages]


def _surely_shallow(body: bytes, messages: list[_Message]) -> bool:
    """Return whether no element has enough brackets to nest too deep."""
    rest = strict.brackets(body) - 1 - len(messages)
    for message in messages:
        inside = strict.brackets(bytes(message.params))
        if inside >= strict.DEEPEST:
            return False
        rest -= inside
    return rest < strict.DEEPEST


def _read_faulty_batch(body: bytes) -> list[Element]:
    from sidekeep.wire import faulty

    elements, whole = faulty.split(body)
    if not whole:
        return [Refusal(b"null", ParseError("The elements of the array cannot be told apart."))]
    if len(elements) > MOST_ELEMENTS:
        return [_too_many()]
    return [read_element(text.strip(b" \t\r\n"), batch=True) for text in elements]


def _too_many() -> Refusal:
    return Refusal(
        b"null",
        TooLargeError(
            f"An array holds more than {MOST_ELEMENTS} elements; none of them was carried out.",
            next="Send the calls in several arrays.",
        ),
    )


def _judge(message: _Message, batch: bool) -> Element:
    """Return what a message asks for whose JSON is strict and whose members have their types."""
    method = message.method
    if method is UNSET and not message.jsonrpc:
        if message.part:
            return Part(message.part, message.text, message.s)
        if message.ack:
            try:
                return _decode_acknowledgement(message.ack)
            except MsgspecError:
                error = InvalidRequest("An acknowledgement is {ack: {of: integer, i: integer}}.")
                return Refusal(b"null", error, batch)
    name = bytes(message.id)
    if name and (name[:1] not in _ID_STARTS or len(name) > _LONGEST_ID):
        error = InvalidRequest(
            f"An id is a string, a number or null, of at most {_LONGEST_ID} bytes."
        )
        return Refusal(b"null", error, batch)
    if message.jsonrpc != "2.0" or method is UNSET:
        return Refusal(name or b"null", InvalidRequest(_NO_REQUEST), batch)
    operation = None if message.op is UNSET else message.op
    if operation is not None and not 0 <= operation <= LARGEST_OPERATION:
        return Refusal(name or b"null", InvalidRequest(_NO_OPERATION), batch)
    params = bytes(message.params) or b"{}"
    if params[0] != 0x7B:  # {
        return Refusal(name or b"null", InvalidParams("params must be an object."), batch)
    return Call(name or None, method, params, operation, (), batch)


_NO_REQUEST = 'A request is an object with jsonrpc "2.0" and a method, which is a string.'
_NO_OPERATION = "op must be an integer from 0 to 2^53."


def _explain(text: bytes, *, batch: bool) -> Refusal | Part:
    """Return the refusal of an element that did not decode, with its id if that can be read.

    A part whose head can be read is returned as a part, since its message ends with it.
    """
    from sidekeep.wire import faulty

    try:
        strict.check(text)
    except SidekeepError as error:
        if text.startswith(b'{"part":'):
            found = faulty.members(text)
            head = found.get(b'"part"', b"")
            if _is_strict(head):
                return Part(Raw(head), Raw(found.get(b'"text"', b"")), Raw(found.get(b'"s"', b"")))
        return Refusal(faulty.read_id(text), without_traceback(error), batch)
    name = faulty.read_id(text)
    wrong = _NO_REQUEST
    if text[:1] == b"{":
        members = _decode_members(text)
        version, method = (
            bytes(members.get("jsonrpc", _ABSENT)),
            bytes(members.get("method", _ABSENT)),
        )
        if version == b'"2.0"' and method[:1] == b'"':
            wrong = _NO_OPERATION
    return Refusal(name, InvalidRequest(wrong), batch)


def _is_strict(text: bytes) -> bool:
    try:
        strict.check(text)
    except SidekeepError:
        return False
    return True


def without_traceback(error: SidekeepError) -> SidekeepError:
    """Return ``error`` without the frames it went through, which hold on to all that they read."""
    error.__context__ = None
    return error.with_traceback(None)


def excerpt(text: str, longest: int = 80) -> str:
    """Return ``text`` cut to at most ``longest`` characters, for quoting in an error."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def failure(name: bytes, error: SidekeepError, *, of: int | None = None) -> bytes:
    """Return the response with this error. It is strict JSON whatever the error carries.

    ``name``: the JSON text of the request's id. ``of``: the message in parts that this ends.
    """
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (name, _error_body(error, of))


def _error_body(error: SidekeepError, of: int | None) -> bytes:
    """Return the JSON text of an error object, at most ``LARGEST_ERROR`` bytes of it."""
    data: dict[str, object] = {"kind": error.kind}
    if error.next is not None:
        data["next"] = _sound(excerpt(error.next, LONGEST_MESSAGE))
    if of is not None:
        data["of"] = of
    body = {
        "code": error.code,
        "message": _sound(excerpt(error.message, LONGEST_MESSAGE)),
        "data": {**error.data, **data},
    }
    try:
        text = encode(body)
        strict.check(text)
    except (MsgspecError, SidekeepError, TypeError, ValueError, RecursionError):
        text = b""
    return text if 0 < len(text) <= LARGEST_ERROR else encode({**body, "data": data})


def _sound(text: str) -> str:
    """Return ``text`` without halves of surrogate pairs, which no JSON text in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode()
