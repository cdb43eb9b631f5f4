"""The content of an attachment in its parts: the text of the page, pictures, and whatever else.

Source of the rules: docs/protocol.md, "Attachments": pictures stand at their anchors, and what is
no text of the page stays when that is replaced. A content may be any JSON value.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

from sidekeep.requests.interleave import in_number_order, interleave

_TEXT_TYPES = ("text", "input_text", "output_text")


class Parts(NamedTuple):
    """What a content consists of, apart from where its texts stand.

    ``text``: all texts, one below the other. ``first``: what stands before the first picture.
    ``groups``: the pictures in the order of their numbers, each with what stands behind it up to
    the next one.
    """

    text: str
    first: list[Any]
    groups: list[list[Any]]

    def with_text(self, text: str, start: int) -> object:
        """Return the content with another text; see ``content_of``."""
        return content_of(text, self.groups, start, self.first)


def parted(entry: Mapping[str, Any], blobs: Container[str]) -> Parts:
    """Return the parts of an entry's content.

    ``entry``: decoded JSON. ``blobs``: the tokens that stand in it. A text that is one of these is
    a picture or another file, which may only be moved as a whole.
    """
    texts: list[str] = []
    marks: list[str | None] = []
    first: list[Any] = []
    groups: list[list[Any]] = []
    for part in listed(entry.get("content")):
        if is_picture(part):
            marks.append(None)
            groups.append([part])
            continue
        text = text_of_part(part, blobs)
        if text is None:
            (groups[-1] if groups else first).append(part)
        else:
            marks.append(text)
            texts.append(text)
    return Parts("\n".join(texts), first, in_number_order(marks, groups))


def listed(content: object) -> list[Any]:
    """Return a content as an array of parts, whatever it is."""
    if isinstance(content, list):
        return content
    if isinstance(content, str):
        return [{"text": content, "type": "text"}]
    return [] if content is None else [content]


def is_picture(part: object) -> bool:
    """Whether a part is a picture."""
    return isinstance(part, dict) and "image_url" in part


def text_of_part(part: object, blobs: Container[str]) -> str | None:
    """Return the text of a part that is nothing but text, ``None`` for any other.

    ``blobs``: as for ``parted``.
    """
    if (
        not isinstance(part, dict)
        or is_picture(part)
        or part.get("type", "text") not in _TEXT_TYPES
    ):
        return None
    text = part.get("text")
    return text if isinstance(text, str) and text not in blobs else None


def content_of(
    text: str, groups: Sequence[list[Any]], start: int, first: Sequence[Any] = ()
) -> object:
    """Return an entry's content: the text alone, or parts with each picture at its anchor.

    ``groups``: each a picture and what stays behind it. ``start``: where the text begins behind its
    header. ``first``: what stands behind the text before any picture.
    """
    if not groups and not first:
        return text
    content: list[object] = []
    for number, part in enumerate(interleave(text, groups, start)):
        content += [{"text": part, "type": "text"}] if isinstance(part, str) else part
        if not number:
            content += first
    return content
