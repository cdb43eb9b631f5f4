"""Strict JSON: what msgspec lets pass is looked for here, and faulty text is told apart.

Rules of this module (docs/protocol.md, "JSON is read strictly"):

* msgspec refuses bad syntax, NaN, invalid UTF-8, halves of surrogate pairs, control characters,
  floats beyond a double and integers of more than 4,300 digits. It lets pass a key that stands
  twice, integers beyond a double, and nesting down to Python's own limit. Those three are checked
  here.
* The usual text costs one decoding and one encoding: where the encoding equals the text, no key
  can stand twice. Only text that is written differently is looked at more closely.
* Memory stays in proportion to the text, also for text made to break this (see ``stretches``).
"""

from __future__ import annotations

from itertools import accumulate

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder

from sidekeep.errors import ParseError

DEEPEST = 200
"""How deep brackets may nest; the outermost counts as one."""

LONG_BYTES = 8_388_608
"""A text above this is checked in stretches: decoded at once it could take too much memory."""

_DIGITS_OF_A_DOUBLE = 309
"""An integer of fewer digits fits into a double."""
_CHUNK = 1_048_576

decode = Decoder().decode
encode = Encoder().encode

_DIGITS_ALIKE = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG_INTEGER = b"0" * _DIGITS_OF_A_DOUBLE
_NOT_SKELETON = bytes(byte for byte in range(256) if byte not in b'"[]{}:')
_STEPS = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else 0 for byte in range(256))


def brackets(text: bytes) -> int:
    """Return how many opening brackets ``text`` holds, those inside strings included."""
    return text.count(b"[") + text.count(b"{")


def check(text: bytes, *, batch: bool = False) -> None:
    """Raise ``ParseError``, with a sentence that says what is wrong, unless ``text`` is strict.

    ``batch``: it is an array of elements whose depth the caller looks at one by one.
    """
    if len(text) > LONG_BYTES:
        from sidekeep.wire import stretches

        stretches.check(text, DEEPEST + batch)
        return
    check_whole(text)
    if not batch and brackets(text) > DEEPEST and deepest(text) > DEEPEST:
        raise too_deep()


def check_whole(text: bytes) -> object:
    """Return the decoded value of ``text`` if it is strict but for its depth."""
    try:
        value = decode(text)
    except RecursionError:
        raise too_deep() from None
    except MsgspecError as error:
        raise ParseError(f"The text is not valid JSON: {error}.") from None
    long_integer = len(text) >= _DIGITS_OF_A_DOUBLE and _LONG_INTEGER in text.translate(
        _DIGITS_ALIKE
    )
    if long_integer or encode(value) != text:
        members = _count_members(value)
        if text.count(b":") != members and skeleton(text).count(b":") != members:
            raise twice()
    return value


def too_deep() -> ParseError:
    """Return the error for brackets that nest too deep."""
    return ParseError(f"Brackets nest deeper than {DEEPEST}.")


def twice() -> ParseError:
    """Return the error for a key that stands twice."""
    return ParseError("A key stands twice in one object.")


def _count_members(value: object) -> int:
    """Return how many members all objects in ``value`` have together.

    Raises ``ParseError`` at an integer beyond a double.
    """
    members = 0
    values: list[object] = [value]
    for item in values:  # grows while it is walked
        if type(item) is dict:
            members += len(item)
            values.extend(item.values())
        elif type(item) is list:
            values.extend(item)
        elif type(item) is int:
            try:
                float(item)
            except OverflowError:
                raise ParseError("A number is beyond the range of a double.") from None
    return members


def skeleton(text: bytes) -> bytes:
    """Return the brackets and colons of valid JSON that stand outside its strings."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    text = text.translate(None, _NOT_SKELETON)
    outside = bytearray()
    inside = 0
    for start in range(0, len(text), _CHUNK):
        runs = text[start : start + _CHUNK].split(b'"')
        outside += b"".join(runs[inside::2])
        inside ^= (len(runs) - 1) & 1
    return bytes(outside)


def deepest(text: bytes) -> int:
    """Return how deep the brackets of valid JSON nest."""
    return climb(skeleton(text))


def climb(brackets_alone: bytes) -> int:
    """Return how many more brackets are open at the deepest place than at the start, at least 0."""
    steps = memoryview(brackets_alone.translate(_STEPS)).cast("b")
    return max(accumulate(steps, initial=0))
