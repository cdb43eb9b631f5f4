"""The end of input ends the process in time, with the right code, whatever it is doing.

The processes here are children: a channel that is not told ``finished`` ends its process.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.wire.caller import frame, request, text_of

HOST = Path(__file__).parents[2] / "host"

LOOP = """
import sys
sys.path.insert(0, {host!r})
from sidekeep.wire.channel import Channel
channel = Channel(0, 1)
{before}
while (calls := channel.receive()) is not None:
    for call in calls:
        if call.method == "spin":
            while True:
                pass
        if call.method == "sleep":
            import time
            time.sleep(60)
        if call.method == "flood":
            channel.reply(call, b'"' + b"x" * 1_000_000 + b'"')
            channel.flush()
        channel.reply(call, b"{{}}")
    channel.flush()
channel.finished()
sys.exit(channel.exit_code)
"""

LIMIT = 2.0
"""Seconds from the end of input to that of the process, after which the browsers kill it.

The protocol promises 1.5; a test machine may be busy with other things for the rest.
"""


class Child:
    """A process with a channel on its standard descriptors."""

    def __init__(self, before: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", LOOP.format(host=str(HOST), before=before)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.send(text_of(request("first")))
        assert self.read() == b'{"jsonrpc":"2.0","id":"first","result":{}}'

    def send(self, body: bytes) -> None:
        self.send_bytes(frame(body))

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def read(self) -> bytes:
        assert self.process.stdout is not None
        (length,) = struct.unpack("=I", self.process.stdout.read(4))
        found = b""
        while len(found) < length:
            found += self.process.stdout.read(length - len(found))
        return found

    def end(self, limit: float = 10) -> tuple[int, bytes, bytes]:
        """End the input; return the exit code and what came on both outputs.

        ``limit``: seconds within which the process must be gone.
        """
        assert self.process.stdin is not None
        self.process.stdin.close()
        before = time.monotonic()
        code = self.process.wait(10)
        assert time.monotonic() - before < limit
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with self.process.stdout as written, self.process.stderr as complaints:
            return code, written.read(), complaints.read()


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    "data", [b"", b"\x05\x00", frame(text_of(request(1)))[:-1], struct.pack("=I", 1 << 26)]
)
def test_end_between_frames_and_inside_one_is_clean(data: bytes) -> None:
    child = Child()
    child.send_bytes(data)
    assert child.end() == (0, b"", b"")


def test_calls_before_the_end_are_answered() -> None:
    child = Child()
    for n in range(100):
        child.send(text_of(request(n)))
    code, written, complaints = child.end()
    assert (code, complaints) == (0, b"")
    assert written.count(b'"result":{}') == 100


@pytest.mark.parametrize("method", ["spin", "sleep"])
def test_end_while_the_main_thread_is_busy_ends_the_process(method: str) -> None:
    child = Child()
    child.send(text_of(request(1, method)))
    child.send(text_of(request(2)))
    time.sleep(0.1)
    assert child.end(LIMIT) == (0, b"", b"")


def test_end_while_the_main_thread_waits_for_a_reader_ends_the_process() -> None:
    child = Child()
    child.send(text_of(request(1, "flood")))
    time.sleep(0.3)
    code, written, complaints = child.end(LIMIT)
    assert (code, complaints) == (0, b"")
    assert len(written) < 1_000_000


def test_last_words_run_before_a_forced_end_and_their_faults_do_not_stop_it() -> None:
    child = Child(
        "import os\n"
        "channel.last_words.append(lambda: os.write(2, b'last words'))\n"
        "channel.last_words.append(lambda: 1 / 0)\n"
        "channel.exit_code = 3"
    )
    child.send(text_of(request(1, "spin")))
    code, _, complaints = child.end(LIMIT)
    assert code == 3
    assert complaints == b"last words"


def test_last_words_are_not_spoken_at_a_calm_end() -> None:
    child = Child("import os\nchannel.last_words.append(lambda: os.write(2, b'last words'))")
    assert child.end() == (0, b"", b"")


def test_lost_framing_is_answered_and_ends_with_code_2_though_the_input_stays_open() -> None:
    child = Child()
    child.send_bytes(struct.pack("=I", 67_108_865) + b"x" * 100)
    assert b'"kind":"tooLarge"' in child.read()
    assert child.process.wait(LIMIT) == 2
    assert child.end()[1:] == (b"", b"")


def test_half_closed_socket_is_an_end() -> None:
    import socket

    here, there = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", LOOP.format(host=str(HOST), before="")],
        stdin=there.fileno(),
        stdout=there.fileno(),
    )
    there.close()
    here.sendall(frame(text_of(request(1, "spin"))))
    time.sleep(0.3)
    here.shutdown(socket.SHUT_WR)
    before = time.monotonic()
    assert process.wait(10) == 0
    assert time.monotonic() - before < LIMIT
    here.close()


def test_file_as_input_is_read_to_its_end(tmp_path: Path) -> None:
    source = tmp_path / "frames"
    source.write_bytes(frame(text_of(request(1))) + frame(text_of([request(2)])))
    with source.open("rb") as stream:
        done = subprocess.run(
            [sys.executable, "-I", "-c", LOOP.format(host=str(HOST), before="")],
            stdin=stream,
            capture_output=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 0
    assert done.stdout.count(b'"result":{}') == 2


def test_waiting_uses_no_processor_time() -> None:
    child = Child()
    before = processor_seconds(child.process.pid)
    time.sleep(1.0)
    assert processor_seconds(child.process.pid) - before < 0.1
    assert child.end() == (0, b"", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_a_big_message_is_given_back_when_it_is_quiet() -> None:
    child = Child()
    before = anonymous_bytes(child.process.pid)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"v":[%b]}}'
    child.send(body % b",".join([b'"abcdefgh"'] * 2_000_000))
    assert child.read() == b'{"jsonrpc":"2.0","id":1,"result":{}}'
    child.send(text_of(request(2)))  # the main loop holds on to the last call
    child.read()
    deadline = time.monotonic() + 20
    while anonymous_bytes(child.process.pid) - before > 12 << 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert anonymous_bytes(child.process.pid) - before < 12 << 20
    assert child.end() == (0, b"", b"")


def anonymous_bytes(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")
