"""Pictures without a preview, and installations without previews: a sentence each."""

from __future__ import annotations

import os
import random
import struct
import sys
from pathlib import Path
from typing import Any

import msgspec
import PIL
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sidekeep.helper import formats, previews
from sidekeep.helper.previews import Check, Jpeg, NoPreview, Off, On, Whole

from .pictures import (
    GREEN,
    RED,
    Preview,
    answer_of,
    corners,
    file_of,
    near,
    noise,
    opened,
    pixel,
    preview_of,
    quarters,
    reason,
)
from .waiting import Make

CANNOT = "The picture cannot be decoded: it is damaged or cut off."


# Too large


def test_a_bomb_is_too_large_before_anything_of_it_is_decoded(make: Make) -> None:
    helper = make("thumbnails", memory=268_435_456)  # not enough for its pixels
    bomb = file_of(Image.new("1", (20_000, 20_000)), "PNG")
    assert len(bomb) < 50_000
    assert "too large" in reason(preview_of(helper, bomb))
    assert opened(preview_of(helper, file_of(quarters(800, 400), "PNG"))).size == (480, 240)


def claiming(name: str, width: int, height: int) -> bytes:
    """Return a small picture whose head claims another size."""
    data = bytearray(file_of(quarters(64, 64), name))
    if name == "GIF":
        data[6:10] = struct.pack("<HH", width, height)
    elif name == "BMP":
        data[18:26] = struct.pack("<ii", width, height)
    elif name == "JPEG":
        at = data.index(b"\xff\xc0")
        data[at + 5 : at + 9] = struct.pack(">HH", height, width)
    elif name == "WEBP":
        chunk = b"\0\0\0\0" + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
        data[12:12] = b"VP8X\x0a\0\0\0" + chunk
        data[4:8] = struct.pack("<I", len(data) - 8)
    return bytes(data)


@pytest.mark.parametrize("name", ["GIF", "BMP", "JPEG", "WEBP"])
def test_a_head_that_claims_too_many_pixels_is_believed(make: Make, name: str) -> None:
    helper = make("thumbnails", memory=268_435_456)
    assert "too large" in reason(preview_of(helper, claiming(name, 60_000, 60_000)))
    assert preview_of(helper, file_of(quarters(64, 64), name)) == Whole()


@pytest.mark.parametrize("name", ["GIF", "BMP", "JPEG", "WEBP"])
def test_a_head_that_claims_more_pixels_than_there_are_is_damaged(
    preview: Preview, name: str
) -> None:
    answer = preview(claiming(name, 3000, 3000))
    if name in {"GIF", "JPEG"}:  # a frame smaller than its screen; a photo that is cut off
        assert opened(answer).size == (480, 480)
    else:
        assert reason(answer) == CANNOT


@pytest.mark.parametrize("name", ["VP8 ", "VP8L", "VP8X"])
def test_the_size_of_a_webp_is_read_from_its_head(name: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "VP8 ": {"lossless": False},
        "VP8L": {"lossless": True},
        "VP8X": {"lossless": False, "exif": Image.Exif().tobytes()},
    }
    data = file_of(quarters(1234, 567), "WEBP", **options[name])
    assert data[12:16] == name.encode()
    assert formats.webp_size(data) == (1234, 567)
    for length in range(25):
        assert formats.webp_size(data[:length]) is None


def test_a_picture_of_a_hundred_million_pixels_has_a_preview_within_a_gigabyte(make: Make) -> None:
    helper = make("thumbnails", memory=1_073_741_824)
    data = file_of(Image.new("RGB", (10_000, 10_000), GREEN), "JPEG")
    for _ in range(2):
        assert near(pixel(opened(preview_of(helper, data)), 240, 240), GREEN)


# Damaged


def photo() -> bytes:
    """Return a JPEG whose picture is worth something to its last row."""
    picture = noise(600, 600)
    picture.paste(GREEN, (0, 0, 600, 100))
    picture.paste(RED, (0, 500, 600, 600))
    return file_of(picture, "JPEG", quality=90)


def test_a_jpeg_that_lacks_its_last_bytes_is_shown(preview: Preview) -> None:
    found = opened(preview(photo()[:-4]))
    assert near(pixel(found, 240, 20), GREEN, 12)
    assert near(pixel(found, 240, 440), RED, 12)


