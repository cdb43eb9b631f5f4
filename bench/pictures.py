"""Decodable pictures of a wanted length: what a panel keeps of the pages that it was shown.

Rules of this module: a picture is a screenshot of 1280 × 800 pixels with lines of text and a photo,
and the size of the photo gives it its length. The same number gives the same picture in every run.
PNG and JPEG take turns, as browsers make both.
"""

from __future__ import annotations

import base64
import io
import random

from PIL import Image, ImageDraw

SIZE = (1280, 800)
_PHOTO_WIDTH = 1200
_CLOSE_ENOUGH = 0.02
_TRIES = 12
_LONG = 600_000
_PROSE = "the page shows how many people read a long text and what they keep of it when it ends"


def sentence(dice: random.Random, words: int) -> str:
    """Return some words of prose."""
    return " ".join(dice.choices(_PROSE.split(), k=words)).capitalize() + "."


def screenshot(number: int, length: int) -> str:
    """Return picture ``number`` as a data URL of ``length`` characters, or up to 2 % fewer.

    ``length``: from about 220,000 to 1,300,000, which is what fits into these pixels.
    Raises ``ValueError`` for a length that cannot be reached.
    """
    dice = random.Random(f"picture {number}")
    kind = "PNG" if number % 2 else "JPEG"
    page = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(page)
    for top in range(10, SIZE[1], 20):
        draw.text((40, top), sentence(dice, 24), fill=(30, 30, dice.randrange(120)))
    photo = Image.frombytes(
        "RGB", (_PHOTO_WIDTH, SIZE[1]), dice.randbytes(3 * _PHOTO_WIDTH * SIZE[1])
    )
    quality = 80 if length < _LONG else 94
    height, low, high = SIZE[1] // 4, 0, SIZE[1]
    for _ in range(_TRIES):
        url = _data_url(page, photo, height, kind, quality)
        if length * (1 - _CLOSE_ENOUGH) <= len(url) <= length:
            return url
        low, high = (height, high) if len(url) < length else (low, height)
        height = (low + high) // 2
    raise ValueError(f"no {kind} of {length} characters: the last has {len(url)}")


def _data_url(page: Image.Image, photo: Image.Image, height: int, kind: str, quality: int) -> str:
    shot = page.copy()
    shot.paste(photo.crop((0, 0, _PHOTO_WIDTH, height)), (40, 40))
    buffer = io.BytesIO()
    if kind == "PNG":
        shot.save(buffer, "PNG", compress_level=1)
    else:
        shot.save(buffer, "JPEG", quality=quality)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
