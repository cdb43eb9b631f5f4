"""Previews of pictures, made by Pillow: the kind "thumbnails" of the helper.

Rules of this module (docs/protocol.md, "Pictures"):

* The format is what the first bytes say, one of a short list. Width and height are looked at before
  a pixel is decoded. Nothing outside the bytes is ever opened.
* A preview shows what a browser shows: the first frame, turned as EXIF says in JPEG and PNG (the
  browsers ignore it in WebP, and XMP everywhere), clear areas white, sixteen bits scaled, CMYK read
  the way Adobe writes it. Colour profiles are ignored.
* A JPEG that is cut off is shown as far as it goes: it is decoded once more with an end mark behind
  it, and libjpeg fills the rest with grey. The other decoders leave black where the data ends, and
  nobody can tell that from the picture, so there a cut file has no preview. Pillow's own tolerant
  mode, which is for the whole process and can loop, stays off.
* The decoded picture is the only thing of its size in memory: it is made small strip by strip.

Imported in the child only.
"""

from __future__ import annotations

import io
import struct
import warnings

from sidekeep.helper import formats, previews
from sidekeep.helper.previews import Answer, Check, Jpeg, NoPreview, Off, On, Picture, Whole

try:
    import PIL
    from PIL import Image, PngImagePlugin, WebPImagePlugin, features
except ImportError as error:
    OFF: str | None = (
        previews.NOT_INSTALLED
        if isinstance(error, ModuleNotFoundError) and error.name == "PIL"
        else f"Pillow, which makes previews, cannot be imported: {error}."
    )
else:
    OFF = (
        None
        if features.check("jpg")
        else "This Pillow has no JPEG codec, so there are no previews."
    )

LARGEST_PIXELS = 100_000_000
LARGEST_WEBP_PIXELS = 40_000_000
"""libwebp and Pillow hold the picture five times while they decode it; others once or twice."""
WHOLE_BYTES = 65_536
QUALITY = 82
FILL = {(128, 128, 128), (64, 64, 64)}
"""The middle of all values, as RGB: of grey and YCbCr, and of CMYK."""
FILL_SHARE = 15 / 16
STRIP_PIXELS = 2_000_000
LONGEST_TEXT = 16_777_216
"""Bytes of one text in a PNG. Programs that make pictures leave megabytes of their settings there,
where Pillow refuses the whole picture beyond one; the limit of memory stands anyway."""

_TURNED_BY_BROWSERS = ("JPEG", "PNG")
_ORIENTATION = 0x0112

# What Pillow raises for EXIF that is not EXIF.
_EXIF_ERRORS = (
    EOFError,
    IndexError,
    KeyError,
    OSError,
    OverflowError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)

if OFF is None:
    MISSING = {
        name
        for name, there in (
            ("PNG", features.check("zlib")),
            # Importing it also keeps Pillow from importing all its formats at the first WebP.
            ("WEBP", WebPImagePlugin.SUPPORTED),
        )
        if not there
    }
    Image.MAX_IMAGE_PIXELS = LARGEST_PIXELS // 2  # Pillow warns beyond it, refuses beyond twice
    PngImagePlugin.MAX_TEXT_CHUNK = LONGEST_TEXT
    warnings.filterwarnings("ignore", module="PIL")  # of pictures, and nobody reads them here
    TURNS = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }
"""What makes the picture of each EXIF orientation upright (Exif 2.32, tag 274)."""


def run(job: bytes) -> bytes:
    """Do a job of ``previews`` and return its answer, both in MessagePack."""
    return previews.encode(answer(previews.decode_job(job)))


def answer(job: previews.Job) -> Answer:
    """Make the preview, or say why there is none."""
    if OFF is not None:
        return Off(OFF)
    if isinstance(job, Check):
        return On(PIL.__version__)
    name = formats.format_of(job.data)
    if name is None:
        return NoPreview(formats.refusal(job.data))
    if name in MISSING:
        return Off(f"This Pillow has no decoder for {name} pictures.")
    try:
        return _preview(job, name)
    except Image.DecompressionBombError:
        most = LARGEST_WEBP_PIXELS if name == "WEBP" else LARGEST_PIXELS
        millions = most // 1_000_000
        return NoPreview(f"The picture is too large: it has more than {millions} million pixels.")


def _preview(job: Picture, name: str) -> Answer:
    data = job.data
    loaded = _load(data, name, job.edge)
    cut = loaded is None and name == "JPEG"
    if cut:
        loaded = _load(data + b"\xff\xd9", name, job.edge)
    if loaded is None:
        return NoPreview("The picture cannot be decoded: it is damaged or cut off.")
    picture, painted, size = loaded
    orientation = _orientation(picture) if name in _TURNED_BY_BROWSERS else 1
    small = _small(picture, painted, _fitting(size, job.edge))
    if cut and _is_fill(small):
        return NoPreview("The picture is cut off before its first pixels.")
    if max(size) <= job.edge and len(data) <= WHOLE_BYTES and orientation == 1:
        return Whole()
    if orientation != 1:
        small = small.transpose(TURNS[orientation])
    file = io.BytesIO()
    small.save(file, "JPEG", quality=QUALITY, optimize=True)
    return Jpeg(file.getvalue(), small.width, small.height)


