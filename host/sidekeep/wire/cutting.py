"""Where JSON text may be cut into pieces, and how a message is laid out in parts.

The rule (docs/protocol.md, "Parts"): never inside a UTF-8 sequence, never inside an escape, never
between the two escapes of a surrogate pair.
"""

from __future__ import annotations

PIECE_BYTES = 262_144
"""The most JSON text in one piece. Measured in the browsers: frames of 256 KB are the fastest."""

_ESCAPE_BYTES = 6
_BACKSLASH = 0x5C


def border(text: bytes, at: int) -> int:
    """Return the last place not after ``at`` where the inside of a JSON string may be cut.

    ``text`` is JSON text that begins at such a place itself; ``0 <= at``. The result is 0 only if
    the first code point or escape (or pair of escapes) does not end by ``at``.
    """
    if at >= len(text):
        return len(text)
    while at > 0 and text[at] & 0xC0 == 0x80:
        at -= 1
    escape = _escape_across(text, at)
    if escape is not None:
        at = escape
    # A high surrogate's escape right before the cut belongs to the low one behind it.
    if at >= _ESCAPE_BYTES and _is_high_surrogate(text, at - _ESCAPE_BYTES):
        at -= _ESCAPE_BYTES
    return at


def _escape_across(text: bytes, at: int) -> int | None:
    """Return the start of the escape that begins before ``at`` and ends after it."""
    start = text.rfind(b"\\", max(0, at - _ESCAPE_BYTES + 1), at)
    if start < 0 or not _begins_escape(text, start):
        return None
    length = _ESCAPE_BYTES if text[start + 1 : start + 2] == b"u" else 2
    return start if start + length > at else None


def _begins_escape(text: bytes, start: int) -> bool:
    """Return whether the backslash at ``start`` begins an escape and is not escaped itself."""
    before = start
    while before > 0 and text[before - 1] == _BACKSLASH:
        before -= 1
    return (start - before) % 2 == 0


def _is_high_surrogate(text: bytes, start: int) -> bool:
    return (
        text[start : start + 3] in (b"\\ud", b"\\uD")
        and text[start + 3 : start + 4] in (b"8", b"9", b"a", b"A", b"b", b"B")
        and _begins_escape(text, start)
    )
