"""Names of conversations: given ones are cut, missing ones are made from the first question.

The limits are those of docs/protocol.md ("Sessions"), which come from the extension: 80 UTF-16
units, and 48 code points of a question. Both cut between graphemes, once.
"""

from __future__ import annotations

from datetime import datetime

from sidekeep.text.graphemes import cut, first_codepoints, units_of

NAME_UNITS = 80
QUESTION_CODEPOINTS = 48
_ELLIPSIS = "…"


def cut_name(name: str) -> str:
    """Return the name as it is kept: its first 80 UTF-16 units at most."""
    return cut(name, NAME_UNITS)


def automatic_name(first_question: str | None, now: datetime) -> str:
    """Return the name of a conversation that got none.

    ``first_question``: the text of the first user entry that is no attachment. The name is its
    first 48 code points, on one line, with an ellipsis if there is more, and never longer than
    a name may be. Without a question, or with a blank one, it is ``now`` (local time) as
    ``YYYY-MM-DD HH:MM``.
    """
    question = " ".join(first_question.split()) if first_question else ""
    if not question:
        return now.strftime("%Y-%m-%d %H:%M")
    start = first_codepoints(question, QUESTION_CODEPOINTS)
    if start == question and units_of(question) <= NAME_UNITS:
        return question
    return cut(start, NAME_UNITS - units_of(_ELLIPSIS)) + _ELLIPSIS
