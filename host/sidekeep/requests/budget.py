"""A bound on the whole request: what is too old for it is left out, by whole turns.

Source of the rules: the defect list of the reference (D1, D4): its cap on what is stored becomes a
cap on what is sent, and no question is parted from its answer. Pictures count flat, never by the
letters of their base64 text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sidekeep.requests.form import Message, length
from sidekeep.requests.grouping import turns
from sidekeep.requests.settings import Limits

PICTURE_CHARS = 4000
PICTURE_TOKENS = 1000
MESSAGE_TOKENS = 4
_NO_ASCII = re.compile(r"[^\x00-\x7f]")


def trimmed(
    messages: Sequence[Message], limits: Limits, system: str | None, carried: Collection[int]
) -> tuple[list[Message], list[int]]:
    """Return what fits into the limits, and the ids of what is left out, in order.

    Whole turns are left out, oldest first, never the newest, even if it alone is too long.
    ``carried``: the ids of the messages whose pictures go with pixels.
    """
    if limits.chars is None and limits.tokens is None:
        return list(messages), []
    chars = [_chars(one, pixels=one.id in carried) for one in messages]
    tokens = [_tokens(one, pixels=one.id in carried) for one in messages]
    said = system or ""
    all_chars = sum(chars) + length(said)
    all_tokens = sum(tokens) + estimate(said)
    out: set[int] = set()
    for turn in turns(messages)[:-1]:
        if _fits(all_chars, limits.chars) and _fits(all_tokens, limits.tokens):
            break
        all_chars -= sum(chars[at] for at in turn)
        all_tokens -= sum(tokens[at] for at in turn)
        out.update(turn)
    kept = [one for at, one in enumerate(messages) if at not in out]
    return kept, [messages[at].id for at in sorted(out)]


def _fits(used: int, limit: int | None) -> bool:
    return limit is None or used <= limit


def estimate(text: str) -> int:
    """Return about how many tokens a text is: four ASCII characters one, any other character one.

    It is meant to be rather too much than too little; only the model's own tokenizer knows.
    """
    others = 0 if text.isascii() else sum(1 for _ in _NO_ASCII.finditer(text))
    return others + -(-(len(text) - others) // 4)


def _chars(one: Message, *, pixels: bool) -> int:
    return one.text_length + (PICTURE_CHARS if pixels else 0) * len(one.pictures)


def _tokens(one: Message, *, pixels: bool) -> int:
    pictures = (PICTURE_TOKENS if pixels else 0) * len(one.pictures)
    return MESSAGE_TOKENS + sum(map(estimate, one.texts)) + pictures
