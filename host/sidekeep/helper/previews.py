"""What host and helper say to each other about previews: the jobs and answers of "thumbnails".

Rules of this module: msgspec only, since the host imports it; a picture travels as its bytes, never
as a data URL; which of the answers may be kept stands with each.
"""

from __future__ import annotations

from importlib.machinery import PathFinder

import msgspec


class Picture(msgspec.Struct, tag="picture", frozen=True):
    """The job of making a preview.

    ``edge``: the most pixels of its longer side. ``data``: the bytes of the picture, decoded from
    base64 or percent signs. What type the data URL claims does not matter.
    """

    edge: int
    data: bytes


class Check(msgspec.Struct, tag="check", frozen=True):
    """The job of telling whether previews can be made here."""


class Jpeg(msgspec.Struct, tag="jpeg", frozen=True):
    """A preview: a JPEG file of ``width`` x ``height`` pixels. To be kept with the picture."""

    data: bytes
    width: int
    height: int


class Whole(msgspec.Struct, tag="whole", frozen=True):
    """The picture is small enough to be its own preview. To be kept with the picture and edge."""


class NoPreview(msgspec.Struct, tag="none", frozen=True):
    """There is no preview, for a reason that lies in the picture. To be kept with the picture."""

    reason: str


class Off(msgspec.Struct, tag="off", frozen=True):
    """There are no previews, for a reason that lies in what is installed. Not to be kept."""

    reason: str


class On(msgspec.Struct, tag="on", frozen=True):
    """Answers ``Check``: previews are made, by this version of Pillow."""

    pillow: str


Job = Picture | Check
Answer = Jpeg | Whole | NoPreview | Off | On

NOT_INSTALLED = "Pillow, which makes previews, is not installed."

encode = msgspec.msgpack.Encoder().encode
decode_job = msgspec.msgpack.Decoder(Job).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode


def why_off() -> str | None:
    """Return why previews are off as far as the files tell, without importing Pillow.

    ``None``: Pillow is installed. Whether it works only the helper's answer to ``Check`` can say.
    """
    return None if PathFinder.find_spec("PIL") else NOT_INSTALLED
