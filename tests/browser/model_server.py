"""A server that speaks OpenAI's chat completions as far as a panel needs it, in the test process.

Each request is answered by the next ``Reply`` that the test gave; what was asked is kept in
``requests``. A reply can wait in the middle until the test opens its gate.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONGEST_WAIT_SECONDS = 60


@dataclass
class Reply:
    """An answer in pieces, or a refusal.

    ``gate``: waited for after the first piece, open unless ``held`` made it. ``gone``: the client
    went away before the end. ``status`` and ``error``: of a refusal.
    """

    pieces: list[str] = field(default_factory=list)
    status: int = 200
    error: dict[str, Any] | None = None
    finishes: bool = True
    gate: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    @classmethod
    def held(cls, *pieces: str) -> Reply:
        """Return an answer that stops after its first piece until ``gate`` is set."""
        reply = cls(list(pieces))
        reply.gate.clear()
        return reply


class ModelServer:
    """What was asked, and what will be answered. ``url``: what a person enters in the panel."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.replies: deque[Reply] = deque()
        self.faults: list[str] = []
        self.always: Reply | None = None
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @contextmanager
    def running(self) -> Iterator[ModelServer]:
        """Serve in a thread of its own."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def answers(self, *replies: Reply | str) -> None:
        """Forget what was asked, and give these answers to the next requests."""
        with self.lock:
            self.requests.clear()
            self.always = None
            self.replies = deque(
                Reply([reply]) if isinstance(reply, str) else reply for reply in replies
            )

    def reply_to(self, request: dict[str, Any]) -> Reply:
        """Note a request and return its answer."""
        with self.lock:
            self.requests.append(request)
            if self.replies:
                return self.replies.popleft()
            if self.always is not None:
                return self.always
            self.faults.append(f"nobody expected {json.dumps(request)[:300]}")
            return Reply(status=500, error={"message": "The test expects no such request."})


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer

    def do_OPTIONS(self) -> None:
        self._head(204, {"Access-Control-Allow-Headers": "authorization, content-type"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/v1/chat/completions":
            self.model.faults.append(f"asked at {self.path}")
        reply = self.model.reply_to(json.loads(body))
        try:
            if reply.error is not None:
                self._head(reply.status, {"Content-Type": "application/json"})
                self.wfile.write(json.dumps({"error": reply.error}).encode())
                return
            self._head(200, {"Content-Type": "text/event-stream"})
            self._stream(reply)
        except OSError:  # the client went away
            reply.gone.set()

    def _stream(self, reply: Reply) -> None:
        for number, piece in enumerate(reply.pieces):
            if number == 1:
                self._wait(reply)
            self._event(json.dumps({"choices": [{"delta": {"content": piece}}]}))
        if reply.finishes:
            self._event('{"choices":[{"delta":{},"finish_reason":"stop"}]}')
            self._event("[DONE]")

    def _wait(self, reply: Reply) -> None:
        """Wait for the gate; comments show whether the client still listens."""
        for _ in range(LONGEST_WAIT_SECONDS * 20):
            if reply.gate.wait(0.05):
                return
            self.wfile.write(b": still there\n\n")
        self.model.faults.append("a gate was never opened")

    def _event(self, data: str) -> None:
        self.wfile.write(f"data: {data}\n\n".encode())

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Access-Control-Allow-Origin": "*", **headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on standard error."""
