"""Starts a host the way a browser does and sees whether it works.

Rules of this module: it believes nothing but what came back over standard output; the environment
is empty but for HOME and a bare PATH, the working folder is ``/``, the arguments are the browser's.
It uses a profile of its own, so that no user's data is touched, and removes that profile's folder.

Frames are those of docs/protocol.md: a 32-bit length in native byte order and UTF-8 JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sidekeep.errors import SidekeepError, UnavailableError
from sidekeep.ops.ids import CHROMIUM, family_of, origin

PROFILE = "install-check"
_KEY = "sidekeep-install-check"
_LARGEST_FRAME = 1_048_576


@dataclass(frozen=True)
class Caller:
    """Who starts the host: an extension in a browser, and the manifest it was found by."""

    extension: str
    manifest: Path

    def arguments(self) -> list[str]:
        """Return the arguments its browser passes: origin, or manifest path and add-on id."""
        if family_of(self.extension) == CHROMIUM:
            return [origin(self.extension)]
        return [str(self.manifest), self.extension]


class Conversation:
    """One running host and the requests to it; every wait is bounded by ``timeout`` seconds."""

    def __init__(self, launcher: Path, arguments: list[str], home: Path, timeout: float) -> None:
        self._timeout = timeout
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the host
        self._process = subprocess.Popen(  # noqa: S603 - exactly what a browser starts
            [str(launcher), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
            cwd="/",
        )

    def call(self, *requests: tuple[str, dict[str, object]]) -> list[Any]:
        """Send the requests as one batch and return their results in order.

        Raises ``UnavailableError`` with what went wrong in words.
        """
        batch = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(requests)
        ]
        body = json.dumps(batch).encode()
        pipe = self._process.stdin
        if pipe is None:
            raise UnavailableError("The host has no standard input.")
        try:
            pipe.write(struct.pack("=I", len(body)) + body)
            pipe.flush()
        except BrokenPipeError as error:
            raise self._failure("the host ended before it read anything") from error
        results: dict[int, Any] = {}
        deadline = time.monotonic() + self._timeout
        while len(results) < len(requests):
            for answer in self._read_frame(deadline):
                if not isinstance(answer, dict) or "error" in answer:
                    problem = answer.get("error", {}) if isinstance(answer, dict) else {}
                    raise self._failure(f"the host answered: {problem.get('message', answer)}")
                results[answer.get("id", -1)] = answer.get("result")
        return [results.get(number) for number in range(len(requests))]

    def _read_frame(self, deadline: float) -> list[Any]:
        (length,) = struct.unpack("=I", self._read(4, deadline))
        if length > _LARGEST_FRAME:
            raise self._failure("standard output carries something that is no frame")
        body = self._read(length, deadline)
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise self._failure("a frame does not hold JSON") from error
        return answer if isinstance(answer, list) else [answer]

    def _read(self, count: int, deadline: float) -> bytes:
        pipe = self._process.stdout
        if pipe is None:
            raise UnavailableError("The host has no standard output.")
        parts: list[bytes] = []
        while count:
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failure(f"no answer within {self._timeout:g} seconds")
            piece = os.read(pipe.fileno(), count)
            if not piece:
                raise self._failure("the host ended without an answer")
            parts.append(piece)
            count -= len(piece)
        return b"".join(parts)

    def _failure(self, reason: str) -> UnavailableError:
        """Return the error, with the exit code and the host's own last line where there is one."""
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=0.5)
        if code is not None:
            reason += f" (exit code {code})"
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        if lines:
            reason += f": {lines[-1]}"
        return UnavailableError(reason)

    def kill(self) -> None:
        """End the host with SIGKILL, as a crash would."""
        self._process.kill()
        self._close()

    def end(self) -> None:
        """Close the host's standard input; it has to leave by itself with exit code 0."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            code = self._process.wait(timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            raise self._failure("the host did not leave at the end of input") from error
        if code != 0:
            raise self._failure("the host ended badly")
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._close()


def round_trip(
    launcher: Path, caller: Caller, home: Path, data_dir: Path, timeout: float = 15.0
) -> None:
    """Prove the host behind ``launcher``: set a value, kill it, start it again, get the value.

    ``launcher`` is started with ``caller``'s arguments. Raises ``UnavailableError`` with what went
    wrong in words. Whatever happens, the profile used for it is removed from ``data_dir``.
    """
    token = secrets.token_hex(8)
    hello = ("host.hello", {"protocol": 1, "profile": PROFILE})
    arguments = caller.arguments()
    with _profile_removed(data_dir) as files:
        with Conversation(launcher, arguments, home, timeout) as first:
            _, _, status = first.call(
                hello,
                ("storage.set", {"area": "local", "items": {_KEY: token}}),
                ("host.status", {}),
            )
            if isinstance(status, dict) and isinstance(status.get("file"), str):
                files.append(Path(status["file"]))
            first.kill()
        with Conversation(launcher, arguments, home, timeout) as second:
            _, found = second.call(hello, ("storage.get", {"area": "local", "keys": _KEY}))
            if found.get("items") != {_KEY: token}:
                raise UnavailableError("a stored value was gone after the host was killed")
            second.call(("storage.remove", {"area": "local", "keys": _KEY}))
            second.end()


@contextlib.contextmanager
def _profile_removed(data_dir: Path) -> Iterator[list[Path]]:
    """Remove the folders of the store files named in the yielded list, inside ``data_dir`` only."""
    files: list[Path] = []
    try:
        yield files
    finally:
        root = data_dir.resolve()
        for file in files:
            profile = file.resolve().parent
            # <data dir>/<extension>/<profile>: nothing else is ever removed here.
            if profile.parent.parent == root:
                shutil.rmtree(profile, ignore_errors=True)
                with contextlib.suppress(OSError):
                    profile.parent.rmdir()


def outcome(launcher: Path, caller: Caller, home: Path, data_dir: Path) -> str:
    """Return an empty string if the round trip worked, else why it did not."""
    try:
        round_trip(launcher, caller, home, data_dir)
    except SidekeepError as error:
        return error.message
    except OSError as error:
        return f"the launcher cannot be started: {error.strerror}"
    return ""
