"""An extension in which storage libraries run over the stub, as they come from the registry.

The libraries and esbuild are pinned in ``libraries/package.json`` and come with ``npm ci`` there
(``./test.sh --set-up``). One bundle holds them all; the worker and the pages load the same one. Its
first module puts the stub in the place of ``chrome``, as an extension would that adopts it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness.sidekeep_host import ORIGIN, SidekeepHost

from .driver import EXTENSION, Browser

LIBRARIES = Path(__file__).with_name("libraries")

_ESBUILD = LIBRARIES / "node_modules" / ".bin" / "esbuild"
_OPTIONS = [
    "--bundle",
    "--format=esm",
    "--external:/sidekeep/*",
    "--log-level=warning",
    # redux and redux-persist ask for it, as bundlers for the web answer.
    '--define:process.env.NODE_ENV="production"',
]


def write_library_extension(folder: Path) -> Path:
    """Write the extension, with the stub as it lies in the tree and the shipped key; return it."""
    assert _ESBUILD.exists(), "the libraries are missing: run ./test.sh --set-up"
    shutil.copytree(EXTENSION / "sidekeep", folder / "sidekeep")
    shipped = json.loads((EXTENSION / "manifest.json").read_text(encoding="utf-8"))
    manifest = {
        "manifest_version": 3,
        "name": "Libraries",
        "version": "1",
        "key": shipped["key"],
        "permissions": shipped["permissions"],
        "background": {"service_worker": "service_worker.js", "type": "module"},
    }
    files = {
        "manifest.json": json.dumps(manifest),
        "service_worker.js": "import './libraries.js';",
        "page.html": "<!doctype html><script type=module src=libraries.js></script>",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    subprocess.run(
        [_ESBUILD, LIBRARIES / "libraries.js", *_OPTIONS, f"--outfile={folder / 'libraries.js'}"],
        check=True,
    )
    return folder


def pinned_versions() -> dict[str, str]:
    """Return the versions that are pinned, by name of the library."""
    package = json.loads((LIBRARIES / "package.json").read_text(encoding="utf-8"))
    versions = package["devDependencies"]
    assert isinstance(versions, dict)
    return versions


class Stored:
    """What lies in the files of both areas, by way of a host process that no stub talks to."""

    def __init__(self, host: SidekeepHost) -> None:
        self._host = host

    async def local(self) -> dict[str, Any]:
        """Return all items of the local area."""
        return await self._host.get()

    async def session(self) -> dict[str, Any]:
        """Return all items of the session area."""
        result = await self._host.call("storage.get", {"area": "session", "keys": None})
        items = result["items"]
        assert isinstance(items, dict)
        return items

    async def set_local(self, items: dict[str, Any]) -> None:
        """Change the local area behind the browser's back."""
        await self._host.set(items)


@asynccontextmanager
async def reading(browser: Browser) -> AsyncIterator[Stored]:
    """Start one more host on the files of the browser's profile and of its present run."""
    profile = await browser.worker.evaluate("""async () => {
      await keep.storage.session.getKeys();   // both tokens are made
      return (await realStorage.local.get('sidekeep:profile'))['sidekeep:profile'];
    }""")
    run = await browser.worker.evaluate(
        "realStorage.session.get('sidekeep:run').then((found) => found['sidekeep:run'])"
    )
    host = SidekeepHost(
        [browser.installation.launcher],
        arguments=[ORIGIN],
        environment={"PATH": "/usr/bin:/bin", "HOME": str(browser.installation.home)},
    )
    async with host:
        await host.hello(profile, run=run)
        yield Stored(host)
