"""A throw-away native host, well behaved or not, that the harness itself is tested against.

Run as ``python example_host.py <folder that holds the tests package> <origin>``. Its methods are
named after what they do; the bad ones do exactly the thing the harness must notice.
"""

from __future__ import annotations

import itertools
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])

from tests.harness.parts import PartJoiner, split_message

OUT = sys.stdout.buffer
NUMBERS = itertools.count(1)


def write(body: bytes) -> None:
    """Write one frame."""
    OUT.write(struct.pack("=I", len(body)) + body)
    OUT.flush()


def send(value: Any) -> None:
    """Write one value as a frame."""
    write(json.dumps(value).encode())


def frames() -> Iterator[bytes]:
    """Yield the bodies of the frames received, until the end of input."""
    while header := sys.stdin.buffer.read(4):
        yield sys.stdin.buffer.read(struct.unpack("=I", header)[0])


def misbehave(method: str, params: Any, number: int) -> None:
    """Do the bad thing that ``method`` names."""
    answer = {"jsonrpc": "2.0", "id": number, "result": params}
    if method == "print":
        OUT.write(b"hello from a print statement\n")
        OUT.flush()
    elif method == "raw":
        write(params.encode("utf-8").decode("unicode_escape").encode("latin-1"))
    elif method == "big":
        write(b'"' + b"x" * (params - 2) + b'"')
    elif method == "half":
        OUT.write(struct.pack("=I", 100) + b"only this")
        OUT.flush()
        sys.exit(0)
    elif method == "twice":
        send(answer)
        send(answer)
    elif method == "array":
        send([answer])
    elif method == "stubborn":
        send(answer)
        sys.stdin.buffer.read()
        time.sleep(60)
    elif method == "orphan":
        subprocess.Popen(["/bin/sleep", "60"], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        send(answer)
    elif method == "flood":
        for body in split_message({"jsonrpc": "2.0", "id": number, "result": "x" * params}, 1):
            write(body)
    else:
        error = {"code": -32601, "message": "no such method", "data": {"kind": "methodNotFound"}}
        send({"jsonrpc": "2.0", "id": number, "error": error})


def answer(message: Any) -> Any:
    """Return the response to a request, or ``None`` if it was dealt with in another way."""
    method, params, number = message["method"], message.get("params"), message.get("id")
    if method == "echo":
        result = params
    elif method == "arguments":
        result = {"argv": sys.argv[2:], "environment": dict(os.environ), "folder": str(Path.cwd())}
    elif method == "burn":
        until = time.process_time() + params
        while time.process_time() < until:
            pass
        result = None
    elif method == "hold":
        misbehave.held = b"x" * params  # type: ignore[attr-defined]
        result = None
    elif method == "exit":
        sys.stderr.write("leaving\n")
        sys.exit(params)
    elif method == "fill":
        result = "x" * params
    elif number is None:
        send({"jsonrpc": "2.0", "method": "heard", "params": message})
        return None
    else:
        misbehave(method, params, number)
        return None
    return {"jsonrpc": "2.0", "id": number, "result": result}


def reply(response: Any) -> None:
    """Send a response, in parts if it is big; acknowledgements are not waited for."""
    if len(json.dumps(response)) > 300_000 and "fill" not in sys.argv[3:]:
        for body in split_message(response, next(NUMBERS)):
            write(body)
    else:
        send(response)


def main() -> None:
    """Serve until the end of input."""
    joiner = PartJoiner()
    for body in frames():
        try:
            value = json.loads(body)
        except ValueError as error:
            failure = {"code": -32700, "message": str(error)}
            send({"jsonrpc": "2.0", "id": None, "error": failure})
            continue
        if isinstance(value, list):
            responses = [answer(message) for message in value if "ack" not in message]
            if responses:
                send([response for response in responses if response])
        elif "part" in value:
            send({"ack": {"of": value["part"]["of"], "i": value["part"]["i"]}})
            if (message := joiner.add(value, body)) and (response := answer(message)):
                reply(response)
        elif "ack" not in value and (response := answer(value)):
            reply(response)


if __name__ == "__main__":
    main()
