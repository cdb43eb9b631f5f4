"""The example panel in a real Chromium, against a model that the test plays."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import random
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.harness.sidekeep_host import ORIGIN

from .driver import Browser, kill, until, until_true
from .model_server import ModelServer, Reply

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PANEL = f"{ORIGIN}example/panel/panel.html"
TOO_LONG = Reply(
    status=400,
    error={
        "code": "context_length_exceeded",
        "message": "This model's maximum context length is 16385 tokens.",
    },
)


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


@pytest.fixture(scope="module")
def _serving() -> Iterator[ModelServer]:
    with ModelServer().running() as server:
        yield server


@pytest.fixture
def model(_serving: ModelServer) -> Iterator[ModelServer]:
    """Return the model, which expects no request yet."""
    _serving.faults.clear()
    _serving.answers()
    yield _serving
    assert _serving.faults == []


@pytest_asyncio.fixture(loop_scope="session")
async def panel(browser: Browser, page: Page, model: ModelServer) -> AsyncIterator[Panel]:
    """Return an open panel that knows the model; the store was empty."""
    await page.evaluate("(endpoint) => keep.settings.set({ endpoint, model: 'm' })", model.url)
    yield Panel(await opened(browser), page)
    await page.evaluate("keep.sessions.clear()")


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


async def test_an_answer_is_shown_while_it_streams_and_stored_when_it_ends(
    panel: Panel, model: ModelServer
) -> None:
    reply = Reply.held("A drowned ", "valley.")
    model.answers(reply, "A firth is one, too.")
    await panel.send("What is a fjord?")
    await expect(panel.page.locator("#live")).to_have_text("A drowned ")
    await expect(panel.users).to_have_count(1)
    assert await panel.stored() == [user("What is a fjord?")], "stored before it is answered"
    reply.gate.set()
    await panel.idle()
    await expect(panel.answers.locator(".content")).to_have_text(["A drowned valley."])
    await expect(panel.page.locator("#live")).to_be_hidden()
    first = [user("What is a fjord?"), assistant("A drowned valley.")]
    assert await panel.stored() == first
    await panel.send("And a firth?")
    await expect(panel.answers).to_have_count(2)
    assert [request["messages"] for request in model.requests] == [
        first[:1],
        [*first, user("And a firth?")],
    ]
    assert await panel.stored() == [*first, user("And a firth?"), assistant("A firth is one, too.")]


async def test_a_request_that_is_too_long_is_sent_again_without_the_text_of_attachments(
    panel: Panel, model: ModelServer
) -> None:
    text = "All about fjords. " * 600
    await panel.attach("Fjords", text)
    await expect(panel.page.get_by_text("Attached: Fjords")).to_be_visible()
    model.answers(TOO_LONG, "Deep ones.")
    await panel.send("Which fjords are there?")
    await expect(panel.answers.locator(".content")).to_have_text(["Deep ones."])
    full, stubbed = (request["messages"] for request in model.requests)
    assert text.strip() in full[0]["content"]
    assert "Fjords" in stubbed[0]["content"]
    assert len(stubbed[0]["content"]) < 1000
    assert full[1:] == stubbed[1:] == [user("Which fjords are there?")]
    attachment, *others = await panel.stored()
    assert others == [user("Which fjords are there?"), assistant("Deep ones.")]
    assert text.strip() in attachment["content"], "what is stored is whole"
    assert attachment["sendAsStub"] is True


async def test_what_cannot_be_made_smaller_is_marked_and_retried_in_its_place(
    panel: Panel, model: ModelServer
) -> None:
    model.answers(TOO_LONG, "Now it fits.")
    await panel.send("Too long?")
    await expect(panel.state).to_contain_text("maximum context length")
    await expect(panel.users.locator(".mark")).to_have_text("The model did not answer.")
    assert await panel.stored() == [user("Too long?", failed="error")]
    await panel.users.get_by_role("button", name="Retry").click()
    await expect(panel.answers.locator(".content")).to_have_text(["Now it fits."])
    await expect(panel.users.locator(".mark")).to_have_count(0)
    assert await panel.stored() == [user("Too long?"), assistant("Now it fits.")]
    assert model.requests[1]["messages"] == [user("Too long?")]


async def test_an_answer_that_ends_early_is_kept_as_what_it_is(
    panel: Panel, model: ModelServer
) -> None:
    model.answers(Reply(["Half of"], finishes=False))
    await panel.send("Whole?")
    await expect(panel.state).to_contain_text("ended early")
    assert await panel.stored() == [
        user("Whole?", failed="error"),
        assistant("Half of", interrupted=True),
    ]


async def test_stopping_keeps_what_came_and_ends_the_request(
    panel: Panel, model: ModelServer
) -> None:
    reply = Reply.held("So far ", "never sent")
    model.answers(reply)
    await panel.send("A long story, please.")
    await expect(panel.page.locator("#live")).to_have_text("So far ")
    await panel.page.get_by_role("button", name="Stop").click()
    await expect(panel.state).to_have_text("Stopped.")
    await until(reply.gone.is_set, "the request to be ended")
    await expect(panel.answers.locator(".mark")).to_have_text("Not complete.")
    assert await panel.stored() == [
        user("A long story, please.", failed="abort"),
        assistant("So far ", interrupted=True),
    ]


@pytest.mark.parametrize("ending", ["reload", "close", "kill"])
async def test_an_answer_that_is_cut_off_is_marked_kept_and_replaced_by_a_retry(
    browser: Browser, panel: Panel, model: ModelServer, ending: str
) -> None:
    reply = Reply.held("The first ", "never sent")
    model.answers(reply, "The whole answer.")
    await panel.send("Tell me.")
    await expect(panel.page.locator("#live")).to_have_text("The first ")
    await asyncio.sleep(0.5)  # partial text is saved in the background
    if ending == "kill":  # of the host, and of the page, which would go on otherwise
        kill(await panel.page.evaluate("keep.status().host.pid"))
    if ending == "reload":
        await panel.page.reload()
    else:
        await panel.page.close()
        panel = Panel(await opened(browser), panel.other)
    await until(reply.gone.is_set, "the request to be ended")
    await expect(panel.state).to_contain_text("cut off")
    await expect(panel.users).to_have_count(1)
    await expect(panel.users.locator(".mark")).to_have_text("The answer was cut off.")
    assert await panel.stored() == [
        user("Tell me.", failed="interrupted"),
        assistant("The first ", interrupted=True),
    ]
    await panel.users.get_by_role("button", name="Retry").click()
    await expect(panel.answers.locator(".content")).to_have_text(["The whole answer."])
    await expect(panel.users).to_have_count(1)
    assert await panel.stored() == [user("Tell me."), assistant("The whole answer.")]
    await panel.page.reload()
    await expect(panel.users).to_have_count(1)
    await expect(panel.state).to_have_text("")


async def test_a_host_that_is_killed_while_an_answer_streams_costs_nothing(
    panel: Panel, model: ModelServer
) -> None:
    reply = Reply.held("Still ", "here.")
    model.answers(reply)
    await panel.send("Are you there?")
    await expect(panel.page.locator("#live")).to_have_text("Still ")
    kill(await panel.page.evaluate("keep.status().host.pid"))
    await asyncio.sleep(0.3)
    reply.gate.set()
    await expect(panel.answers.locator(".content")).to_have_text(["Still here."])
    assert await panel.stored() == [user("Are you there?"), assistant("Still here.")]


async def test_pictures_stay_what_they_are_when_asked_again_and_edited(
    panel: Panel, model: ModelServer
) -> None:
    pictures = [picture(600, 400, 1), picture(40, 40, 2)]
    wanted = [digest(data_url(one)) for one in pictures]

    async def in_question() -> list[str]:
        entry = (await panel.stored())[0]
        parts = entry["content"][1:]
        return [digest(part["image_url"]["url"]) for part in parts]

    def in_request(number: int) -> list[str]:
        parts = model.requests[number]["messages"][0]["content"][1:]
        return [digest(part["image_url"]["url"]) for part in parts]

    model.answers("Noise.", "Noise again.", "Other noise.")
    await panel.send("What is this?", pictures)
    await expect(panel.answers.locator(".content")).to_have_text(["Noise."])
    await expect(panel.users.locator(".picture img")).to_have_count(2)
    await until_true(
        panel.page,
        "[...document.querySelectorAll('.picture img')].every((one) => one.naturalWidth > 0)",
    )
    assert [await in_question(), in_request(0)] == [wanted, wanted]
    entries = await panel.stored()
    assert entries[0]["imagesSeen"] is True

    await panel.users.get_by_role("button", name="Ask again").click()
    await expect(panel.answers.locator(".content")).to_have_text(["Noise again."])
    assert [await in_question(), in_request(1)] == [wanted, wanted]

    await panel.users.get_by_role("button", name="Edit").click()
    await expect(panel.page.locator("#text")).to_have_value("What is this?")
    await panel.page.locator("#text").fill("And what is that?")
    await panel.page.get_by_role("button", name="Send").click()
    await expect(panel.answers.locator(".content")).to_have_text(["Other noise."])
    await expect(panel.users).to_have_count(1)
    assert [await in_question(), in_request(2)] == [wanted, wanted]
    entries = await panel.stored()
    assert [entries[0]["content"][0]["text"], len(entries)] == ["And what is that?", 2]

    await panel.users.get_by_role("button", name="Show Picture 1 in full").click()
    dialog = panel.page.locator("#picture img")
    await expect(dialog).to_be_visible()
    assert digest(await dialog.get_attribute("src") or "") == wanted[0]


async def test_a_pasted_picture_is_sent_once_and_later_named_only(
    panel: Panel, model: ModelServer
) -> None:
    png = picture(60, 60, 3)
    await panel.page.evaluate(
        """(base64) => {
          const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
          const clipboardData = new DataTransfer();
          clipboardData.items.add(new File([bytes], 'a.png', { type: 'image/png' }));
          document.querySelector('#text').dispatchEvent(
            new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
        }""",
        base64.b64encode(png).decode(),
    )
    await expect(panel.page.locator("#pictures img")).to_have_count(1)
    model.answers("Dots.", "Still dots.")
    await panel.send("What is this?")
    await expect(panel.answers).to_have_count(1)
    await expect(panel.page.locator("#pictures img")).to_have_count(0)
    await panel.send("And now?")
    await expect(panel.answers).to_have_count(2)
    first, second = (str(request["messages"]) for request in model.requests)
    assert data_url(png) in first
    assert "data:image" not in second
    assert "[图1]" in second
    assert data_url(png) in str(await panel.stored())


async def test_two_panels_show_the_same_and_only_one_asks_at_a_time(
    browser: Browser, panel: Panel, model: ModelServer
) -> None:
    second = Panel(await opened(browser), panel.other)
    reply = Reply.held("One ", "answer.")
    model.answers(reply)
    await panel.send("From the first panel")
    await expect(second.users.locator(".content")).to_have_text(["From the first panel"])
    await second.send("From the second panel")
    await expect(second.state).to_contain_text("Another turn of this conversation is running")
    await expect(second.page.locator("#text")).to_have_value("From the second panel")
    reply.gate.set()
    await expect(second.answers.locator(".content")).to_have_text(["One answer."])
    assert await panel.stored() == [user("From the first panel"), assistant("One answer.")]
    model.answers("Two.")
    await second.page.get_by_role("button", name="Send").click()
    await expect(panel.answers.locator(".content")).to_have_text(["One answer.", "Two."])
    await panel.users.nth(1).get_by_role("button", name="Remove").click()
    await expect(second.users).to_have_count(1)
    await panel.page.get_by_role("button", name="Undo").click()
    await expect(second.users).to_have_count(2)


async def test_conversations_are_kept_found_opened_and_brought_back(
    panel: Panel, model: ModelServer
) -> None:
    model.answers("A drowned valley.", "A cook.")
    await panel.send("What is a fjord?")
    await expect(panel.answers).to_have_count(1)
    await panel.page.get_by_role("button", name="New").click()
    await expect(panel.users).to_have_count(0)
    await panel.send("Who makes soup?")
    await expect(panel.answers).to_have_count(1)
    await panel.page.get_by_role("button", name="New").click()
    await expect(panel.users).to_have_count(0)

    await panel.page.get_by_role("button", name="Conversations").click()
    drawer = panel.page.locator("#drawer")
    await expect(drawer.locator("li")).to_have_count(2)
    await drawer.get_by_label("Search").fill("VALLEY")
    await expect(drawer.locator("li")).to_have_count(1)
    await drawer.get_by_role("button", name="What is a fjord?: ").click()
    await expect(panel.answers.locator(".content")).to_have_text(["A drowned valley."])

    await panel.page.get_by_role("button", name="Conversations").click()
    await drawer.get_by_label("Search").fill("")
    await drawer.get_by_role("button", name="Delete Who makes soup?").click()
    await expect(drawer.locator("li")).to_have_count(1)
    await drawer.get_by_role("button", name="Close").click()
    await panel.page.get_by_role("button", name="Undo").click()
    await panel.page.get_by_role("button", name="Conversations").click()
    await expect(drawer.locator("li")).to_have_count(2)


async def test_a_long_attachment_is_condensed_in_segments_and_its_text_kept(
    panel: Panel, model: ModelServer
) -> None:
    text = "\n".join(f"## Part {number}\n\n{'word ' * 400}" for number in range(55))
    assert len(text) > 100_000
    model.answers()
    model.always = Reply(["In short."])
    await panel.attach("Book", text)
    await expect(panel.state).to_contain_text("Attached and condensed")
    await expect(panel.page.get_by_text("Attached: Book (condensed)")).to_be_visible()
    asked = [request["messages"][1]["content"] for request in model.requests]
    *segments, merge = asked
    count = len(segments)
    assert count > 5
    assert sorted(segment.split("\n")[0] for segment in segments) == sorted(
        f"[Segment {number}/{count}]" for number in range(1, count + 1)
    )
    assert merge == "\n\n".join(f"[Segment {number}]\nIn short." for number in range(1, count + 1))
    [entry] = await panel.stored()
    assert entry["summarized"] is True
    assert entry["content"].endswith("In short.")
    assert "auto-condensed" in entry["content"]
    assert text.strip() in entry["originalText"]


async def test_a_summary_that_fails_leaves_the_attachment_as_it_was(
    panel: Panel, model: ModelServer
) -> None:
    text = "\n".join(f"## Part {number}\n\n{'word ' * 400}" for number in range(55))
    model.answers("In short.", Reply(status=429, error={"message": "Slow down, please."}))
    model.always = Reply(["In short."])
    await panel.attach("Book", text)
    await expect(panel.state).to_contain_text("Slow down, please.")
    [entry] = await panel.stored()
    assert "summarized" not in entry
    assert text.strip() in entry["content"]


async def test_the_model_and_its_settings_are_kept(
    browser: Browser, panel: Panel, model: ModelServer
) -> None:
    await panel.page.get_by_role("button", name="Model").click()
    dialog = panel.page.locator("#settings")
    await expect(dialog.get_by_label("Address")).to_have_value(model.url)
    await dialog.get_by_label("Model").fill("other")
    await dialog.get_by_label("System prompt").fill("Be brief.")
    await dialog.get_by_role("button", name="Save").click()
    model.answers("Yes.")
    await panel.page.reload()
    await panel.send("Are you?")
    await expect(panel.answers.locator(".content")).to_have_text(["Yes."])
    [request] = model.requests
    assert request["model"] == "other"
    assert request["messages"] == [
        {"content": "Be brief.", "role": "system"},
        user("Are you?"),
    ]
