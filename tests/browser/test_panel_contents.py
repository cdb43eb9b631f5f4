"""What the example panel shows and keeps in a real Chromium: pictures, attachments, conversations.

The test plays the model.
"""

from __future__ import annotations

import base64

import pytest
from playwright.async_api import expect

from .driver import Browser, until_true
from .model_server import ModelServer, Reply
from .panel import Panel, assistant, data_url, digest, opened, picture, user

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


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
