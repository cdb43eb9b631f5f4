"""A Chromium with the shipped extension, and the host that install.sh registered for it.

Rules of this module:

* The extension is loaded as it lies in ``extension_stub/``; nothing is added for the tests.
* The host is the one from the manifest that install.sh wrote, in a HOME of its own. Hosts that
  misbehave on purpose are registered beside it under names of their own.
* Host processes are found by the folder they were installed in, so only hosts of this run are
  counted or killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Page, Playwright, Worker

from tests.harness.sidekeep_host import EXTENSION_ID, ORIGIN, ROOT, SidekeepHost

HOST = "org.sidekeep.host"
EXTENSION = ROOT / "extension_stub"

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Looks over the stub's shoulder at its native ports: what it posts, and which answers it gets.
_SPY = """
() => {
  const spy = { frames: [], ports: [], swallow: () => false };
  const connectNative = chrome.runtime.connectNative.bind(chrome.runtime);
  chrome.runtime.connectNative = (name) => {
    const port = connectNative(name);
    spy.ports.push(port);
    return {
      postMessage: (message) => { spy.frames.push(message); port.postMessage(message); },
      disconnect: () => port.disconnect(),
      onDisconnect: port.onDisconnect,
      onMessage: {
        addListener: (listener) => port.onMessage.addListener((message) => {
          const kept = [message].flat().filter((element) => !spy.swallow(element));
          if (kept.length > 0) listener(Array.isArray(message) ? kept : kept[0]);
        }),
      },
    };
  };
  globalThis.spy = spy;
}
"""

_CONNECT = """
async (options) => {
  const stub = await import('/sidekeep/index.js');
  globalThis.connect = stub.connect;
  globalThis.keep = stub.connect(options);
}
"""


def chromium() -> str:
    """Return the path of the Chromium to drive; a missing one is a failure, not a skip."""
    named = os.environ.get("SIDEKEEP_CHROMIUM") or shutil.which("chromium")
    assert named, "Chromium was not found: install it, or set SIDEKEEP_CHROMIUM"
    return named


async def until(condition: Callable[[], bool], what: str, seconds: float = 15) -> None:
    """Wait until ``condition`` holds; fail with ``what`` was awaited after ``seconds``."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"waited {seconds} s for {what}"
        await asyncio.sleep(0.02)


async def until_true(page: Page, expression: str, seconds: float = 15) -> None:
    """Wait until ``expression`` is true in the page.

    Playwright's own wait evaluates in the page again and again, which the extension's content
    security policy forbids.
    """
    end = asyncio.get_running_loop().time() + seconds
    while not await page.evaluate(expression):
        assert asyncio.get_running_loop().time() < end, f"waited {seconds} s for {expression}"
        await asyncio.sleep(0.02)


