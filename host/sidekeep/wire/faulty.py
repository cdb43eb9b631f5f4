"""What can still be read of text that is not strict JSON: its elements and its id.

Rules of this module:

* Only texts that were refused come here, so that speed matters little and imports are late.
* Nothing read here is ever acted on. It decides only which request is answered with an error.
* Work is bounded: a text of more than ``MOST_TOKENS`` tokens is given up as not told apart.
"""

from __future__ import annotations

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from sidekeep.wire.strict import decode

MOST_TOKENS = 2_000_000
LONGEST_ID = 1_024
"""Bytes of the JSON text of an id, which is echoed in every answer."""

ID_STARTS = b'"-0123456789n'
"""The first bytes of a string, a number and ``null``."""

_CLOSES = {ord("]"): ord("["), ord("}"): ord("{")}
_SPACE = b" \t\r\n"


class _Identified(Struct, gc=False):
    id: Raw = Raw()


_decode_id = Decoder(_Identified).decode


def split(text: bytes) -> tuple[list[bytes], bool]:
    """Cut the outermost array or object of ``text`` at its commas.

    Returns the texts between the commas and whether the brackets matched up to the end; if they
    did not, the list holds what stood before the fault.
    """
    import re

    opened = bytearray()
    pieces: list[bytes] = []
    quoted = False
    begin = 0
    # An escape is a token of its own, so that the pattern never has to repeat a group: the memory
    # of the matcher stays constant.
    for count, match in enumerate(re.finditer(rb'\\.|["\[\]{},]', text, re.DOTALL)):
        if count > MOST_TOKENS:
            break
        at = match.start()
        token = text[at]
        if token == 0x22:  # "
            quoted = not quoted
        elif quoted or token == 0x5C:  # a backslash
            continue
        elif token == 0x2C:  # ,
            if len(opened) == 1:
                pieces.append(text[begin:at])
                begin = at + 1
        elif token not in _CLOSES:
            if not opened:
                if text[:at].strip(_SPACE):
                    break
                begin = at + 1
            opened.append(token)
        else:
            if not opened or opened.pop() != _CLOSES[token]:
                break
            if not opened:
                pieces.append(text[begin:at])
                return pieces, not text[at + 1 :].strip(_SPACE)
    return pieces, False


def members(text: bytes) -> dict[bytes, bytes]:
    """Return the members of an object by their names with quotes, as far as they can be read."""
    found: dict[bytes, bytes] = {}
    for member in split(text)[0]:
        name, _, value = member.partition(b":")
        found.setdefault(name.strip(_SPACE), value.strip(_SPACE))
    return found


def read_id(text: bytes) -> bytes:
    """Return the JSON text of the id of the request in ``text``, ``b"null"`` if there is none."""
    try:
        found = bytes(_decode_id(text).id)
    except (MsgspecError, RecursionError):
        found = members(text).get(b'"id"', b"")
    if found[:1] in ID_STARTS and 0 < len(found) <= LONGEST_ID:
        try:
            decode(found)
        except MsgspecError:
            return b"null"
        return found
    return b"null"
