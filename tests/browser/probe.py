"""An extension for tests of the worker's sleep, in a Chromium that no debugger looks into.

An attached debugger keeps a worker awake, and Playwright attaches to every worker. So this Chromium
is a plain subprocess. A page of the extension fetches commands from a server of the test, calls the
functions that they name, and posts the answers. The worker counts its starts in the real
``chrome.storage.local``, where the page reads them without waking it. An open page, its fetches
and its calls of the browser do not keep a worker awake (the tests would fail if they did).

The same extension runs under Playwright where a test has to stop the worker.
"""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .driver import EXTENSION, FLAGS, Installation, chromium

# Calls what a command names. A command for the worker travels as a message, its first event.
_CALLS = """
export const call = async ({ path, args }) => {
  const steps = path.split('.');
  const name = steps.pop();
  const owner = steps.reduce((object, step) => object[step], globalThis);
  return typeof owner[name] === 'function' ? owner[name](...args) : owner[name];
};
export const outcome = (work) => work.then(
  (value) => ({ value: value ?? null }),
  (error) => ({ error: `${error.kind ?? error.name}: ${error.message}` }),
);
"""

_WORKER = """
import { connect } from './sidekeep/index.js';
import { call, outcome } from './calls.js';

chrome.runtime.onMessage.addListener((message, sender, reply) => {
  if (message.open) chrome.tabs.create({ url: `control.html#${message.open}/` });
  if (keep.siteCache.fromMessage(message, sender)) return false;
  if (message.to !== 'worker') return false;
  outcome(call(message)).then(reply);
  return true;
});

globalThis.keep = connect({ idle: IDLE });
globalThis.copying = connect({ idle: IDLE, siteCache: { byUrl: true } });
globalThis.sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
globalThis.each = (path, all) => Promise.all(all.map((args) => call({ path, args })));
globalThis.work = (milliseconds) => { keep.duringTurn(sleep(milliseconds)); };
globalThis.leak = () => { chrome.tabs.onRemoved.addListener(() => {}); };
navigator.locks.request('starts', async () => {
  const { starts = 0 } = await chrome.storage.local.get('starts');
  await chrome.storage.local.set({ starts: starts + 1 });
});
"""

# What an extension may listen to; each notes that it heard. Added in the first turn, as it must be.
_LISTENING_WORKER = """
import './worker.js';
const note = (what) => navigator.locks.request('heard', async () => {
  const { heard = [] } = await chrome.storage.local.get('heard');
  await chrome.storage.local.set({ heard: [...heard, what] });
});
chrome.tabs.onRemoved.addListener(() => { note('tab'); });
chrome.runtime.onMessage.addListener((message) => { if (message === 'event') note('message'); });
chrome.runtime.onConnect.addListener(() => { note('port'); });
chrome.storage.session.onChanged.addListener(({ event }) => { if (event) note('storage'); });
"""

_PAGE = """
import { call, outcome } from './calls.js';
globalThis.ask = (path, ...args) => chrome.runtime.sendMessage({ to: 'worker', path, args });
globalThis.awake = async () =>
  (await chrome.runtime.getContexts({ contextTypes: ['BACKGROUND'] })).length > 0;
globalThis.starts = async () => (await chrome.storage.local.get('starts')).starts ?? 0;
const server = location.hash.slice(1);
while (server) {
  const response = await fetch(`${server}next`);
  if (response.status !== 200) continue;
  const answer = await outcome(call(await response.json()));
  await fetch(`${server}answer`, { method: 'POST', body: JSON.stringify(answer) });
}
"""

# Chromium opens no page of an extension that its command line names, so a page of the server does.
_CONTENT = """
chrome.runtime.sendMessage(
  location.pathname === '/control'
    ? { open: location.origin }
    : { type: 'sidekeep:site', source: 'test', data: document.title },
);
"""


