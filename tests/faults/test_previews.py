"""Pictures that broke previews in the field, sent by an extension: saved as sent, whatever happens.

What a preview looks like is tested in ``tests/helper``; here is what a caller sees of it.
"""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from PIL import Image

from tests.conversations.chat import Chat, check_store, image, user
from tests.harness.measure import session_members
from tests.harness.sidekeep_host import Sandbox
from tests.helper.pictures import GREEN, file_of, near, noise, pixel, quarters

MIB = 1 << 20


@pytest_asyncio.fixture
async def gallery(sandbox: Sandbox) -> AsyncIterator[Chat]:
    """Return a chat whose host can make thumbnails."""
    sandbox.libraries.append("PIL")
    sandbox.write()
    async with sandbox.open() as host:
        yield Chat(host)
    check_store(sandbox)


def url_of(data: bytes, mime: str = "image/png") -> str:
    """Return the data URL of a file."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


async def thumbnails(chat: Chat, *urls: str) -> list[dict[str, Any]]:
    """Append pictures, ask for the thumbnail of each, and check that all is stored as sent."""
    await chat.append(*[user([image(url)]) for url in urls])
    listed = await chat.listed(pixels="none")
    refs = {one["id"]: one["ref"] for one in listed["images"]}
    answers = []
    for one in listed["entries"]:
        answers.append(await chat.call("images.thumbnail", ref=refs[one["id"]]))
    assert [one["content"][0]["image_url"]["url"] for one in await chat.history()] == list(urls)
    await chat.host.ping()
    return answers


def opened(url: str) -> Image.Image:
    """Return the picture of a thumbnail."""
    assert url.startswith("data:image/")
    picture = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    picture.load()
    return picture


async def test_a_bomb_is_stored_and_too_large_for_a_preview(gallery: Chat) -> None:
    bomb = url_of(file_of(Image.new("1", (20_000, 20_000)), "PNG"))
    async with gallery.host.sampled_peak() as peak:
        (answer,) = await thumbnails(gallery, bomb)
    assert "too large" in answer["none"]
    assert peak.anonymous < 300 * MIB
    (left,) = (await gallery.listed(pixels="thumbnail"))["images"]
    assert (left["state"], left["reason"]) == ("none", answer["none"])


async def test_a_damaged_picture_is_stored_and_tried_once(gallery: Chat) -> None:
    photo = file_of(noise(600, 600), "JPEG", quality=90)
    png = bytearray(file_of(noise(200, 200), "PNG"))
    png[29] ^= 1
    urls = [
        url_of(photo[: len(photo) // 2], "image/jpeg"),
        url_of(photo[:-4], "image/jpeg"),
        url_of(photo[: photo.index(b"\xff\xda")] + b"\0" * 4_000, "image/jpeg"),
        url_of(bytes(png)),
    ]
    answers = await thumbnails(gallery, *urls)
    assert ["url" in answer for answer in answers] == [True, True, False, False]
    states = [one["state"] for one in (await gallery.listed(pixels="thumbnail"))["images"]]
    assert states == ["ready", "ready", "none", "none"]


async def test_what_is_known_of_previews_needs_no_helper_ever_after(
    sandbox: Sandbox,
) -> None:
    sandbox.libraries.append("PIL")
    sandbox.write()
    urls = [url_of(file_of(noise(700, 500), "PNG")), url_of(b"no picture" * 500)]
    async with sandbox.open() as host:
        await thumbnails(Chat(host), *urls)
    async with sandbox.open() as host:
        for _ in range(3):
            listed = await Chat(host).listed(pixels="thumbnail")
            assert [one["state"] for one in listed["images"]] == ["ready", "none"]
        assert session_members(host.pid) == [host.pid]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
async def test_clear_areas_are_white_in_the_preview(gallery: Chat, mode: str) -> None:
    clear = Image.new("RGBA", (900, 600), (0, 0, 0, 0))
    clear.paste(Image.effect_noise((300, 600), 80).convert("RGBA"), (600, 0))
    (answer,) = await thumbnails(gallery, url_of(file_of(clear.convert(mode), "PNG")))
    assert near(pixel(opened(answer["url"]), 100, 160), (255, 255, 255))


@pytest.mark.parametrize("turn", range(1, 9))
async def test_a_photo_is_upright_and_its_original_keeps_its_exif(gallery: Chat, turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    data = file_of(noise(800, 400), "JPEG", exif=exif)
    (answer,) = await thumbnails(gallery, url_of(data, "image/jpeg"))
    shown = opened(answer["url"])
    assert shown.size == ((480, 240) if turn < 5 else (240, 480))
    assert not shown.getexif()
    (entry,) = await gallery.history()
    sent = entry["content"][0]["image_url"]["url"]
    assert opened(sent).getexif()[0x0112] == turn


async def test_a_drawing_is_kept_as_sent_and_has_no_preview(gallery: Chat) -> None:
    drawing = (
        "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script>"
        "<image href='http://127.0.0.1:9/x.png'/>" + "<g/>" * 2_000 + "</svg>"
    )
    urls = [
        url_of(drawing.encode(), "image/svg+xml"),
        "data:image/svg+xml," + quote(drawing),
        "data:image/svg+xml;charset=utf-8," + quote(drawing),
        "data:image/svg+xml;utf8," + drawing,
        url_of(b"<svg>" + b"<g/>" * 1_250_000 + b"</svg>", "image/svg+xml"),
    ]
    for answer in await thumbnails(gallery, *urls):
        assert answer == {"none": "There are no previews of SVG pictures."}


@pytest.mark.parametrize("name", ["GIF", "WEBP"])
async def test_an_animation_stays_one_and_its_preview_is_the_first_frame(
    gallery: Chat, name: str
) -> None:
    first = Image.new("RGB", (800, 600), GREEN)
    more = [quarters(800, 600), noise(800, 600), first] * 5
    data = file_of(first, name, save_all=True, append_images=more, duration=50)
    (answer,) = await thumbnails(gallery, url_of(data, f"image/{name.lower()}"))
    assert near(pixel(opened(answer["url"]), 240, 180), GREEN)
    (entry,) = await gallery.history()
    assert opened(entry["content"][0]["image_url"]["url"]).n_frames == 16  # type: ignore[attr-defined]


@pytest.mark.parametrize(("width", "height"), [(10_000, 1), (1, 10_000), (65_500, 2)])
async def test_a_thin_picture_keeps_a_pixel(gallery: Chat, width: int, height: int) -> None:
    (answer,) = await thumbnails(gallery, url_of(file_of(noise(width, height), "PNG")))
    shown = opened(answer["url"])
    assert 1 <= min(shown.size) <= max(shown.size) == 480


async def test_previews_that_do_not_compress_reach_the_caller_in_parts(gallery: Chat) -> None:
    urls = [url_of(file_of(noise(1_100 + number, 1_100), "JPEG")) for number in range(4)]
    await thumbnails(gallery, *urls)
    images = (await gallery.listed(pixels="thumbnail"))["images"]
    assert sum(len(one["thumbnail"]) for one in images) > 262_144
    assert {opened(one["thumbnail"]).size for one in images} <= {(480, 480), (480, 479)}
    url = (await gallery.call("images.thumbnail", ref=images[0]["ref"], edge=1_024))["url"]
    assert len(url) > 262_144
    assert opened(url).size == (1_024, 1_024)


@pytest.mark.parametrize(
    ("count", "side"), [(4, 3_000), pytest.param(20, 10_000, marks=pytest.mark.long)]
)
async def test_calls_are_answered_while_big_pictures_wait_for_their_previews(
    gallery: Chat, count: int, side: int
) -> None:
    base = file_of(Image.effect_noise((side // 20, side // 20), 90).resize((side, side)), "JPEG")
    shots = [url_of(base + bytes([number]), "image/jpeg") for number in range(count)]
    broken = [url_of(base[: len(base) // (number + 2)], "image/jpeg") for number in range(3)]
    await gallery.append(*[user([image(url)]) for url in (*shots, *broken)])
    listed = await gallery.listed(pixels="thumbnail")
    assert {one["state"] for one in listed["images"]} == {"pending"}
    pending = count
    answered = 0
    while pending:
        await gallery.host.get("nothing")
        answered += 1
        images = (await gallery.listed(pixels="thumbnail"))["images"]
        pending = sum(one["state"] == "pending" for one in images)
    assert answered > count
    before = gallery.host.cpu_seconds()
    children = session_members(gallery.host.pid)
    again = await gallery.listed(pixels="thumbnail")
    assert all(one["state"] in {"ready", "none"} for one in again["images"])
    assert session_members(gallery.host.pid) == children
    assert gallery.host.cpu_seconds() - before < 1  # what decoding them took by far