@dataclass
class Installation:
    """What install.sh put into a fresh HOME, and a browser profile that it registered the host for.

    ``home``: the HOME; ``profile``: Chromium's user-data-dir; ``data``: the data folder.
    """

    folder: Path
    home: Path = field(init=False)
    profile: Path = field(init=False)
    data: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.profile = self.folder / "browser"
        self.data = self.folder / "data"

    def install(self) -> None:
        """Run install.sh as a person would; it ends with its own round trip."""
        self.home.mkdir(parents=True)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("XDG_")
        }
        run = subprocess.run(
            [ROOT / "install.sh", "--user-data-dir", self.profile, "--data-dir", self.data],
            env=environment | {"HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"install.sh failed:\n{run.stdout}\n{run.stderr}"

    def manifest(self, name: str = HOST) -> Path:
        """Return where Chromium looks for the manifest of a host."""
        return self.profile / "NativeMessagingHosts" / f"{name}.json"

    @property
    def launcher(self) -> str:
        """The program that the registered manifest names."""
        path = json.loads(self.manifest().read_text(encoding="utf-8"))["path"]
        assert isinstance(path, str)
        return path

    def register(self, name: str, program: str | Path) -> None:
        """Register another host of the extension."""
        manifest = {
            "name": name,
            "description": "A host for tests",
            "path": str(program),
            "type": "stdio",
            "allowed_origins": [ORIGIN],
        }
        self.manifest(name).write_text(json.dumps(manifest), encoding="utf-8")

    def program(self, name: str, source: str) -> Path:
        """Write an executable Python script, to be registered as a host."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
        path.chmod(0o700)
        return path

    def hosts(self) -> list[int]:
        """Return the process ids of all running hosts of this installation."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                mine = any(word.startswith(os.fsencode(self.home)) for word in words)
                if mine and ORIGIN.encode() in words:
                    found.append(int(entry.name))
        return found

    @asynccontextmanager
    async def second_process(self, profile: str) -> AsyncIterator[SidekeepHost]:
        """Start one more host by the registered launcher and open the store of ``profile``."""
        host = SidekeepHost(
            [self.launcher],
            arguments=[ORIGIN],
            environment={"PATH": "/usr/bin:/bin", "HOME": str(self.home)},
        )
        async with host:
            await host.hello(profile)
            yield host


class Browser:
    """A running Chromium with the extension. Start it with ``Browser.start``."""

    def __init__(
        self, playwright: Playwright, context: BrowserContext, installation: Installation
    ) -> None:
        self.playwright = playwright
        self.context = context
        self.installation = installation
        self.worker: Worker
        self.faults: list[str] = []
        self._home: Page
        self._control: CDPSession

    @classmethod
    async def start(
        cls,
        playwright: Playwright,
        installation: Installation,
        extension: Path = EXTENSION,
        *,
        without: Sequence[str] = (),
    ) -> Browser:
        """Start Chromium on the installation's profile and wait for the extension's worker.

        ``without``: flags that Playwright sets of itself and that are not to be set.
        """
        load = [f"--disable-extensions-except={extension}", f"--load-extension={extension}"]
        context = await playwright.chromium.launch_persistent_context(
            installation.profile,
            executable_path=chromium(),
            headless=False,
            args=[*FLAGS, *load],
            ignore_default_args=list(without),
        )
        browser = cls(playwright, context, installation)
        workers = context.service_workers
        browser.worker = workers[0] if workers else await context.wait_for_event("serviceworker")
        assert browser.worker.url == f"chrome-extension://{EXTENSION_ID}/service_worker.js"
        browser._home = context.pages[0]
        await browser._home.goto(f"{ORIGIN}manifest.json")
        browser._control = await context.new_cdp_session(browser._home)
        await browser._control.send("ServiceWorker.enable")
        return browser

    async def page(
        self, *, options: dict[str, Any] | None = None, spy: bool = False, connect: bool = True
    ) -> Page:
        """Open a page of the extension that runs nothing of its own, with ``keep`` connected.

        ``options`` go to ``connect``. With ``spy``, ``spy.frames`` holds what the stub posts,
        ``spy.ports`` its native ports, and what ``spy.swallow`` accepts never reaches the stub.
        """
        page = await self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        await page.goto(f"{ORIGIN}manifest.json")
        if spy:
            await page.evaluate(_SPY)
        if connect:
            await page.evaluate(_CONNECT, options or {})
        return page

    async def token(self) -> str:
        """Return the token of the browser profile, as the stub keeps it."""
        found = await self.worker.evaluate("chrome.storage.local.get('sidekeep:profile')")
        token = found["sidekeep:profile"]
        assert isinstance(token, str)
        return token

    async def stop_worker(self) -> None:
        """Stop the worker as the browser does when it is idle, and see that it is gone."""
        for _ in range(500):
            if not await self.worker_runs():
                return
            await self._control.send("ServiceWorker.stopAllWorkers")
            await asyncio.sleep(0.02)
        raise AssertionError("the worker did not stop")

    async def wake_worker(self) -> Worker:
        """Send the worker an event, which starts it."""
        await self._home.evaluate("""async () => {
          let worker; // none for a moment after the start of the browser
          while (!(worker = (await navigator.serviceWorker.getRegistration())?.active)) {
            await new Promise((done) => setTimeout(done, 10));
          }
          worker.postMessage('wake');
        }""")
        for _ in range(500):
            if await self.worker_runs():
                return self.worker
            await asyncio.sleep(0.01)
        raise AssertionError("the worker did not start")

    async def worker_runs(self) -> bool:
        """Return whether the worker runs."""
        targets = await self._control.send("Target.getTargets")
        return any(target["type"] == "service_worker" for target in targets["targetInfos"])

    async def host_ended(self, pid: int, seconds: float = 5) -> None:
        """Wait until a host process is gone."""
        await until(lambda: pid not in self.installation.hosts(), f"host {pid} to end", seconds)

    async def close(self) -> None:
        """Close the browser; a worker that was stopped would keep Playwright waiting for it."""
        if not self._home.is_closed():  # a reload of the extension closes it
            await self.wake_worker()
        await self.context.close()


def kill(pid: int) -> None:
    """Send SIGKILL to one host."""
    os.kill(pid, signal.SIGKILL)