def write_extension(folder: Path, *, idle: int, listening: bool = False, tabs: bool = True) -> Path:
    """Write the extension, with the stub as it lies in the tree and the shipped key.

    ``idle``: milliseconds after which the port is closed. ``listening``: the worker listens for
    good. ``tabs``: whether it may know the URLs of tabs; without it no command reaches a plain
    subprocess.
    """
    shutil.copytree(EXTENSION / "sidekeep", folder / "sidekeep")
    shipped = json.loads((EXTENSION / "manifest.json").read_text(encoding="utf-8"))
    worker = "listening_worker.js" if listening else "worker.js"
    manifest = {
        "manifest_version": 3,
        "name": "Probe",
        "version": "1",
        "key": shipped["key"],
        "permissions": ["nativeMessaging", "storage"],
        "background": {"service_worker": worker, "type": "module"},
        "content_scripts": [
            {
                "matches": ["http://127.0.0.1/control", "http://127.0.0.1/site/*"],
                "js": ["content.js"],
            }
        ],
        **({"host_permissions": ["http://127.0.0.1/*"]} if tabs else {}),
    }
    files = {
        "manifest.json": json.dumps(manifest),
        "worker.js": _WORKER.replace("IDLE", str(idle)),
        "listening_worker.js": _LISTENING_WORKER,
        "calls.js": _CALLS,
        "content.js": _CONTENT,
        "control.js": _PAGE,
        "control.html": "<script type=module src=control.js></script>",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def flags(extension: Path) -> list[str]:
    """Return the flags of a Chromium with this extension."""
    both = [f"--disable-extensions-except={extension}", f"--load-extension={extension}"]
    return [*FLAGS, *both]


class _Handler(BaseHTTPRequestHandler):
    """Hands out commands, takes answers, and serves plain pages."""

    server: Server

    def do_GET(self) -> None:
        body = b"<title>a page</title>"
        status = 200
        if self.path == "/next":
            try:
                body = json.dumps(self.server.commands.get(timeout=5)).encode()
            except queue.Empty:
                status, body = 204, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answers.put(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


class Server(ThreadingHTTPServer):
    """The test's end of the commands."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commands: queue.Queue[dict[str, Any]] = queue.Queue()
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that was killed while it was answered."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address, with a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}/"


class Probe:
    """A running Chromium that is asked through a page of its extension."""

    def __init__(self, server: Server, process: subprocess.Popen[bytes]) -> None:
        self.server = server
        self.process = process

    def page(self, path: str, *args: Any) -> Any:
        """Call what ``path`` names in the page, and return what it gives."""
        self.server.commands.put({"path": path, "args": args})
        answer = self.server.answers.get(timeout=30)
        assert "error" not in answer, f"{path}: {answer['error']}"
        return answer["value"]

    def worker(self, path: str, *args: Any) -> Any:
        """Call what ``path`` names in the worker: the message wakes it."""
        answer = self.page("ask", path, *args)
        assert "error" not in answer, f"{path}: {answer['error']}"
        return answer["value"]

    def until_asleep(self, seconds: float) -> float:
        """Wait until the worker has stopped; return after how many seconds."""
        began = time.monotonic()
        while self.page("awake"):
            assert time.monotonic() - began < seconds, f"the worker was awake after {seconds} s"
            time.sleep(0.5)
        return time.monotonic() - began


@contextmanager
def probe(profile: Path, extension: Path) -> Iterator[Probe]:
    """Run a Chromium without a debugger on a profile; kill it (SIGKILL) at the end."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [chromium(), *flags(extension), f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        [*command, f"{server.url}control"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Probe(server, process)
    finally:
        process.kill()
        process.wait()
        server.shutdown()
        server.server_close()


def fresh_profile(installation: Installation, folder: Path) -> Path:
    """Make a browser profile of its own, for which the installed host is registered, too."""
    folder.mkdir(parents=True)
    hosts = "NativeMessagingHosts"
    (folder / hosts).symlink_to(installation.profile / hosts, target_is_directory=True)
    return folder
