"""Pictures: tokens instead of pixels, thumbnails, the budget; what was sent always comes back."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image

from tests.conversations.chat import Chat, assistant, check_store, image, picture, text, user
from tests.harness.messages import Call
from tests.harness.sidekeep_host import Sandbox, refused


@pytest_asyncio.fixture
async def gallery(sandbox: Sandbox) -> AsyncIterator[Chat]:
    """Return a chat whose host can make thumbnails."""
    sandbox.libraries.append("PIL")
    sandbox.write()
    async with sandbox.open() as host:
        yield Chat(host)
    check_store(sandbox)


def screenshot(seed: int, size: tuple[int, int] = (900, 600)) -> str:
    """Return a PNG as a data URL, too large to be its own thumbnail."""
    noise = Image.effect_noise((size[0] // 10, size[1] // 10), 40 + seed).resize(size)
    out = io.BytesIO()
    noise.save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def opened(url: str) -> Image.Image:
    """Return the picture of a data URL."""
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def shown(entry: Any) -> str:
    """Return the first image's URL of an entry."""
    url = next(part for part in entry["content"] if "image_url" in part)["image_url"]["url"]
    assert isinstance(url, str)
    return url


async def test_without_pixels_tokens_stand_in_their_place(chat: Chat) -> None:
    first, second = picture(1), picture(2, mime="image/jpeg")
    entry = user([text("see"), image(first), image(second)])
    (identity,) = await chat.append(entry)
    result = await chat.listed(pixels="none")
    content = result["entries"][0]["entry"]["content"]
    assert content[0] == text("see")
    refs = [part["image_url"]["url"] for part in content[1:]]
    assert all(ref.startswith("sidekeep:") and len(ref) >= 69 for ref in refs)
    assert result["images"] == [
        {
            "id": identity,
            "path": ["content", place, "image_url", "url"],
            "ref": ref,
            "bytes": len(url),
            "mime": mime,
            "state": "left",
        }
        for place, ref, url, mime in (
            (1, refs[0], first, "image/png"),
            (2, refs[1], second, "image/jpeg"),
        )
    ]
    assert (await chat.call("images.get", ref=refs[1]))["url"] == second
    assert await chat.history() == [entry]


async def test_a_token_that_comes_back_is_the_picture(chat: Chat) -> None:
    shots = [picture(n, size) for n, size in ((1, 5_000), (2, 100_000), (3, 2_000_000))]
    ids = await chat.append(*[user([image(shot)]) for shot in shots])
    listed = await chat.listed(pixels="none")
    entries = [one["entry"] for one in listed["entries"]]
    await chat.host.set({"history": [{**entries[0], "imagesSeen": True}, *entries[1:]]})
    assert await chat.ids() == ids
    expected = [user([image(shot)]) for shot in shots]
    expected[0]["imagesSeen"] = True
    assert await chat.history() == expected
    await chat.call("history.update", id=ids[2], entry=entries[1])
    await chat.append(user([image(shown(entries[2]))]))
    await chat.host.set({"elsewhere": {"shot": shown(entries[1])}})
    assert await chat.plain("elsewhere") == {"shot": shots[1]}
    history = await chat.history()
    assert [shown(entry) for entry in history[1:]] == [shots[1], shots[1], shots[2]]


async def test_a_token_of_a_picture_that_is_gone_is_refused(chat: Chat) -> None:
    await chat.append(user([image(picture(1))]), user("a"))
    token = shown((await chat.listed(pixels="none"))["entries"][0]["entry"])
    await chat.call("history.remove", index=0)
    await chat.call("trash.empty")
    for items in ({"history": [user([image(token)])]}, {"x": token}):
        with refused("notFound"):
            await chat.host.set(items)
    with refused("notFound"):
        await chat.append(user([image(token)]))
    with refused("notFound"):
        await chat.call("images.get", ref=token)
    assert await chat.history() == [user("a")]


