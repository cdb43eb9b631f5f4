"""Large attachments go as a few lines: when they are old, and when the context was too small.

Source of the rules: the seed storage model ("Envelhecimento de contexto", "Resgate de overflow"),
with the texts of the reference (§15 and §16 of its description) and without its defects:
attachments are no turns (D15), all texts of an attachment count (D18), and what was left out is
only marked (D16a). A stub depends on nothing but its attachment, so it stays the same in later
requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from sidekeep.requests.form import Message
from sidekeep.requests.grouping import unanswered_failures
from sidekeep.requests.headers import named_line
from sidekeep.requests.settings import RequestSettings

_SIZE = (
    "Original size: ~{n} chars. If you need exact details from this page, "
    "ask the user to re-attach it."
)


def marked(messages: Sequence[Message], settings: RequestSettings) -> list[Message]:
    """Return the messages with a stub for each attachment that was noted as too large."""
    return [
        overflow_stub(one, settings) if one.attachment and one.stub else one for one in messages
    ]


def aged(messages: Sequence[Message], settings: RequestSettings) -> list[Message]:
    """Return the messages with a stub for each attachment that is old and large.

    Old is one that is not the newest attachment and that enough answered questions come after. The
    last message, which is being sent, is not answered, nor is a question that failed.
    """
    made = list(messages)
    failures = unanswered_failures(messages)
    answered = 0
    newer = False
    for at in range(len(made) - 1, -1, -1):
        one = made[at]
        if one.attachment:
            if (
                newer
                and answered >= settings.aging.turns
                and one.text_length >= settings.aging.chars
            ):
                made[at] = aging_stub(one, settings)
            newer = True
        elif one.is_question and at not in failures and at < len(made) - 1:
            answered += 1
    return made


def overflow_stubs(
    messages: Sequence[Message], settings: RequestSettings
) -> tuple[list[Message], list[int]]:
    """Return the messages with a stub for each large attachment, and the ids of those."""
    made = []
    stubbed = []
    for one in messages:
        if one.attachment and one.text_length >= settings.overflow.chars:
            made.append(overflow_stub(one, settings))
            stubbed.append(one.id)
        else:
            made.append(one)
    return made, stubbed


def aging_stub(one: Message, settings: RequestSettings) -> Message:
    """Return an attachment as what reminds of it: it was sent in full in an earlier turn."""
    return one.saying("\n".join([settings.texts.aging, *_description(one)]))


def overflow_stub(one: Message, settings: RequestSettings) -> Message:
    """Return an attachment as what says that it was left out."""
    lines = [settings.prefix, settings.texts.overflow, *_description(one)]
    return one.saying("\n".join(lines))


def _description(one: Message) -> list[str]:
    named = [(name, named_line(one.text, name)) for name in ("Title", "URL")]
    return [
        *(f"{name}: {value}" for name, value in named if value),
        _SIZE.replace("{n}", str(one.text_length)),
    ]
