"""The kind "thumbnails" with a Pillow that was built without its JPEG codec."""

from __future__ import annotations

from PIL import _imaging

del _imaging.jpeg_encoder
del _imaging.jpeg_decoder

from sidekeep.helper.thumbnails import run  # noqa: E402

__all__ = ["run"]