def test_half_a_jpeg_is_shown_as_far_as_it_goes(preview: Preview) -> None:
    data = photo()
    found = opened(preview(data[: len(data) // 2]))
    assert found.size == (480, 480)
    assert near(pixel(found, 240, 20), GREEN, 12)
    assert near(pixel(found, 240, 460), (128, 128, 128), 90)


def test_a_progressive_jpeg_that_is_cut_is_shown_coarsely(preview: Preview) -> None:
    data = file_of(quarters(800, 400), "JPEG", progressive=True, quality=95)
    found = corners(opened(preview(data[: len(data) * 4 // 5])))
    assert near(found[0], RED, 60), found


@pytest.mark.parametrize("beyond", [-2, 0, 2])
def test_the_head_of_a_jpeg_alone_has_no_preview(preview: Preview, beyond: int) -> None:
    data = photo()
    scan = data.index(b"\xff\xda")
    assert "cut off" in reason(preview(data[: scan + beyond]))
    small = file_of(quarters(64, 64), "JPEG")
    assert "cut off" in reason(preview(small[: small.index(b"\xff\xda") + 14]))


@pytest.mark.parametrize("name", ["PNG", "GIF", "WEBP", "BMP"])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_half_a_file_of_another_format_has_no_preview(
    preview: Preview, name: str, part: float
) -> None:
    data = file_of(noise(300, 300), name)
    assert reason(preview(data[: int(len(data) * part)])) == CANNOT


def test_a_png_with_a_wrong_checksum_in_its_head_has_no_preview(preview: Preview) -> None:
    data = bytearray(file_of(quarters(800, 400), "PNG"))
    data[29] ^= 1
    assert reason(preview(bytes(data))) == CANNOT


def test_a_small_picture_that_is_damaged_is_not_its_own_preview(preview: Preview) -> None:
    data = file_of(noise(64, 64), "PNG")
    assert preview(data) == Whole()
    assert reason(preview(data[: len(data) // 2])) == CANNOT


def test_a_png_with_megabytes_of_text_has_a_preview(preview: Preview) -> None:
    info = PngInfo()
    info.add_text("workflow", "many words " * 300_000, zip=True)
    assert opened(preview(file_of(quarters(800, 400), "PNG", pnginfo=info))).size == (480, 240)


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_no_damage_ends_the_child(make: Make, name: str, dice: random.Random) -> None:
    helper = make("thumbnails", memory=1_073_741_824, seconds=30)
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"exif": exif} if name in {"PNG", "JPEG", "WEBP"} else {}
    whole = file_of(quarters(90, 60), name, **options)
    preview_of(helper, whole)
    process = helper._process
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 1, 3, 20))):
            at = dice.randrange(len(data) if dice.random() < 0.5 else min(len(data), 200))
            data[at] = dice.choice((0, 255, 127, 128, dice.randrange(256)))
        answer = preview_of(helper, bytes(data), dice.choice((20, 480)))
        assert isinstance(answer, Jpeg | Whole | NoPreview)
    assert helper._process is process


# Other formats


@pytest.mark.parametrize(
    "data",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"/>',
        b'<?xml version="1.0" encoding="UTF-8"?>\n<svg/>',
        b"\xef\xbb\xbf \n<!-- drawn by hand -->\n<svg></svg>",
        b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://127.0.0.1:9/"><svg/>',
        b"<svg><script>alert(1)</script><image href='http://127.0.0.1:9/x.png'/></svg>",
        b"<svg>" + b"<g/>" * 1_250_000 + b"</svg>",
    ],
)
def test_a_drawing_has_no_preview_and_the_reason_names_it(preview: Preview, data: bytes) -> None:
    assert reason(preview(data)) == "There are no previews of SVG pictures."


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\0", "not a picture"),
        (b"hello", "not a picture"),
        (b"%3Csvg%3E", "not a picture"),
        (b"\0\0\0\x20ftypavif" + bytes(40), "AVIF"),
        (b"\0\0\0\x20ftypheic" + bytes(40), "HEIC"),
        (b"RIFF\0\0\0\0WAVE", "not a picture"),
        (b"%PDF-1.7", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "not a picture"),
    ],
)
def test_what_is_no_known_picture_says_so(preview: Preview, data: bytes, word: str) -> None:
    assert word in reason(preview(data))
    assert formats.format_of(data) is None
    assert formats.refusal(data) == reason(preview(data))


@pytest.mark.parametrize("name", ["TIFF", "ICO", "PPM", "TGA", "JPEG2000", "PCX", "ICNS"])
def test_formats_beyond_the_list_are_not_decoded(preview: Preview, name: str) -> None:
    assert reason(preview(file_of(quarters(64, 64), name)))


@pytest.mark.parametrize(
    "head", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM", b"RIFF\0\0\0\0WEBP"]
)
def test_a_beginning_alone_is_a_damaged_picture(preview: Preview, head: bytes) -> None:
    assert formats.format_of(head) is not None
    assert reason(preview(head)) == CANNOT
    assert reason(preview(head + b"garbage" * 100)) == CANNOT


# Installations


def test_check_tells_the_version_of_pillow(make: Make) -> None:
    assert answer_of(make("thumbnails"), Check()) == On(PIL.__version__)
    assert previews.why_off() is None


def test_without_pillow_previews_are_off_and_the_host_knows_without_importing_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "msgspec").symlink_to(Path(str(msgspec.__file__)).parent)
    monkeypatch.setattr(
        sys,
        "path",
        [str(tmp_path), *(entry for entry in sys.path if not Path(entry, "PIL").exists())],
    )
    assert previews.why_off() == previews.NOT_INSTALLED
    helper = make("thumbnails")
    picture = file_of(quarters(800, 400), "PNG")
    assert answer_of(helper, Check()) == Off(previews.NOT_INSTALLED)
    assert preview_of(helper, picture) == Off(previews.NOT_INSTALLED)


def test_a_pillow_that_cannot_be_imported_is_named(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL" / "__init__.py").write_text("raise ImportError('libjpeg.so.8 is missing')")
    monkeypatch.syspath_prepend(str(tmp_path))
    answer = answer_of(make("thumbnails"), Check())
    assert isinstance(answer, Off)
    assert "libjpeg.so.8 is missing" in answer.reason


def test_without_the_jpeg_codec_previews_are_off(make: Make) -> None:
    helper = make("no_jpeg")
    answer = preview_of(helper, file_of(quarters(800, 400), "PNG"))
    assert isinstance(answer, Off)
    assert "JPEG" in answer.reason
    assert answer_of(helper, Check()) == answer


def test_a_broken_pillow_does_not_hinder_the_import_of_what_the_host_uses() -> None:
    for name in ("previews", "formats", "parent", "frames"):
        text = Path(os.path.dirname(previews.__file__), f"{name}.py").read_text()
        assert "import PIL" not in text
        assert "from PIL" not in text