def _load(
    data: bytes, name: str, edge: int
) -> tuple[Image.Image, tuple[int, int, int, int], tuple[int, int]] | None:
    """Decode the first frame; ``None`` if that is not possible.

    Returns the picture (a JPEG as much smaller as its decoder can make it cheaply), the box of it
    that the frame paints, and the size that the file has. Raises ``DecompressionBombError`` before
    decoding if that is too large.
    """
    if name == "WEBP":
        width, height = formats.webp_size(data) or (0, 0)
        if width * height > LARGEST_WEBP_PIXELS:
            raise Image.DecompressionBombError
    try:
        picture = Image.open(io.BytesIO(data), formats=(name,))
        size = picture.size
        if name == "JPEG":
            width, height = _fitting(size, edge)
            picture.draft(None, (width * 2, height * 2))
        # A frame of a GIF may be smaller than the picture; what it does not paint is clear.
        painted = picture.tile[0].extents if name == "GIF" else None
        picture.load()
    except (Image.DecompressionBombError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - Pillow raises nearly everything for damaged files
        return None
    return picture, painted or (0, 0, *picture.size), size


def _is_fill(small: Image.Image) -> bool:
    """Return whether nearly all of a cut JPEG is what libjpeg puts in the place of data."""
    colours = small.getcolors(small.width * small.height) or []
    count, colour = max(colours)
    return colour in FILL and count > FILL_SHARE * small.width * small.height


def _orientation(picture: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8; 1 if there is none or the EXIF is damaged."""
    exif = Image.Exif()
    try:
        exif.load(picture.info.get("exif", b""))
        value = exif.get(_ORIENTATION)
    except _EXIF_ERRORS:
        return 1
    return value if isinstance(value, int) and value in TURNS else 1


def _fitting(size: tuple[int, int], edge: int) -> tuple[int, int]:
    """Return the size of the preview: the same shape, neither side over ``edge`` or below 1."""
    longest = max(size)
    if longest <= edge:
        return size
    return max(1, round(size[0] * edge / longest)), max(1, round(size[1] * edge / longest))


def _small(
    picture: Image.Image, painted: tuple[int, int, int, int], target: tuple[int, int]
) -> Image.Image:
    """Return the picture on white, RGB, in the size ``target``.

    Whole multiples are averaged strip by strip first, down to twice the size that is wanted; the
    rest is left to a filter that keeps edges sharp.
    """
    width, height = picture.size
    by_x, by_y = (
        max(1, side // (2 * wanted)) for side, wanted in zip(picture.size, target, strict=True)
    )
    reduced = Image.new("RGB", (-(-width // by_x), -(-height // by_y)))
    rows = max(by_y, STRIP_PIXELS // width // by_y * by_y)
    for top in range(0, height, rows):
        strip = _on_white(picture, painted, (0, top, width, min(height, top + rows)))
        reduced.paste(strip.reduce((by_x, by_y)), (0, top // by_y))
    if reduced.size == target:
        return reduced
    # The last column and row of averages may stand for fewer pixels than the others.
    box = (0.0, 0.0, width / by_x, height / by_y)
    return reduced.resize(target, Image.Resampling.BICUBIC, box=box)


def _on_white(
    picture: Image.Image, painted: tuple[int, int, int, int], box: tuple[int, int, int, int]
) -> Image.Image:
    """Return the part ``box`` of the picture as RGB, with white where nothing is painted."""
    left, top = max(box[0], painted[0]), max(box[1], painted[1])
    right, bottom = min(box[2], painted[2]), min(box[3], painted[3])
    size = (box[2] - box[0], box[3] - box[1])
    if left >= right or top >= bottom:
        return Image.new("RGB", size, "white")
    part = _opaque(picture.crop((left, top, right, bottom)))
    if part.size == size:
        return part
    whole = Image.new("RGB", size, "white")
    whole.paste(part, (left - box[0], top - box[1]))
    return whole


def _opaque(part: Image.Image) -> Image.Image:
    """Return a picture of any mode as RGB on white."""
    if part.mode.startswith("I"):
        return _opaque_grey(part)
    if part.mode in {"RGBA", "LA", "PA"} or "transparency" in part.info:
        colours = part.convert("RGBA")
        white = Image.new("RGB", part.size, "white")
        white.paste(colours.convert("RGB"), mask=colours.getchannel("A"))
        return white
    return part.convert("RGB")


def _opaque_grey(part: Image.Image) -> Image.Image:
    """Return sixteen bits of grey as RGB on white: Pillow's own conversion cuts off at 255."""
    values = part.convert("I")
    grey = values.point([round(value * 255 / 65_535) for value in range(65_536)], "L")
    clear = part.info.get("transparency")
    if isinstance(clear, int):
        table = [0] * 65_536
        table[clear] = 255
        grey.paste(255, mask=values.point(table, "L"))
    grey.info.clear()  # it would be taken for a clear colour of eight bits
    return grey.convert("RGB")
