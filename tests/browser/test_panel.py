"""Asking the example panel in a real Chromium: answers, refusals, stops, and what is cut off.

The test plays the model.
"""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import expect

from .driver import Browser, kill, until
from .model_server import ModelServer, Reply
from .panel import Panel, assistant, opened, user

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TOO_LONG = Reply(
    status=400,
    error={
        "code": "context_length_exceeded",
        "message": "This model's maximum context length is 16385 tokens.",
    },
)


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
