"""A host seen as a chat: the calls of an AI panel by name, and entries to fill it with."""

from __future__ import annotations

import base64
import random
from typing import Any

from sidekeep.store import verify
from sidekeep.store.environment import Store
from tests.harness.sidekeep_host import EXTENSION_ID, Sandbox, SidekeepHost

PREFIX = "[Page context attached by browsa]"

Entry = dict[str, Any]


def user(content: Any, **fields: Any) -> Entry:
    """Return a user entry."""
    return {"content": content, "role": "user", **fields}


def assistant(content: Any, **fields: Any) -> Entry:
    """Return an assistant entry."""
    return {"content": content, "role": "assistant", **fields}


def text(value: str) -> dict[str, str]:
    """Return a text part."""
    return {"text": value, "type": "text"}


def image(url: str) -> dict[str, Any]:
    """Return an image part."""
    return {"image_url": {"url": url}, "type": "image_url"}


def attachment(url: str, title: str, body: str, **fields: Any) -> Entry:
    """Return an attached page, with the header that the seed's extension writes."""
    header = f"{PREFIX}\nURL: {url}\nTitle: {title}\nMode: reader\n---\n\n"
    return user(header + body, **fields)


def picture(seed: int, size: int = 60_000, mime: str = "image/png") -> str:
    """Return a data URL of ``size`` bytes that no other seed gives."""
    content = random.Random(seed).randbytes(size)
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


class Chat:
    """The calls of a panel, each answered with its result."""

    def __init__(self, host: SidekeepHost) -> None:
        self.host = host

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method with named parameters (``from_`` is written ``from``)."""
        return await self.host.call(method, {name.rstrip("_"): v for name, v in params.items()})

    async def listed(self, **params: Any) -> dict[str, Any]:
        """Return the result of ``history.list``."""
        result = await self.call("history.list", **params)
        assert isinstance(result, dict)
        return result

    async def history(self) -> list[Entry]:
        """Return the entries of the history, after comparing them with the plain key."""
        entries = [one["entry"] for one in (await self.listed())["entries"]]
        assert (await self.host.get("history")).get("history", []) == entries
        return entries

    async def ids(self) -> list[str]:
        """Return the ids of the history's entries."""
        return [one["id"] for one in (await self.listed(pixels="none"))["entries"]]

    async def append(self, *entries: Any) -> list[str]:
        """Append entries; return their ids."""
        result = await self.call("history.append", entries=list(entries))
        ids = result["ids"]
        assert isinstance(ids, list)
        return ids

    async def sessions(self, **params: Any) -> list[dict[str, Any]]:
        """Return the rows of ``sessions.list``."""
        result = await self.call("sessions.list", **params)
        rows = result["rows"]
        assert isinstance(rows, list)
        return rows

    async def plain(self, key: str) -> Any:
        """Return the value of a plain key, ``None`` if there is none."""
        return (await self.host.get(key)).get(key)


def check_store(sandbox: Sandbox) -> None:
    """Check every count and reference of the store on the disk."""
    file = sandbox.store_file()
    store = Store(str(file.parent), extension=EXTENSION_ID, profile="profile")
    try:
        with store.read() as transaction:
            problems = verify.problems(transaction)
            assert not problems, problems
    finally:
        store.close()
