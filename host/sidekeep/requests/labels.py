"""Pictures that a model has seen go as their labels; where the labels come from.

Source of the rules: the seed storage model ("substitui imagens JÁ VISTAS por placeholders de rótulo
([图N] / [Figure 3: …])") and the defect of the reference that a list of figures had no end (D19).
"""

from __future__ import annotations

import re

from sidekeep.requests.form import Message, Part, Picture
from sidekeep.requests.interleave import numbers
from sidekeep.requests.settings import Texts

_HEADING = re.compile(r"##[ \t]+Figures[ \t]*")
_NUMBERED = re.compile(r"[0-9]+\.[ \t]+(.*\S)[ \t]*")


def figure_labels(text: str) -> list[str]:
    """Return the captions of the list below the last heading ``## Figures``, in order.

    The list ends at the first line that is neither blank nor numbered.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    heading = next(
        (at for at in range(len(lines) - 1, -1, -1) if _HEADING.fullmatch(lines[at])), None
    )
    captions: list[str] = []
    for line in [] if heading is None else lines[heading + 1 :]:
        found = _NUMBERED.fullmatch(line)
        if found is not None:
            captions.append(found[1])
        elif line.strip():
            break
    return captions


def labels(one: Message, texts: Texts) -> list[str]:
    """Return a text in brackets for each picture of a message, in order.

    It is the label stored with the picture, else the caption from a list of figures, else the
    number of the picture within the message: in an attachment that of its anchor in the text.
    """
    if not one.pictures:
        return []
    captions = figure_labels(one.text)
    shown = []
    for picture, number in zip(one.pictures, _numbers(one), strict=True):
        label = picture.label
        if not label and number <= len(captions):
            label = captions[number - 1]
        label = " ".join(label.split()) or texts.picture_name(number)
        shown.append(f"[{label}]")
    return shown


def _numbers(one: Message) -> list[int]:
    if one.attachment:
        return numbers([part if isinstance(part, str) else None for part in one.parts])
    return list(range(1, len(one.pictures) + 1))


def without_pixels(one: Message, texts: Texts) -> Message:
    """Return the message with its pictures as their labels; the same one if it has none."""
    if not one.pictures:
        return one
    names = iter(labels(one, texts))
    parts: list[Part] = [next(names) if isinstance(part, Picture) else part for part in one.parts]
    return one._replace(parts=tuple(parts))
