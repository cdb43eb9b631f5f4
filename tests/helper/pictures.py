"""Pictures for the tests, made by Pillow, and the answers that the real helper gives to them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

from PIL import Image

from sidekeep.helper import previews
from sidekeep.helper.parent import Helper
from sidekeep.helper.previews import Answer, Jpeg, NoPreview, Picture

from .waiting import ask

Preview = Callable[..., Answer]
"""What the fixture ``preview`` is: ``preview(data, edge=480)``."""

RED, GREEN, BLUE, WHITE = (220, 30, 30), (30, 180, 30), (30, 30, 220), (255, 255, 255)
Colour = tuple[int, int, int]


def file_of(picture: Image.Image, name: str, **options: Any) -> bytes:
    """Return the picture as the bytes of a file of format ``name``."""
    file = io.BytesIO()
    picture.save(file, name, **options)
    return file.getvalue()


def noise(width: int, height: int) -> Image.Image:
    """Return a picture that does not compress, the same each time."""
    seed = struct.pack("=II", width, height)
    data = b"".join(
        zlib.compress(seed + n.to_bytes(4, "little")).ljust(16)[-8:] for n in range(512)
    )
    size = width * height * 3
    scrambled = bytearray(data * (size // len(data) + 1))[:size]
    for at in range(1, size, 7):
        scrambled[at] = at * 2654435761 >> 11 & 255
    return Image.frombytes("RGB", (width, height), bytes(scrambled))


def quarters(width: int, height: int) -> Image.Image:
    """Return red, green, blue and white quarters, in reading order."""
    picture = Image.new("RGB", (width, height), WHITE)
    for colour, left, top in ((RED, 0, 0), (GREEN, width // 2, 0), (BLUE, 0, height // 2)):
        picture.paste(colour, (left, top, left + width // 2, top + height // 2))
    return picture


def corners(picture: Image.Image) -> list[Colour]:
    """Return the colours of the four quarters, in reading order."""
    width, height = picture.size
    return [pixel(picture, width * x // 4, height * y // 4) for y in (1, 3) for x in (1, 3)]


def pixel(picture: Image.Image, x: int, y: int) -> Colour:
    """Return a pixel as red, green and blue."""
    colour = picture.convert("RGB").getpixel((x, y))
    assert isinstance(colour, tuple)
    red, green, blue = colour
    return int(red), int(green), int(blue)


def near(found: Colour, wanted: Colour, by: int = 6) -> bool:
    """Return whether two colours are the same but for what JPEG changes."""
    return all(abs(one - other) <= by for one, other in zip(found, wanted, strict=True))


def opened(answer: Answer) -> Image.Image:
    """Return the picture of a preview, which must be a JPEG of the size that it says."""
    assert isinstance(answer, Jpeg), answer
    picture = Image.open(io.BytesIO(answer.data), formats=["JPEG"])
    picture.load()
    assert picture.size == (answer.width, answer.height)
    assert picture.mode == "RGB"
    assert not picture.getexif()
    return picture


def reason(answer: Answer) -> str:
    """Return why there is no preview."""
    assert isinstance(answer, NoPreview), answer
    assert answer.reason.endswith(".")
    assert len(answer.reason) < 120
    return answer.reason


def answer_of(helper: Helper, job: previews.Job) -> Answer:
    """Return what a helper answers to a job."""
    outcome = ask(helper, previews.encode(job))
    assert isinstance(outcome, bytes), outcome
    return previews.decode_answer(outcome)


def preview_of(helper: Helper, data: bytes, edge: int = 480) -> Answer:
    """Return what a helper answers to a picture."""
    return answer_of(helper, Picture(edge, data))
