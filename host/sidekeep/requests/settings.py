"""How requests are made: the texts and thresholds of an extension, the target, the limits.

Source of the defaults: the seed extension's own texts and numbers. docs/protocol.md, "Requests",
names all of them; what is not named there is ignored, so that newer stubs can talk to older hosts.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from sidekeep.errors import InvalidParams
from sidekeep.model.entries import ATTACHMENT_PREFIX

Count = Annotated[int, msgspec.Meta(ge=0)]
Style = Literal["chat", "responses", "anthropic", "runs", "agent"]


class Texts(msgspec.Struct, rename="camel", frozen=True):
    """Wordings that a model reads.

    ``aging`` and ``overflow``: what stands in place of an attachment that is left out. ``{n}`` in
    ``condensed`` is the length of the text that was condensed, in ``image_label`` the number of the
    picture within its entry. ``no_instruction`` is stored for an empty question; it is sent as
    ``describe_images`` if the question has pictures, else as ``page_only``. ``agent_note`` stands
    between attachments and question of an agent's text. ``placeholder`` is the user's message where
    a server wants one first and there is none.
    """

    aging: str = (
        "[Attached page context trimmed to keep replies fast — sent in full in an earlier turn]"
    )
    overflow: str = (
        "[browsa: this attachment was too large for the model's context window and was omitted "
        "so the conversation could continue]"
    )
    condensed: str = "[browsa: auto-condensed from {n} chars — some detail may be lost]"
    image_label: str = "图{n}"
    no_instruction: str = "(no instruction)"
    describe_images: str = "Describe these images."
    page_only: str = "(no instruction; just respond to the page context)"
    agent_note: str = "（以上是用户附加的页面内容，请据此回答下面的问题。）"
    placeholder: str = "(the conversation goes on)"

    def condensed_note(self, characters: int) -> str:
        """Return the line that stands before the summary of a text of so many characters."""
        return self.condensed.replace("{n}", str(characters))

    def picture_name(self, number: int) -> str:
        """Return the label of the picture with this number in its entry, without brackets."""
        return self.image_label.replace("{n}", str(number))


class Aging(msgspec.Struct, frozen=True):
    """From how many answered questions and characters on an attachment is sent as a stub."""

    turns: Count = 3
    chars: Count = 8000


class Overflow(msgspec.Struct, frozen=True):
    """From how many characters on an attachment is left out when the context was too small."""

    chars: Count = 8000


class RequestSettings(msgspec.Struct, rename="camel", frozen=True):
    """What an extension says of its requests in the hello.

    ``attachment_prefix``: how the text of an attachment begins, if not as the seed's does.
    ``condense_from``: an attachment with more characters should be condensed.
    """

    attachment_prefix: str | None = None
    condense_from: Count = 100_000
    aging: Aging = Aging()
    overflow: Overflow = Overflow()
    texts: Texts = Texts()

    @classmethod
    def of(cls, given: msgspec.Struct | None) -> RequestSettings:
        """Return the settings of a hello, with defaults for what it does not say.

        ``InvalidParams`` where a value has the wrong type.
        """
        said = {} if given is None else msgspec.to_builtins(given)
        try:
            return msgspec.convert(
                {name: value for name, value in said.items() if value is not None}, cls
            )
        except msgspec.ValidationError as error:
            raise InvalidParams(f"The settings do not fit: {error}.") from error

    @property
    def prefix(self) -> str:
        """How the text of a new attachment begins."""
        return self.attachment_prefix or ATTACHMENT_PREFIX

    @property
    def prefixes(self) -> tuple[str, ...]:
        """All that the text of an attachment may begin with."""
        own = self.attachment_prefix
        return (ATTACHMENT_PREFIX, own) if own else (ATTACHMENT_PREFIX,)


class Target(msgspec.Struct, frozen=True):
    """Whom a request is for. ``backfill``: an agent gets a transcript of what it was not told."""

    style: Style
    system: str | None = None
    backfill: bool = False


class Limits(msgspec.Struct, frozen=True):
    """How much may be in one request.

    ``images`` and ``bytes`` (characters of their URLs) bound the pictures of the turn, ``chars``
    and ``tokens`` the whole request; ``None`` is no bound.
    """

    images: Count = 8
    bytes: Count = 3 * 1024 * 1024
    chars: Count | None = None
    tokens: Count | None = None
