"""The example panel as a person sees it, and what tests of it send and expect."""

from __future__ import annotations

import base64
import hashlib
import random
import struct
import zlib
from typing import Any

from playwright.async_api import FilePayload, Locator, Page, expect

from tests.harness.sidekeep_host import ORIGIN

from .driver import Browser

PANEL = f"{ORIGIN}example/panel/panel.html"


def picture(width: int, height: int, seed: int) -> bytes:
    """Return a PNG that no compression makes small."""
    noise = random.Random(seed).randbytes(width * 3 * height)
    rows = b"".join(b"\0" + noise[at : at + width * 3] for at in range(0, len(noise), width * 3))

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    )


def data_url(png: bytes) -> str:
    """Return what a browser makes of a file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


class Panel:
    """An open panel, and what is stored, as another page sees it."""

    def __init__(self, page: Page, other: Page) -> None:
        self.page = page
        self.other = other

    @property
    def users(self) -> Locator:
        return self.page.locator(".bubble.user")

    @property
    def answers(self) -> Locator:
        return self.page.locator("#bubbles .bubble.assistant")

    @property
    def state(self) -> Locator:
        return self.page.locator("#state")

    async def send(self, text: str, pictures: list[bytes] | None = None) -> None:
        """Write a text, choose pictures, send."""
        if pictures:
            files: list[FilePayload] = [
                {"name": f"{number}.png", "mimeType": "image/png", "buffer": one}
                for number, one in enumerate(pictures)
            ]
            await self.page.locator("#files").set_input_files(files)
            await expect(self.page.locator("#pictures img")).to_have_count(len(pictures))
        await self.page.get_by_label("Message", exact=True).fill(text)
        await self.page.get_by_role("button", name="Send").click()

    async def idle(self) -> None:
        """Wait until no answer is awaited."""
        await expect(self.page.get_by_role("button", name="Send")).to_be_visible()

    async def attach(self, title: str, text: str) -> None:
        """Attach a text by the dialog."""
        await self.page.get_by_role("button", name="Attach text").click()
        dialog = self.page.locator("#attach")
        await dialog.get_by_label("Title").fill(title)
        await dialog.get_by_label("Text").fill(text)
        await dialog.get_by_role("button", name="Attach", exact=True).click()

    async def stored(self) -> list[Any]:
        """Return the entries of the live conversation, pictures in full."""
        listed = await self.other.evaluate("keep.history.list()")
        return [one["entry"] for one in listed["entries"]]


async def opened(browser: Browser) -> Page:
    """Open a panel."""
    page = await browser.context.new_page()
    page.on("pageerror", lambda error: browser.faults.append(str(error)))
    await page.goto(PANEL)
    return page


def user(content: Any, **fields: Any) -> dict[str, Any]:
    """Return a user entry."""
    return {"content": content, "role": "user", **fields}


def assistant(content: str, **fields: Any) -> dict[str, Any]:
    """Return an assistant entry."""
    return {"content": content, "role": "assistant", **fields}
