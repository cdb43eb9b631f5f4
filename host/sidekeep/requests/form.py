"""The form in which all of this package sees a conversation: messages of texts and pictures.

Source of the shapes that are read: the seed storage model (``{role, content}``, content a string or
parts) and the reference's readers, which also take ``input_text`` parts and a bare string as
``image_url``. What is no text and no picture (a part of another kind, any other field) does not
pass: only role and content leave (defect D24 of the reference).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sidekeep.model.entries import Facts
from sidekeep.store.rope import Blob
from sidekeep.text.graphemes import units_of

ROLES = frozenset({"user", "assistant", "system"})


class Picture(NamedTuple):
    """A picture of a message: what is stored, or the URL as it stands; ``label`` may be empty."""

    source: Blob | str
    label: str


Part = str | Picture


class Message(NamedTuple):
    """An entry of a conversation.

    ``plain``: its content is one string, not an array of parts. ``attachment``: it is an attached
    page. ``seen``: its pictures were in a request that was answered. ``stub``: it was too large for
    a request and is left out since. ``failed``: it is a question whose turn failed.
    """

    id: int
    role: str
    parts: tuple[Part, ...]
    plain: bool = True
    attachment: bool = False
    seen: bool = False
    stub: bool = False
    failed: bool = False

    @property
    def texts(self) -> list[str]:
        """The texts, in order."""
        return [part for part in self.parts if isinstance(part, str)]

    @property
    def text(self) -> str:
        """All texts, one below the other."""
        return "\n".join(self.texts)

    @property
    def pictures(self) -> list[Picture]:
        """The pictures, in order."""
        return [part for part in self.parts if isinstance(part, Picture)]

    @property
    def fingerprint(self) -> int:
        """A number that tells whether these are the same pictures, in any order."""
        names = {
            one.source.encode(errors="replace") if isinstance(one.source, str) else one.source.hash
            for one in self.pictures
        }
        return zlib.crc32(b"".join(sorted(names)))

    @property
    def text_fingerprint(self) -> int:
        """A number that tells whether this is the same text."""
        return zlib.crc32(self.text.encode(errors="replace"))

    @property
    def text_length(self) -> int:
        """The UTF-16 units of all texts."""
        return sum(map(length, self.texts))

    @property
    def is_question(self) -> bool:
        """Whether the user says something here, rather than attaches something."""
        return self.role == "user" and not self.attachment

    def saying(self, text: str) -> Message:
        """Return the message with this text in place of all that it holds."""
        return self._replace(parts=(text,), plain=True)


def length(text: str) -> int:
    """Return the UTF-16 units of a text."""
    return len(text) if text.isascii() else units_of(text)


def message(
    identity: int, entry: Mapping[str, Any], blobs: Mapping[str, Blob], prefixes: Sequence[str]
) -> Message | None:
    """Return an entry as a message, ``None`` if it is nothing that a model could be sent.

    ``entry``: its decoded JSON, in which pictures stand as tokens. ``blobs``: what the tokens stand
    for. ``prefixes``: what the text of an attachment begins with.
    """
    facts = Facts(dict(entry))
    content = facts.content
    if facts.role not in ROLES or not isinstance(content, str | list):
        return None
    if isinstance(content, str):
        parts = [_text(content, blobs)]
    else:
        parts = [part for one in content if (part := _part(one, blobs)) is not None]
    return Message(
        identity,
        facts.role,
        tuple(parts),
        plain=isinstance(content, str) and content not in blobs,
        attachment=facts.is_attachment(prefixes),
        seen=facts.fields.get("imagesSeen") is True,
        stub=facts.fields.get("sendAsStub") is True,
        failed=bool(facts.fields.get("failed")),
    )


def _part(given: Any, blobs: Mapping[str, Blob]) -> Part | None:  # noqa: ANN401 - any JSON value
    if not isinstance(given, dict):
        return None
    url = given.get("image_url")
    if isinstance(url, dict):
        url = url.get("url")
    if isinstance(url, str) and url:
        label = given.get("label")
        return Picture(blobs.get(url, url), label.strip() if isinstance(label, str) else "")
    text = given.get("text")
    return _text(text, blobs) if isinstance(text, str) else None


def _text(text: str, blobs: Mapping[str, Blob]) -> Part:
    """Return a text; one that as a whole is a data URL is a picture, or stands in short."""
    blob = blobs.get(text)
    if blob is None:
        return text
    return Picture(blob, "") if blob.is_picture else f"{blob.prefix.decode()}…"
