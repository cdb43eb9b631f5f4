"""What the first bytes of a picture tell: its format, and why there is no preview of it.

Rules of this module: what a data URL claims is never asked; nothing is decoded, and Pillow is not
imported, so that the host can use it too.
"""

from __future__ import annotations

HEAD_BYTES = 1024
"""As many bytes from the beginning of a picture are enough for everything here."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
)

_OTHERS = (
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\0\0\1\0", "icon"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
)


def format_of(head: bytes) -> str | None:
    """Return the format of which previews are made, or ``None``.

    They are ``PNG``, ``JPEG``, ``GIF``, ``WEBP`` and ``BMP``, as Pillow calls them: what all
    browsers show and what has a decoder in every build of Pillow.
    """
    for beginning, name in _BEGINNINGS:
        if head.startswith(beginning):
            return name
    return "WEBP" if head.startswith(b"RIFF") and head[8:12] == b"WEBP" else None


def refusal(head: bytes) -> str:
    """Return a sentence for a picture that ``format_of`` does not know."""
    if not head:
        return "The picture is empty."
    name = next((name for beginning, name in _OTHERS if head.startswith(beginning)), None)
    if head[4:8] == b"ftyp":
        name = "AVIF" if head[8:12] in {b"avif", b"avis"} else "HEIC or video"
    text = head[:HEAD_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<svg", b"<?xml", b"<!--", b"<!doctype svg")) and b"<svg" in text:
        name = "SVG"
    if name is None:
        return "The bytes are not a picture of a known format."
    return f"There are no previews of {name} pictures."


def webp_size(head: bytes) -> tuple[int, int] | None:
    """Return the width and height that a WebP file claims, ``None`` if its head is damaged.

    From the container specification of WebP. Pillow tells the size only after libwebp has taken
    memory for the whole canvas.
    """
    chunk = head[12:16]
    if chunk == b"VP8X" and len(head) >= 30:
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    if chunk == b"VP8 " and head[23:26] == b"\x9d\x01\x2a" and len(head) >= 30:
        return (
            int.from_bytes(head[26:28], "little") & 0x3FFF,
            int.from_bytes(head[28:30], "little") & 0x3FFF,
        )
    if chunk == b"VP8L" and head[20:21] == b"\x2f" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None
