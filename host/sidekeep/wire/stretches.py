"""Strict JSON of many megabytes, checked stretch by stretch.

Decoded at once, a text of small values takes up to thirty times its size in memory, and nothing
else runs meanwhile, not even the thread that ends the process. So a long text is cut at commas into
stretches of about 256 KB. Each is completed by the brackets that are open around it, and is
then a text that ``strict`` can check.

Rules of this module:

* The verdict is the same as that of ``strict.check`` on the whole text (a test compares them).
* Between two stretches only the kinds of the open brackets are kept, and the keys of open objects,
  since a key may stand again in a later stretch.
"""

from __future__ import annotations

import os

from sidekeep.errors import ParseError
from sidekeep.wire import strict

STRETCH_BYTES = 262_144

_OPENS = b"[{"
_CLOSES = {0x5D: 0x5B, 0x7D: 0x7B}
_OBJECT = 0x7B
_SPACE = b" \t\r\n"


def check(text: bytes, deepest: int) -> None:
    """Raise ``ParseError`` unless ``text`` is strict JSON that nests at most ``deepest`` deep."""
    # The key under which an open container stands in its completed stretch. No text can know it.
    mark = os.urandom(16).hex()
    opened = bytearray()
    keys: list[set[str]] = []
    start = 0
    while True:
        end = _last_comma(text, start)
        stretch = text[start:end]
        content = stretch.strip(_SPACE)
        # Only completed by brackets would these be JSON: ``[1,`` + ``]`` and ``[`` + ``,1]``.
        if start and content[:1] in (b"", b"]", b"}"):
            raise ParseError("The text is not valid JSON: nothing stands behind a comma.")
        if end < len(text) and content[-1:] in (b"", b"[", b"{"):
            raise ParseError("The text is not valid JSON: nothing stands before a comma.")
        before = bytes(opened)
        brackets = strict.skeleton(stretch).replace(b":", b"")
        untouched = _follow(brackets, opened, deepest)
        value = strict.check_whole(_completed(stretch, before, opened, mark))
        _compare_keys(value, before, keys, mark)
        keys[untouched:] = _keys_of_last(value, before, bytes(opened), untouched, mark)
        if end == len(text):
            break
        if not opened:
            raise ParseError("The text is not valid JSON: something stands behind its end.")
        start = end + 1
    if opened:
        raise ParseError("The text is not valid JSON: it ends too early.")


def _last_comma(text: bytes, start: int) -> int:
    """Return the place of the last comma between values in the next stretch, or the text's end.

    ``start`` is outside of all strings. A stretch grows until it holds such a comma.
    """
    size = STRETCH_BYTES
    while start + size < len(text):
        chunk = text[start : start + size]
        if b"\\" in chunk:  # what is escaped ends no string; places stay the same
            chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        runs = chunk.split(b'"')
        end = start + len(chunk)
        for number in range(len(runs) - 1, -1, -1):
            end -= len(runs[number])
            if number % 2 == 0:
                comma = runs[number].rfind(b",")
                if comma >= 0:
                    return end + comma
            end -= 1
        size *= 2
    return len(text)


def _follow(brackets: bytes, opened: bytearray, deepest: int) -> int:
    """Bring ``opened`` up to date; return how many of its brackets were not closed meanwhile."""
    if len(opened) + strict.climb(brackets) > deepest:
        raise strict.too_deep()
    size = -1
    while size != len(brackets):  # what opens and closes in here leaves no trace
        size = len(brackets)
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    untouched = len(opened)
    for bracket in brackets:
        if bracket in _OPENS:
            opened.append(bracket)
        else:
            if not opened or opened.pop() != _CLOSES[bracket]:
                raise ParseError("The text is not valid JSON: its brackets do not match.")
            untouched = min(untouched, len(opened))
    return untouched


def _completed(stretch: bytes, before: bytes, after: bytes | bytearray, mark: str) -> bytes:
    """Return ``stretch`` between the brackets that are open before and after it."""
    outer = b'{"%b":' % mark.encode()
    head = b"".join(outer if kind == _OBJECT else b"[" for kind in before[:-1]) + before[-1:]
    tail = bytes(0x7D if kind == _OBJECT else 0x5D for kind in reversed(after))
    return head + stretch + tail


def _compare_keys(value: object, before: bytes, keys: list[set[str]], mark: str) -> None:
    """Add the keys of the objects that were open before to those that they already had."""
    for node, known in zip(_chain(value, before, mark), keys, strict=False):
        if type(node) is dict:
            new = node.keys() - {mark}
            if not known.isdisjoint(new):
                raise strict.twice()
            known.update(new)


def _keys_of_last(
    value: object, before: bytes, after: bytes, untouched: int, mark: str
) -> list[set[str]]:
    """Return the keys of the containers that this stretch has opened and left open."""
    found: list[set[str]] = []
    node = value
    if untouched:
        *_, node = _chain(value, before[:untouched], mark)
        node = _last(node)
    for _ in range(untouched, len(after)):
        found.append(set(node) if type(node) is dict else set())
        node = _last(node)
    return found


def _chain(value: object, kinds: bytes, mark: str) -> list[object]:
    """Return the containers that were open before a stretch, the outermost first."""
    nodes = []
    for _ in kinds:
        nodes.append(value)
        if type(value) is dict:
            value = value.get(mark)
        elif type(value) is list and value:
            value = value[0]
    return nodes


def _last(node: object) -> object:
    """Return what stands last in a container."""
    if type(node) is dict and node:
        return next(reversed(node.values()))
    if type(node) is list and node:
        return node[-1]
    return None