@pytest.mark.parametrize(
    "almost",
    [
        "sidekeep:",
        "sidekeep:" + "A" * 80,
        "sidekeep:not a token at all, but a sentence that a person typed into the panel, long",
        "SIDEKEEP:" + "A" * 80,
    ],
)
async def test_what_only_looks_like_a_token_is_text(chat: Chat, almost: str) -> None:
    await chat.append(user(almost))
    await chat.host.set({"x": {almost: almost}})
    assert await chat.history() == [user(almost)]
    assert await chat.plain("x") == {almost: almost}


async def test_bytes_come_back_exactly_as_sent(chat: Chat) -> None:
    odd = [
        picture(1, 50_000),
        picture(2, 50_000)[:-4] + "AAA",
        "data:image/png;base64," + "A" * 5_001,
        "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'>" + "é" * 5_000,
        "data:image/svg+xml;charset=utf-8;base64," + base64.b64encode(b"<svg/>" * 999).decode(),
        "data:image/svg+xml,%3Csvg" + "%20" * 3_000 + "%3E",
        "data:," + "x" * 9_000,
        "data:image/gif;base64," + base64.b64encode(b"GIF89a").decode(),
        "A" * 8_000,
    ]
    entries = [user([image(url)]) for url in odd]
    await chat.append(*entries)
    assert await chat.history() == entries
    tokens = [one["entry"] for one in (await chat.listed(pixels="none"))["entries"]]
    await chat.call("sessions.save", name="all")
    await chat.call("history.clear")
    await chat.append(*tokens)
    assert await chat.history() == entries


async def test_thumbnails_are_made_once_and_listed(gallery: Chat) -> None:
    shot = screenshot(1)
    small = screenshot(2, (100, 50))
    await gallery.append(user([image(shot)]), assistant("x"), user([image(small)]))
    first = await gallery.listed(pixels="thumbnail")
    assert {one["state"] for one in first["images"]} == {"pending"}
    ref = first["images"][0]["ref"]
    url = (await gallery.call("images.thumbnail", ref=ref))["url"]
    assert opened(url).format == "JPEG"
    assert opened(url).size == (480, 320)
    if len(first["images"]) > 1:
        await gallery.call("images.thumbnail", ref=first["images"][1]["ref"])
    again = await gallery.listed(pixels="thumbnail")
    (left,) = again["images"]
    assert (left["state"], left["thumbnail"]) == ("ready", url)
    assert shown(again["entries"][0]["entry"]) == ref
    assert shown(again["entries"][2]["entry"]) == small
    other = (await gallery.call("images.thumbnail", ref=ref, edge=96))["url"]
    assert opened(other).size == (96, 64)
    assert shown((await gallery.history())[0]) == shot


async def test_the_word_base64_may_be_written_in_any_letters(gallery: Chat) -> None:
    shot = screenshot(1).replace(";base64,", ";BASE64,")
    await gallery.append(user([image(shot)]))
    (left,) = (await gallery.listed(pixels="thumbnail"))["images"]
    assert opened((await gallery.call("images.thumbnail", ref=left["ref"]))["url"]).size == (
        480,
        320,
    )
    assert shown((await gallery.history())[0]) == shot


async def test_thumbnails_are_made_for_a_listing_that_shares_its_frame_with_a_change(
    gallery: Chat,
) -> None:
    await gallery.append(user([image(screenshot(1))]))
    states = []
    for number in range(600):  # nobody asks for the thumbnail itself, or lists without a change
        change = Call("storage.set", {"area": "local", "items": {"a": number}})
        listing = Call("history.list", {"pixels": "thumbnail"})
        _, listed = await gallery.host.batch([change, listing])
        states += [one["state"] for one in listed["images"]]
        if states[-1] == "ready":
            break
        await asyncio.sleep(0.05)
    assert set(states) == {"pending", "ready"}


