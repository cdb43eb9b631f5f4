"""What an agent is told: it keeps the conversation itself, so only what is new goes to it.

Source of the rules: the reference's ``buildAgentTurn`` (§20 of its description), with its limit of
200,000 characters for a transcript.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidekeep.requests.form import Message, Picture, length
from sidekeep.requests.grouping import newest
from sidekeep.requests.settings import Texts

PICTURE_MARK = "[image]"
TRANSCRIPT_LIMIT = 200_000
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


def told(messages: Sequence[Message], texts: Texts, *, backfill: bool) -> tuple[str, list[Picture]]:
    """Return the text and the pictures for the last message, which is the question.

    The text is what nobody has answered yet of what is attached, and the question; with
    ``backfill`` a transcript of what was said before stands in front. The question's own pictures
    come first.
    """
    places = newest(messages)
    attached = [messages[at] for at in places[:-1]]
    question = messages[-1]
    blocks = [one.text for one in attached]
    if attached:
        blocks.append(texts.agent_note)
    blocks.append(question.text)
    if backfill:
        said = transcript([one for at, one in enumerate(messages) if at not in set(places)])
        blocks = [said, *blocks] if said else blocks
    pictures = [picture for one in (question, *attached) for picture in one.pictures]
    return "\n\n".join(blocks), pictures


def transcript(messages: Sequence[Message]) -> str:
    """Return what the user and the model said, the last 200,000 characters of it."""
    said = "\n\n".join(
        f"{_SPEAKERS[one.role]}: {text}"
        for one in messages
        if one.role in _SPEAKERS and (text := flat(one)).strip()
    )
    return _last(said, TRANSCRIPT_LIMIT)


def flat(one: Message) -> str:
    """Return a message as one text in which a mark stands for each picture."""
    return "\n".join(part if isinstance(part, str) else PICTURE_MARK for part in one.parts)


def _last(text: str, units: int) -> str:
    """Return the longest end of the text of at most so many UTF-16 units."""
    start = max(len(text) - units, 0)
    while length(text[start:]) > units:
        start += max((length(text[start:]) - units) // 2, 1)
    return text[start:]
