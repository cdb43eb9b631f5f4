"""Where text may be cut without breaking a character that a person sees as one.

Boundaries are those of extended grapheme clusters (Unicode Standard Annex 29), told from the
categories that ``unicodedata`` has. The package ``regex`` knows them exactly (the tests compare
with it) but is a compiled library that every host would have to carry and load for this alone, and
the standard library has them only from Python 3.15 on. What differs on purpose:

* Every mark (categories ``M*``) stays with what stands before it, also the few Burmese and Tai Tham
  vowel signs that the annex lets begin a cluster.
* After a zero-width joiner any symbol continues an emoji; the table of pictographs is not needed.
* Characters newer than the interpreter's Unicode data are taken for letters, those in the emoji
  blocks for emoji.
"""

from __future__ import annotations

import re
import unicodedata

_ZERO_WIDTH_NON_JOINER = 0x200C
_ZERO_WIDTH_JOINER = 0x200D
# Characters that are not marks by category and yet belong to what stands before them: Thai and Lao
# AM, the joiners, the half-width voicing marks, skin tones, the letters of flag tags.
_JOINING = re.compile(
    "[\u0e33\u0eb3\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
# Signs that belong to what stands behind them.
_PREPENDED = re.compile(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd\U000111c2\U000111c3"
    "\U000113d1\U0001193f\U00011941\U00011a84-\U00011a89\U00011d46\U00011f02]"
)
# Viramas that bind the next consonant (rule GB9c).
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_SYMBOLS = frozenset("\u203c\u2049\u2139\u3030\u303d")
_CONTROLS = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def is_boundary(text: str, index: int) -> bool:
    """Whether the text may be cut before ``text[index]``; ``0 <= index <= len(text)``.

    The start and the end of the text are boundaries.
    """
    if index in {0, len(text)}:
        return True
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return False
    if before < "\u0300" and after < "\u0300":
        return True
    if _is_control(before) or _is_control(after):
        return True
    if _extends(after) or _PREPENDED.match(before):
        return False
    if "\u1100" <= after <= "\u11ff" or "\ua960" <= after <= "\ud7ff":
        return not _is_one_syllable(before, after)
    if before == "\u200d" and _is_symbol(after):
        return not _ends_with_symbol(text, index - 1)
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, index) % 2 == 0
    return not _is_conjunct(text, index)


def boundary_before(text: str, index: int) -> int:
    """Return the last boundary at or before ``index`` (0 at the least)."""
    while not is_boundary(text, index):
        index -= 1
    return index


def boundary_after(text: str, index: int) -> int:
    """Return the first boundary at or after ``index`` (the length at the most)."""
    while not is_boundary(text, index):
        index += 1
    return index


def cut(text: str, units: int) -> str:
    """Return the longest prefix of at most ``units`` UTF-16 units that ends between graphemes.

    If already the first grapheme is longer than that, it is cut between code points: a text that is
    not empty gives nothing only where not even its first code point has room.
    """
    return first_codepoints(text, _codepoints_within(text, units))


def first_codepoints(text: str, count: int) -> str:
    """Return the longest prefix of at most ``count`` code points that ends between graphemes.

    If already the first grapheme has more, its first ``count`` code points.
    """
    if len(text) <= count:
        return text
    return text[: boundary_before(text, count) or count]


def units_of(text: str) -> int:
    """Return how many UTF-16 units the text has, which is what JavaScript calls its length."""
    return len(text) + sum(1 for _ in _ASTRAL.finditer(text))


def _codepoints_within(text: str, units: int) -> int:
    """Return how many code points from the start fit into ``units`` UTF-16 units."""
    count = min(len(text), units)
    rest = units - units_of(text[:count])
    while rest < 0:
        count -= 1
        rest += 2 if text[count] > "\uffff" else 1
    return count


def _is_control(character: str) -> bool:
    # Format characters are controls here except for those that join or are prepended.
    return (
        unicodedata.category(character) in _CONTROLS
        and not _JOINING.match(character)
        and not _PREPENDED.match(character)
    )


def _extends(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or _JOINING.match(character) is not None


def _is_one_syllable(before: str, after: str) -> bool:
    """Whether two parts of Hangul belong to one syllable block (rules GB6 to GB8)."""
    first, second = _hangul_kind(before), _hangul_kind(after)
    if first == "L":
        return second in {"L", "V", "LV", "LVT"}
    if first in {"LV", "V"}:
        return second in {"V", "T"}
    return first in {"LVT", "T"} and second == "T"


def _hangul_kind(character: str) -> str:
    code = ord(character)
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    return ""


def _is_symbol(character: str) -> bool:
    code = ord(character)
    return (
        (0x1F000 <= code <= 0x1FAFF and not _is_regional(character))
        or 0x1FC00 <= code <= 0x1FFFD
        or unicodedata.category(character) in {"So", "Sm"}
        or character in _SYMBOLS
    )


def _ends_with_symbol(text: str, end: int) -> bool:
    """Whether ``text[:end]`` ends with a symbol and marks behind it (rule GB11)."""
    index = end - 1
    while index > 0 and _extends(text[index]) and text[index] != "\u200d":
        index -= 1
    return index >= 0 and _is_symbol(text[index])


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_before(text: str, end: int) -> int:
    index = end
    while index > 0 and _is_regional(text[index - 1]):
        index -= 1
    return end - index


def _is_conjunct(text: str, index: int) -> bool:
    """Whether the letter at ``index`` hangs on the consonant before it by a virama (GB9c)."""
    if not "\u0900" <= text[index] <= "\u0d7f" or unicodedata.category(text[index]) != "Lo":
        return False
    while index > 0 and _extends(text[index - 1]):
        index -= 1
        if text[index] in _LINKERS:
            return True
    return False