async def test_what_cannot_be_shown_says_so_and_keeps_its_bytes(gallery: Chat) -> None:
    bad = picture(5)
    svg = "data:image/svg+xml;utf8,<svg>" + " " * 5_000 + "</svg>"
    entries = [user([image(bad)]), user([image(svg)]), user([image(screenshot(1))])]
    await gallery.append(*entries)
    for one in (await gallery.listed(pixels="thumbnail"))["images"][:2]:
        answer = await gallery.call("images.thumbnail", ref=one["ref"])
        assert list(answer) == ["none"]
        assert answer["none"].strip()
    listed = await gallery.listed(pixels="thumbnail")
    assert [one["state"] for one in listed["images"][:2]] == ["none", "none"]
    assert all(one["reason"] for one in listed["images"][:2])
    assert await gallery.history() == entries


async def test_without_pillow_there_are_no_previews_and_everything_else(chat: Chat) -> None:
    status = (await chat.host.status())["previews"]
    assert status["on"] is False
    assert "Pillow" in status["reason"]
    await chat.append(user([image(picture(1))]))
    (left,) = (await chat.listed(pixels="thumbnail"))["images"]
    assert left["state"] == "none"
    assert "Pillow" in left["reason"]
    assert "Pillow" in (await chat.call("images.thumbnail", ref=left["ref"]))["none"]


async def test_the_budget_leaves_out_the_oldest_and_spares_the_newest(chat: Chat) -> None:
    shots = [picture(n, 30_000) for n in range(3)]
    await chat.append(*[user([text(str(n)), image(shot)]) for n, shot in enumerate(shots)])
    length = len(shots[0])

    async def whole(budget: int) -> list[bool]:
        entries = (await chat.listed(pixels="bounded", budget=budget))["entries"]
        return [shown(one["entry"]) == shots[n] for n, one in enumerate(entries)]

    assert await whole(3 * length) == [True, True, True]
    assert await whole(3 * length - 1) == [False, True, True]
    assert await whole(int(1.5 * length)) == [False, False, True]
    assert await whole(length // 2) == [False, False, True]
    assert await whole(0) == [False, False, True]
    assert len((await chat.listed(pixels="bounded"))["images"]) == 0


async def test_the_same_picture_twice_is_whole_in_the_newer_entry(chat: Chat) -> None:
    shot = picture(1)
    await chat.append(user([image(shot)]), user([image(shot)]))
    entries = (await chat.listed(pixels="bounded", budget=len(shot)))["entries"]
    assert shown(entries[0]["entry"]).startswith("sidekeep:")
    assert shown(entries[1]["entry"]) == shot
    assert (await chat.host.status())["blobs"] == 1


async def test_calls_are_served_while_thumbnails_are_made(gallery: Chat) -> None:
    shots = [screenshot(n, (4000, 3000)) for n in range(4)]
    await gallery.append(*[user([image(shot)]) for shot in shots])
    listed = await gallery.listed(pixels="thumbnail")
    for _ in range(20):
        await gallery.host.ping()
    for one in listed["images"]:
        assert opened((await gallery.call("images.thumbnail", ref=one["ref"]))["url"]).size == (
            480,
            360,
        )


async def test_a_removed_picture_takes_its_thumbnail_along(gallery: Chat) -> None:
    await gallery.append(user([image(screenshot(1))]), user("a"))
    (left,) = (await gallery.listed(pixels="thumbnail"))["images"]
    await gallery.call("images.thumbnail", ref=left["ref"])
    await gallery.call("history.remove", index=0)
    await gallery.call("trash.empty")
    with refused("notFound"):
        await gallery.call("images.thumbnail", ref=left["ref"])


@pytest.mark.parametrize("edge", [15, 1025, 480.5, "480", None])
async def test_an_edge_out_of_range_is_refused(chat: Chat, edge: Any) -> None:
    await chat.append(user([image(picture(1))]))
    (left,) = (await chat.listed(pixels="none"))["images"]
    with refused("invalidParams"):
        await chat.call("images.thumbnail", ref=left["ref"], edge=edge)
    with refused("invalidParams"):
        await chat.call("images.get", ref="nonsense")
