"""What goes into a request: the steps that make it smaller, in their order.

1. attachments that were once noted as too large, then those that are old, become stubs, and after
   an overflow all others that are large;
2. a question without words says what is wanted;
3. pictures that were seen become their labels (an agent is not told again what it knows, so that
   what is new to it goes with all its pictures);
4. of an agent's conversation only what is new remains, unless it wants the rest as a transcript;
5. whole turns are left out until the rest fits into the limits.

What was noted as too large comes first, so that an attachment which is left out stays the same to
the last letter when it gets old as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sidekeep.requests.budget import trimmed
from sidekeep.requests.form import Message, Picture
from sidekeep.requests.grouping import newest
from sidekeep.requests.labels import without_pixels
from sidekeep.requests.settings import Limits, RequestSettings, Target, Texts
from sidekeep.requests.shapes import carried
from sidekeep.requests.stubs import aged, marked, overflow_stubs


class Plan(NamedTuple):
    """A request before it is written.

    ``messages``: what ``shapes.build`` takes. The others are ids: ``carried`` whose pixels are in
    the request, ``stubbed`` which are left out for being too large and were not before, ``left``
    which are left out for the limits.
    """

    messages: list[Message]
    carried: list[int]
    stubbed: list[int]
    left: list[int]


def plan(
    messages: Sequence[Message],
    target: Target,
    settings: RequestSettings,
    limits: Limits,
    *,
    stub: bool = False,
) -> Plan:
    """Return what the request for the last of the messages, which is the question, holds.

    ``stub``: whether the request before was refused for its length.
    """
    texts = settings.texts
    new = set(newest(messages)) if target.style == "agent" else set()
    made = aged(marked(messages, settings), settings)
    stubbed: list[int] = []
    if stub:
        made, stubbed = overflow_stubs(made, settings)
    made = [instructed(one, texts) for one in made]
    if made and made[-1].is_question and not made[-1].pictures and not made[-1].text.strip():
        made[-1] = made[-1].saying(texts.page_only)
    made = [
        without_pixels(one, texts) if one.seen and at not in new else one
        for at, one in enumerate(made)
    ]
    if target.style == "agent" and not target.backfill:
        made = [made[at] for at in sorted(new)]
    made, left = trimmed(made, limits, target.system, set(carried(made, target.style)))
    return Plan(made, carried(made, target.style), stubbed, left)


def instructed(one: Message, texts: Texts) -> Message:
    """Return a question without words as what it is to mean; any other message as it is.

    It is known by the text that is stored for it, so it reads the same in every later request.
    """
    if not one.is_question or one.text != texts.no_instruction:
        return one
    meant = texts.describe_images if one.pictures else texts.page_only
    return one._replace(
        parts=tuple(part if isinstance(part, Picture) else meant for part in one.parts)
    )
