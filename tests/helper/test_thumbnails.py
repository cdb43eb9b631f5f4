"""Previews show what the picture shows: shape, first frame, colours, the right way up."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image, ImageChops, ImageOps, ImageStat
from PIL.Image import Transpose

from sidekeep.helper.previews import Jpeg, Whole

from .pictures import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    Colour,
    Preview,
    corners,
    file_of,
    near,
    noise,
    opened,
    pixel,
    quarters,
)

ORIENTATION = 0x0112
UPRIGHT_AGAIN = {
    1: None,
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_90,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_270,
}
"""How the sensor saw what each orientation stands for (Exif 2.32: row 0 and column 0)."""


def turned(orientation: int) -> Image.Image:
    """Return the quarters, 800 x 400 when upright, as the pixels of such a photo lie."""
    transposition = UPRIGHT_AGAIN[orientation]
    upright = quarters(800, 400)
    return upright if transposition is None else upright.transpose(transposition)


def exif_of(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


# Size


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ((961, 960), (480, 480)),
        ((1000, 500), (480, 240)),
        ((500, 1000), (240, 480)),
        ((481, 3), (480, 3)),
        ((1366, 768), (480, 270)),
    ],
)
def test_a_preview_has_the_shape_of_the_picture(
    preview: Preview, name: str, size: tuple[int, int], wanted: tuple[int, int]
) -> None:
    data = file_of(quarters(*size), name)
    picture = opened(preview(data))
    assert picture.size == wanted
    if min(size) > 100:
        found = corners(picture)
        assert all(map(near, found, (RED, GREEN, BLUE, WHITE), [12] * 4)), found


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        ((10_000, 1), (480, 1)),
        ((1, 10_000), (1, 480)),
        ((65_500, 2), (480, 1)),
        ((2, 65_500), (1, 480)),
        ((200_000, 60), (480, 1)),
    ],
)
def test_a_thin_picture_never_gets_thinner_than_a_pixel(
    preview: Preview, size: tuple[int, int], wanted: tuple[int, int]
) -> None:
    picture = opened(preview(file_of(Image.new("RGB", size, GREEN), "PNG")))
    assert picture.size == wanted
    assert near(pixel(picture, 0, 0), GREEN)
    assert near(pixel(picture, wanted[0] - 1, wanted[1] - 1), GREEN)


@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
@pytest.mark.parametrize("size", [(1, 1), (120, 90), (140, 1), (1, 140)])
def test_a_small_picture_is_its_own_preview(
    preview: Preview, name: str, size: tuple[int, int]
) -> None:
    assert preview(file_of(quarters(*size), name), 140) == Whole()


def test_the_border_of_being_small_lies_at_the_edge_and_at_64_kib(preview: Preview) -> None:
    small = file_of(quarters(480, 480), "PNG")
    assert preview(small.ljust(65_536, b"\0")) == Whole()
    assert opened(preview(small.ljust(65_537, b"\0"))).size == (480, 480)
    assert opened(preview(file_of(quarters(481, 480), "PNG"))).size == (480, 479)


def test_a_picture_is_never_made_larger(preview: Preview) -> None:
    data = file_of(noise(200, 160), "PNG")
    assert len(data) > 65_536
    assert opened(preview(data)).size == (200, 160)
    assert opened(preview(data, 4000)).size == (200, 160)


@pytest.mark.parametrize("edge", [1, 2, 64, 1024])
def test_any_edge_can_be_asked_for(preview: Preview, edge: int) -> None:
    assert opened(preview(file_of(quarters(2000, 2000), "JPEG"), edge)).size == (edge, edge)


@pytest.mark.parametrize("name", ["PNG", "JPEG"])
def test_a_preview_is_as_good_as_scaling_the_whole_picture_at_once(
    preview: Preview, name: str
) -> None:
    whole = Image.linear_gradient("L").resize((3001, 1999)).convert("RGB")
    whole.paste(quarters(701, 333), (1500, 900))
    found = opened(preview(file_of(whole, name, **({"quality": 95} if name == "JPEG" else {}))))
    wanted = whole.resize(found.size, Image.Resampling.BICUBIC, reducing_gap=None)
    assert max(ImageStat.Stat(ImageChops.difference(found, wanted)).mean) < 2.0


def test_a_preview_is_a_jpeg_of_quality_82(preview: Preview) -> None:
    answer = preview(file_of(noise(960, 960), "PNG"))
    wanted = Image.new("RGB", (8, 8))
    tables = Image.open(io.BytesIO(file_of(wanted, "JPEG", quality=82))).quantization  # type: ignore[attr-defined]
    assert opened(answer).quantization == tables  # type: ignore[attr-defined]


# The right way up


@pytest.mark.parametrize("name", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_upright_and_not_turned_again_by_the_browser(
    preview: Preview, name: str, orientation: int
) -> None:
    data = file_of(turned(orientation), name, exif=exif_of(orientation))
    picture = opened(preview(data))  # which has no EXIF, so that nobody turns it again
    assert picture.size == (480, 240)
    found = corners(picture)
    assert all(map(near, found, (RED, GREEN, BLUE, WHITE), [12] * 4)), found


def test_the_cases_of_orientation_are_those_that_pillow_knows() -> None:
    for orientation in range(1, 9):
        picture = turned(orientation)
        picture.getexif()[ORIENTATION] = orientation
        assert ImageOps.exif_transpose(picture).tobytes() == quarters(800, 400).tobytes()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_small_picture_that_has_to_be_turned_is_not_its_own_preview(
    preview: Preview, orientation: int
) -> None:
    small = turned(orientation)
    small.thumbnail((100, 100))
    data = file_of(small, "JPEG", exif=exif_of(orientation), quality=95)
    assert opened(preview(data)).size == (100, 50)
    assert preview(file_of(small, "JPEG", exif=exif_of(1))) == Whole()


def test_what_browsers_do_not_turn_is_not_turned(preview: Preview) -> None:
    webp = file_of(quarters(800, 400), "WEBP", exif=exif_of(6))
    assert opened(preview(webp)).size == (480, 240)
    xmp = b'<x xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/>'
    assert opened(preview(file_of(quarters(800, 400), "JPEG", xmp=xmp))).size == (480, 240)


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0II*\0",
        b"Exif\0\0" + b"\xff" * 40,
        b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12\0\x03",
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x02\0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x05\0\x01\0\0\0\x1a\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0",
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x63\0\0\0\0\0\0\0",
        b"no exif at all",
    ],
)
def test_damaged_exif_is_ignored(preview: Preview, exif: bytes) -> None:
    picture = opened(preview(file_of(quarters(800, 400), "JPEG", exif=exif)))
    assert picture.size == (480, 240)
    assert near(corners(picture)[0], RED, 12)


def test_exif_of_64_kb_is_read(preview: Preview) -> None:
    exif = exif_of(6)
    exif[0x010E] = "x" * 65_000  # a description
    data = file_of(turned(6), "JPEG", exif=exif)
    assert len(data) > 65_000
    assert opened(preview(data)).size == (480, 240)


# Colours


def clear(mode: str) -> Image.Image:
    """Return a picture of that mode: left opaque, middle half clear, right clear."""
    picture = Image.new("RGBA", (900, 300), (0, 0, 0, 0))
    picture.paste((*BLUE, 255), (0, 0, 300, 300))
    picture.paste((*BLUE, 128), (300, 0, 600, 300))
    return picture.convert(mode)


@pytest.mark.parametrize("name", ["PNG", "WEBP"])
def test_clear_areas_are_white(preview: Preview, name: str) -> None:
    picture = opened(preview(file_of(clear("RGBA"), name, lossless=True)))
    assert near(pixel(picture, 80, 80), BLUE)
    assert near(pixel(picture, 240, 80), (142, 142, 237))
    assert near(pixel(picture, 400, 80), WHITE)


def test_clear_areas_of_grey_are_white(preview: Preview) -> None:
    picture = opened(preview(file_of(clear("LA"), "PNG")))
    grey = clear("LA").getpixel((0, 0))[0]  # type: ignore[index]
    assert near(pixel(picture, 80, 80), (grey, grey, grey))
    assert near(pixel(picture, 400, 80), WHITE)


@pytest.mark.parametrize("name", ["PNG", "GIF"])
def test_a_clear_colour_of_a_palette_is_white(preview: Preview, name: str) -> None:
    picture = Image.new("P", (600, 300), 0)
    picture.putpalette([*RED, *GREEN, *BLUE])
    picture.paste(1, (0, 0, 300, 300))
    found = opened(preview(file_of(picture, name, transparency=0)))
    assert near(pixel(found, 80, 80), GREEN, 12)
    assert near(pixel(found, 400, 80), WHITE)


def test_a_palette_with_half_clear_colours_is_mixed_with_white(preview: Preview) -> None:
    picture = Image.new("P", (900, 300), 0)
    picture.putpalette([*BLUE, *BLUE, *BLUE])
    picture.paste(1, (300, 0, 600, 300))
    picture.paste(2, (600, 0, 900, 300))
    found = opened(preview(file_of(picture, "PNG", transparency=b"\xff\x80\x00")))
    assert near(pixel(found, 80, 80), BLUE)
    assert near(pixel(found, 240, 80), (142, 142, 237))
    assert near(pixel(found, 400, 80), WHITE)


@pytest.mark.parametrize(
    ("mode", "colour", "other"),
    [("RGB", RED, GREEN), ("L", 40, 90), ("1", 0, 1)],
)
def test_a_clear_colour_without_a_palette_is_white(
    preview: Preview, mode: str, colour: int | Colour, other: int | Colour
) -> None:
    picture = Image.new(mode, (600, 300), other)
    picture.paste(colour, (300, 0, 600, 300))
    found = opened(preview(file_of(picture, "PNG", transparency=colour)))
    assert near(pixel(found, 400, 80), WHITE)
    grey = 90 if mode == "L" else 255
    assert near(pixel(found, 80, 80), GREEN if mode == "RGB" else (grey, grey, grey), 8)


def test_a_clear_value_of_sixteen_bits_is_white(preview: Preview) -> None:
    row = struct.pack("<H", 40_000) * 200 + struct.pack("<H", 40_001) * 400
    picture = Image.frombytes("I;16", (600, 300), row * 300)
    found = opened(preview(file_of(picture, "PNG", transparency=40_001)))
    assert near(pixel(found, 80, 80), (156, 156, 156), 2)
    assert near(pixel(found, 400, 80), WHITE)


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_a_picture_that_is_all_clear_is_all_white(preview: Preview, mode: str) -> None:
    found = opened(preview(file_of(Image.new(mode, (600, 300)), "PNG")))
    assert found.getextrema() == ((255, 255),) * 3


@pytest.mark.parametrize("value", [0, 255, 256, 12_800, 32_832, 50_000, 65_535])
def test_sixteen_bits_of_grey_are_scaled(preview: Preview, value: int) -> None:
    found = opened(preview(file_of(Image.new("I;16", (600, 300), value), "PNG")))
    grey = round(value * 255 / 65_535)
    assert near(pixel(found, 100, 100), (grey, grey, grey), 1)


def test_sixteen_bits_of_colour_are_scaled(preview: Preview) -> None:
    rows = b"".join(b"\0" + struct.pack(">HHH", 0xDC40, 0x1E40, 0x1E40) * 600 for _ in range(300))

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 600, 300, 16, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    assert near(pixel(opened(preview(data)), 100, 100), RED)


def without_adobe_marker(data: bytes) -> bytes:
    at = data.index(b"Adobe") - 4
    return data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]


def test_cmyk_has_the_colours_that_browsers_show(preview: Preview) -> None:
    # Chromium shows (235, 50, 50) for these, with and without the marker.
    adobe = file_of(Image.new("CMYK", (600, 300), (0, 200, 200, 20)), "JPEG", quality=95)
    assert b"Adobe" in adobe
    for data in (adobe, without_adobe_marker(adobe)):
        assert near(pixel(opened(preview(data)), 100, 100), (235, 50, 50))


def test_ycck_has_the_colours_that_browsers_show(preview: Preview) -> None:
    # The same bytes, said to be YCCK: Chromium shows (94, 0, 118).
    data = bytearray(file_of(Image.new("CMYK", (600, 300), (0, 200, 200, 20)), "JPEG", quality=95))
    data[data.index(b"Adobe") + 11] = 2
    assert near(pixel(opened(preview(bytes(data))), 100, 100), (94, 0, 118))


@pytest.mark.parametrize("name", ["PNG", "JPEG", "BMP", "GIF"])
def test_grey_stays_grey(preview: Preview, name: str) -> None:
    found = opened(preview(file_of(Image.new("L", (600, 300), 77), name)))
    assert near(pixel(found, 100, 100), (77, 77, 77), 2)


def test_black_and_white_stays_so(preview: Preview) -> None:
    picture = Image.new("1", (600, 300), 0)
    picture.paste(1, (300, 0, 600, 300))
    found = opened(preview(file_of(picture, "PNG")))
    assert near(pixel(found, 80, 80), (0, 0, 0))
    assert near(pixel(found, 400, 80), WHITE)


def test_a_colour_profile_changes_nothing(preview: Preview) -> None:
    for profile in (b"no profile", b"\0" * 70_000):
        data = file_of(quarters(800, 400), "JPEG", icc_profile=profile)
        answer = preview(data)
        assert near(corners(opened(answer))[0], RED, 12)
        assert isinstance(answer, Jpeg)
        assert b"ICC_PROFILE" not in answer.data


# Frames


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_an_animation_shows_its_first_frame(preview: Preview, name: str) -> None:
    frames = [Image.new("RGB", (800, 600), (count % 256, 0, 0)) for count in range(1, 20)]
    first = Image.new("RGB", (800, 600), GREEN)
    data = file_of(first, name, save_all=True, append_images=frames, duration=20)
    found = opened(preview(data))
    assert found.size == (480, 360)
    assert near(pixel(found, 200, 200), GREEN, 8)


def test_a_long_animation_costs_no_more_than_its_first_frame(preview: Preview) -> None:
    frames = [Image.new("P", (800, 600), count % 256) for count in range(299)]
    first = Image.new("P", (800, 600), 7)
    first.putpalette([channel for grey in range(256) for channel in (grey, 0, 200)])
    data = file_of(first, "GIF", save_all=True, append_images=frames, duration=20)
    # All that follows the first frame is garbage: whoever looked at it would stumble.
    with Image.open(io.BytesIO(data)) as opened_again:
        assert opened_again.n_frames > 250  # type: ignore[attr-defined]
    broken = data[:9000] + b"\x55" * (len(data) - 9000)
    for one in (data, broken):
        assert near(pixel(opened(preview(one)), 100, 100), (7, 0, 200), 8)


def test_what_the_first_frame_of_a_gif_does_not_paint_is_white(preview: Preview) -> None:
    picture = Image.new("P", (300, 300), 1)
    picture.putpalette([*GREEN, *RED, *BLUE])
    data = bytearray(file_of(picture, "GIF"))
    data[6:10] = struct.pack("<HH", 600, 600)  # the screen is larger than the frame
    found = opened(preview(bytes(data)))
    assert found.size == (480, 480)
    assert near(pixel(found, 100, 100), RED, 12)
    for x, y in ((400, 100), (100, 400), (400, 400)):
        assert near(pixel(found, x, y), WHITE)


def test_a_photo_with_a_second_one_behind_it_shows_the_first(preview: Preview) -> None:
    data = file_of(
        quarters(800, 400), "MPO", save_all=True, append_images=[Image.new("RGB", (80, 40))]
    )
    found = opened(preview(data))
    assert found.size == (480, 240)
    assert near(corners(found)[1], GREEN, 12)
