"""Any sequence of turns, failures, retries and kills: one send is one entry, nothing shrinks."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

from tests.conversations.chat import (
    Chat,
    Entry,
    assistant,
    attachment,
    check_store,
    image,
    picture,
    text,
    user,
)
from tests.harness.sidekeep_host import Sandbox, SidekeepHost

MARKS = {"failed", "imagesSeen", "sendAsStub"}
STYLES = ["chat", "responses", "anthropic", "runs", "agent"]
OVERFLOW = {"status": 400, "code": "context_length_exceeded"}


class Model:
    """What the history must hold, marks aside, and the turn that runs."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.entries: list[Entry] = []
        self.turn: dict[str, Any] | None = None
        self.partial = ""
        self.number = 0

    def fresh(self) -> str:
        """Return a text that nothing else has."""
        self.number += 1
        return f"text {self.number} " + "x" * self.dice.choice([0, 10, 9_000])


def bare(entries: list[Entry]) -> list[Entry]:
    """Return entries without the marks that turns leave on them."""
    return [{name: v for name, v in entry.items() if name not in MARKS} for entry in entries]


async def ask(chat: Chat, model: Model) -> None:
    """Begin a turn, or edit or send again an earlier question."""
    dice = model.dice
    target = {"style": dice.choice(STYLES), "system": dice.choice([None, "S"])}
    shots = [picture(dice.randrange(5), 5_000) for _ in range(dice.choice([0, 0, 1, 2]))]
    question = model.fresh()
    content: Any = [text(question), *map(image, shots)] if shots else question
    ids = await chat.ids()
    questions = [
        at
        for at, entry in enumerate(model.entries)
        if entry["role"] == "user" and "attachId" not in entry
    ]
    if questions and dice.random() < 0.4:
        at = dice.choice(questions)
        if dice.random() < 0.5:
            result = await chat.call("turns.regenerate", entryId=ids[at], target=target)
            content = model.entries[at]["content"]
        else:
            result = await chat.call(
                "turns.edit", entryId=ids[at], text=question, images=shots, target=target
            )
        del model.entries[at:]
    elif model.turn is None:
        result = await chat.call("turns.begin", text=question, images=shots, target=target)
    else:
        return
    model.entries.append(user(content))
    model.turn = result
    model.partial = ""
    assert (await chat.ids())[-1] == result["entryId"]


async def go_on(chat: Chat, model: Model) -> None:
    """Take the turn that runs one step further."""
    dice = model.dice
    assert model.turn is not None
    turn = model.turn["turnId"]
    step = dice.choice(["progress", "rescue", "complete", "complete", "fail", "drop"])
    if step == "progress":
        model.partial = model.fresh()
        await chat.call("turns.progress", turnId=turn, text=model.partial)
    elif step == "rescue":
        before = await chat.history()
        first = await chat.call("turns.rescue", turnId=turn, error=OVERFLOW)
        if first["request"] is not None:
            model.partial = ""
            second = await chat.call("turns.rescue", turnId=turn, error=OVERFLOW)
            assert second["request"] is None
        assert await chat.history() == before
    elif step == "complete":
        answer = model.fresh()
        await chat.call("turns.complete", turnId=turn, content=answer, stamps={"by": "model"})
        model.entries.append(assistant(answer, by="model"))
        model.turn = None
    else:
        reason = "drop" if step == "drop" else "abort"
        await chat.call("turns.fail", turnId=turn, reason=reason)
        end(model, kept=step != "drop")


def end(model: Model, *, kept: bool) -> None:
    """Note that the turn has ended without an answer."""
    if kept and model.partial:
        model.entries.append(assistant(model.partial, interrupted=True))
    model.turn = None
    model.partial = ""


async def attach(chat: Chat, model: Model) -> None:
    """Attach a page, sometimes with a picture."""
    body = model.fresh()
    shots = [picture(model.dice.randrange(5), 5_000)] if model.dice.random() < 0.5 else []
    added = await chat.call(
        "attachments.add", url="https://a", title="A", mode="m", text=body, images=shots
    )
    expected = attachment("https://a", "A", body, attachId=added["attachId"])
    expected["content"] = expected["content"].replace("Mode: reader", "Mode: m")
    if shots:
        expected["content"] = [text(expected["content"]), image(shots[0])]
    model.entries.append(expected)


async def walk(sandbox: Sandbox, dice: random.Random, steps: int) -> None:
    """Take so many steps, with a kill of the host now and then."""
    model = Model(dice)
    client = 0
    while steps > 0:
        async with sandbox.open(client=f"client-{client}") as host:
            chat = Chat(host)
            for _ in range(dice.randrange(1, 12)):
                steps -= 1
                choice = dice.random()
                if choice < 0.15:
                    await attach(chat, model)
                elif model.turn is None or choice < 0.3:
                    await ask(chat, model)
                else:
                    await go_on(chat, model)
                assert bare(await chat.history()) == model.entries
            if dice.random() < 0.5:
                await killed(host)
        if dice.random() < 0.6:  # another context comes: what ran is cut off
            client += 1
            if model.turn is not None:
                end(model, kept=True)


async def killed(host: SidekeepHost) -> None:
    """Kill the host with whatever it holds."""
    os.kill(host.pid, signal.SIGKILL)
    await host.close(check=False)


async def test_one_send_is_one_user_entry_whatever_happens(
    sandbox: Sandbox, dice: random.Random
) -> None:
    await walk(sandbox, dice, 3_000 if os.environ.get("SIDEKEEP_LONG") else 150)
    check_store(sandbox)


async def test_requests_of_the_same_conversation_share_their_beginning(
    chat: Chat, dice: random.Random
) -> None:
    sent: list[Any] = []
    for number in range(8):
        turn = await chat.call(
            "turns.begin",
            text=f"question {number} " + "x" * dice.randrange(2_000),
            target={"style": "chat", "system": "S"},
        )
        messages = turn["request"]["messages"]
        assert messages[: len(sent)] == sent
        sent = messages
        await chat.call("turns.complete", turnId=turn["turnId"], content=f"answer {number}")
