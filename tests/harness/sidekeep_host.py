"""Sidekeep's own host under the harness: a folder to run it in, and its calls by name.

The host is started from the source tree just as an installed launcher starts it: the real
interpreter with ``-I -S -X utf8``, a tiny script that puts the host and its two libraries on the
path, the configuration, and what the browser appends. Only ``lmdb`` and ``msgspec`` can be imported
beside the standard library, so a host that needs more fails here and not on a user's machine.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .messages import RpcError
from .rpc import RpcHost

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(os.environ.get("SIDEKEEP_SOURCE", ROOT / "host"))
"""The folder that holds the package ``sidekeep`` under test: the tree's, or an installed copy."""

EXTENSION_ID = "andamljdfjmkeeaoodefglpnfbaoklhh"
"""The id that the shipped extension's key gives."""

ORIGIN = f"chrome-extension://{EXTENSION_ID}/"
INTERPRETER = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
"""The interpreter behind a virtual environment, which starts faster than the environment's."""

WINDOW = 16
_CLIENTS = itertools.count(1)
_WHEELS = {"PIL": "pillow"}

_START = """\
import sys
sys.path[:0] = {folders!r}
from sidekeep.__main__ import main
sys.exit(main(sys.argv))
"""


class SidekeepHost(RpcHost):
    """A running Sidekeep host. ``greeting`` is the result of its hello."""

    greeting: dict[str, Any]

    async def hello(
        self,
        profile: str = "profile",
        *,
        parts: int | None = WINDOW,
        client: str | None = None,
        run: str | None = None,
    ) -> dict[str, Any]:
        """Say hello and return the answer; parts are on afterwards if the host grants them."""
        params: dict[str, Any] = {"protocol": 1, "profile": profile}
        params["client"] = client or f"client-{os.getpid()}-{next(_CLIENTS)}"
        if run is not None:
            params["run"] = run
        if parts is not None:
            params["parts"] = {"window": parts}
        greeting = await self.call("host.hello", params)
        assert isinstance(greeting, dict)
        self.greeting = greeting
        if "parts" in greeting:
            self.enable_parts(greeting["parts"]["window"])
        return greeting

    async def ping(self) -> None:
        """Check that the host answers."""
        assert await self.call("host.ping", {}) == {}

    async def status(self) -> dict[str, Any]:
        """Return what ``host.status`` answers."""
        status = await self.call("host.status", {})
        assert isinstance(status, dict)
        return status

    async def get(self, keys: str | Sequence[str] | None = None) -> dict[str, Any]:
        """Return the items stored under ``keys``, or all."""
        result = await self.call("storage.get", {"area": "local", "keys": keys})
        items = result["items"]
        assert isinstance(items, dict)
        return items

    async def set(self, items: Mapping[str, Any], *, op: int | None = None) -> None:
        """Store ``items``."""
        assert await self.call("storage.set", {"area": "local", "items": items}, op=op) == {}

    async def remove(self, keys: str | Sequence[str], *, op: int | None = None) -> None:
        """Remove what is stored under ``keys``."""
        assert await self.call("storage.remove", {"area": "local", "keys": keys}, op=op) == {}

    async def clear(self, *, op: int | None = None) -> None:
        """Remove everything in the area."""
        assert await self.call("storage.clear", {"area": "local"}, op=op) == {}

    async def keys(self) -> list[str]:
        """Return the keys, in the order the host gives them."""
        result = await self.call("storage.getKeys", {"area": "local"})
        keys = result["keys"]
        assert isinstance(keys, list)
        return keys

    async def bytes_in_use(self, keys: str | Sequence[str] | None = None) -> int:
        """Return the size that ``storage.getBytesInUse`` answers."""
        result = await self.call("storage.getBytesInUse", {"area": "local", "keys": keys})
        count = result["bytes"]
        assert isinstance(count, int)
        return count


@contextmanager
def refused(kind: str) -> Iterator[pytest.ExceptionInfo[RpcError]]:
    """Expect an error response of this kind, with the code that the protocol's table gives it."""
    with pytest.raises(RpcError) as caught:
        yield caught
    assert_kind(caught.value, kind)


def assert_kind(error: object, kind: str) -> None:
    """Check that ``error`` is an error response of this kind, with its code and a sentence."""
    assert isinstance(error, RpcError), error
    assert error.kind == kind, error
    assert error.code == error_codes()[kind], error
    assert error.message.strip()


@cache
def error_codes() -> dict[str, int]:
    """Return the table of errors in ``docs/protocol.md``: kind to code."""
    text = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    return {kind: int(code) for code, kind in re.findall(r"^\| (-\d+) \| `(\w+)`", text, re.M)}


@dataclass
class Sandbox:
    """A folder with a configuration, a start script and the data of the hosts started from it.

    ``extensions``: the ids allowed to call; ``limits``: ``map_size`` and ``max_size`` in bytes, as
    the configuration file has them. Change them before the first host is started, or call
    ``write`` again.
    """

    folder: Path
    data: Path = field(init=False)
    extensions: list[str] = field(default_factory=lambda: [EXTENSION_ID])
    limits: dict[str, int] = field(default_factory=dict)
    libraries: list[str] = field(default_factory=lambda: ["lmdb", "msgspec"])
    interpreter_flags: list[str] = field(default_factory=lambda: ["-I", "-S", "-X", "utf8"])

    def __post_init__(self) -> None:
        self.data = self.folder / "data"
        self.write()

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "config.json"

    def write(self) -> None:
        """Write the configuration, the start script and the folder of libraries."""
        libraries = self.folder / "libraries"
        libraries.mkdir(parents=True, exist_ok=True)
        for name in self.libraries:
            package = Path(package_folder(name))
            # Wheels may keep shared libraries in a folder beside the package.
            for folder in (package, *package.parent.glob(f"{_WHEELS.get(name, name)}.libs")):
                link = libraries / folder.name
                if not link.is_symlink():
                    link.symlink_to(folder, target_is_directory=True)
        config = {"version": 1, "data_dir": str(self.data), "extensions": self.extensions}
        self.config.write_text(json.dumps(config | self.limits), encoding="utf-8")
        folders = [str(SOURCE), str(libraries)]
        (self.folder / "start.py").write_text(_START.format(folders=folders), encoding="utf-8")

    @property
    def command(self) -> list[str]:
        """What a manifest's launcher runs, before the browser's own arguments."""
        script = str(self.folder / "start.py")
        return [INTERPRETER, *self.interpreter_flags, script, str(self.config)]

    def host(
        self,
        *,
        arguments: Sequence[str] = (ORIGIN,),
        environment: Mapping[str, str] | None = None,
    ) -> SidekeepHost:
        """Return a host that is not started yet: use it with ``async with``."""
        return SidekeepHost(self.command, arguments=arguments, environment=environment)

    @asynccontextmanager
    async def open(
        self, profile: str = "profile", *, parts: int | None = WINDOW, client: str | None = None
    ) -> AsyncIterator[SidekeepHost]:
        """Start a host, say hello, and close it at the end of the block."""
        async with self.host() as host:
            await host.hello(profile, parts=parts, client=client)
            yield host

    def store_file(self) -> Path:
        """Return the one data file below the data folder."""
        (found,) = self.data.rglob("store.mdb")
        return found


def package_folder(name: str) -> str:
    """Return the folder of an importable package, without importing it."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.submodule_search_locations, f"{name} is not installed"
    return str(Path(spec.submodule_search_locations[0]).resolve())
