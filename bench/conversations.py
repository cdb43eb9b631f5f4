"""The conversations that are measured, and stores filled with many of them.

Rules of this module: entries are those of an extension's chat panel. Stores are filled by a second
process of the installed host, through the plain keys and in big calls, so that the host that is
measured has done none of that work. Pictures of filled stores are few: the others name them by the
tokens that stand for them, so 1,500 pictures are kept once each, as pictures sent again are.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import Any

from bench.pictures import screenshot, sentence
from tests.harness.sidekeep_host import SidekeepHost

Entry = dict[str, Any]

PICTURE = 280 << 10
"""Characters of the data URL of a usual picture."""
LARGE_PICTURE = 1 << 20
BODY = 20
"""Entries of a saved conversation, beside the one with its picture."""
_BODIES_AT_ONCE = 500
_PATIENCE = 300.0
_FIRST_TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Sizes:
    """How much of everything: pictures of the history, sessions of each store, and so on."""

    pictures: int = 30
    sessions: tuple[int, ...] = (10, 1_000, 10_000)
    chats: int = 300
    chat_pictures: int = 5
    distinct: int = 20
    messages: int = 10_000
    newest: int = 50


QUICK = Sizes(pictures=4, sessions=(5, 20, 100), chats=20, distinct=5, messages=400)


def question(text: str, *urls: str) -> Entry:
    """Return an entry of the user with pictures."""
    parts: list[Entry] = [{"type": "text", "text": text}]
    parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"role": "user", "content": parts}


def answer(text: str) -> Entry:
    """Return an entry of the assistant."""
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def with_pictures(count: int) -> list[Entry]:
    """Return a conversation of ``count`` questions with a picture each, and their answers."""
    dice = random.Random("with pictures")
    entries = []
    for number in range(count):
        entries.append(question(sentence(dice, 12), screenshot(number, PICTURE)))
        entries.append(answer(sentence(dice, 40)))
    return entries


def texts(dice: random.Random, count: int) -> list[Entry]:
    """Return ``count`` short entries, questions and answers in turn."""
    return [
        (answer if number % 2 else question)(sentence(dice, dice.randrange(5, 40)))
        for number in range(count)
    ]


async def fill_sessions(host: SidekeepHost, count: int) -> list[str]:
    """Store ``count`` saved conversations beside a live one; return their ids.

    Each has ``BODY`` entries of text and one with a picture of 280 KB, one of five.
    """
    dice = random.Random("sessions")
    tokens = await _store_pictures(host, 5, PICTURE)
    bodies = [
        [question(sentence(dice, 10), dice.choice(tokens)), *texts(dice, BODY)]
        for _ in range(count)
    ]
    return await _store_sessions(host, bodies, dice)


async def fill_chats(host: SidekeepHost, sizes: Sizes) -> list[str]:
    """Store ``sizes.chats`` conversations with pictures of 1 MB; return their ids.

    ``sizes.distinct`` pictures are stored; each chat shows ``sizes.chat_pictures`` of them.
    """
    dice = random.Random("chats")
    tokens = await _store_pictures(host, sizes.distinct, LARGE_PICTURE)
    bodies = []
    for _ in range(sizes.chats):
        body = []
        for token in dice.sample(tokens, sizes.chat_pictures):
            body += [question(sentence(dice, 10), token), *texts(dice, 3)]
        bodies.append(body)
    return await _store_sessions(host, bodies, dice)


async def fill_long(host: SidekeepHost, sizes: Sizes) -> None:
    """Make a live conversation of ``sizes.messages`` messages, every tenth with a picture."""
    dice = random.Random("long")
    tokens = await _store_pictures(host, sizes.distinct, PICTURE)
    left = sizes.messages - sizes.distinct
    while left > 0:
        entries = texts(dice, min(left, 1_000))
        for at in range(0, len(entries), 10):
            entries[at] = question(sentence(dice, 10), dice.choice(tokens))
        await host.call("history.append", {"entries": entries}, timeout=_PATIENCE)
        left -= len(entries)


async def _store_pictures(host: SidekeepHost, count: int, length: int) -> list[str]:
    """Append ``count`` questions with a picture each to the history; return their tokens."""
    for number in range(count):
        entry = question("Here is a picture.", screenshot(number, length))
        await host.call("history.append", {"entries": [entry]}, timeout=_PATIENCE)
    listed = await host.call("history.list", {"pixels": "none"})
    tokens = [image["ref"] for image in listed["images"]]
    assert len(set(tokens)) == count, listed["images"]
    return tokens


async def _store_sessions(
    host: SidekeepHost, bodies: list[list[Entry]], dice: random.Random
) -> list[str]:
    """Store bodies and, when all are there, their index, as an extension without the calls does."""
    ids = [str(uuid.UUID(int=dice.getrandbits(128))) for _ in bodies]
    for start in range(0, len(bodies), _BODIES_AT_ONCE):
        end = start + _BODIES_AT_ONCE
        items = {
            f"session_{name}": body
            for name, body in zip(ids[start:end], bodies[start:end], strict=True)
        }
        await host.call("storage.set", {"area": "local", "items": items}, timeout=_PATIENCE)
    index = [
        {
            "id": name,
            "name": body[0]["content"][0]["text"][:48],
            "createdAt": _FIRST_TIME + 60_000 * number,
            "pinned": False,
            "textDigest": "\n".join(entry["content"][0]["text"] for entry in body),
        }
        for number, (name, body) in enumerate(zip(ids, bodies, strict=True))
    ]
    items = {"savedSessions": index}
    await host.call("storage.set", {"area": "local", "items": items}, timeout=_PATIENCE)
    return ids
