"""Text made comparable for a search.

Rules:

* Letter case, width and other compatibility forms (NFKC), composed and decomposed forms do not
  matter; accents do. Turkish dotted and dotless i are one letter, because the lower case of one and
  the upper case of the other are the plain i and I.
* Folding distributes over graphemes: a folded text is its folded graphemes one behind the other. So
  whatever part of a text a person picks is found in it. Plain NFKC would break this for Hangul
  letters that stand alone (ㅋㅏ would become one syllable): they stay alone, and conjoining letters
  that found no syllable become them.
* The result has no code point below the tab: the rows of the search separate texts by those. It can
  be encoded in UTF-8 whatever came in.
* Folding what is folded changes nothing.
"""

from __future__ import annotations

import re
import unicodedata

SEPARATOR = "\0"
"""What may stand between folded texts: it is in none of them."""

_REPLACEMENT = "\ufffd"
# What would be taken for a separator.
_CONTROLS = dict.fromkeys(range(9), _REPLACEMENT)
_SURROGATES = re.compile("[\ud800-\udfff]")
_HANGUL_LETTERS = re.compile("[\u1100-\u11ff\u3131-\u318e\u3200-\u320d\u3260-\u326d\uffa0-\uffdc]")
# Half-width, parenthesised and circled letters, whose plain form is a conjoining letter.
_OTHER_LETTERS = re.compile("[\u3200-\u320d\u3260-\u326d\uffa0-\uffdc]")
_LETTERS_ALONE = re.compile("([\u3131-\u318e]+)")
_CONJOINING = re.compile("[\u1100-\u11ff]")
_DOTS = re.compile("i\u0307+")
_ALONE = {
    unicodedata.normalize("NFKD", letter): letter for letter in map(chr, range(0x3131, 0x318F))
}


def folded(text: str) -> str:
    """Return the form of ``text`` that is searched in, or for."""
    text = _usable(text)
    if text.isascii():
        return text.lower()
    if not _HANGUL_LETTERS.search(text):
        return _normal(text)
    text = _OTHER_LETTERS.sub(lambda match: _stand_alone(_normal(match[0])), text)
    pieces = _LETTERS_ALONE.split(text)  # every second one is of letters that stand alone
    return "".join(
        piece if index % 2 else _stand_alone(_normal(piece)) for index, piece in enumerate(pieces)
    )


def _usable(text: str) -> str:
    if text.isprintable():  # the quick way for names and other short texts
        return text
    if any(chr(control) in text for control in _CONTROLS):
        text = text.translate(_CONTROLS)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _SURROGATES.sub(_REPLACEMENT, text)
    return text


def _normal(text: str) -> str:
    # Decomposed first, so that marks are in their order when one of them folds to a letter (iota).
    text = unicodedata.normalize("NFKD", text).casefold().replace("\u0131", "i")
    if "i\u0307" in text:
        text = _DOTS.sub("i", text)
    return unicodedata.normalize("NFKC", text)


def _stand_alone(text: str) -> str:
    """Return the text with conjoining letters that found no syllable as those that stand alone."""
    return _CONJOINING.sub(lambda match: _ALONE.get(match[0], match[0]), text)
