"""The harness measures what it says it measures, and notices what a host does wrong."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Call, HostGoneError, NativeHost, RpcError, RpcHost, ViolationError

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-I", str(Path(__file__).with_name("example_host.py")), str(ROOT)]
ORIGIN = "chrome-extension://abcdefghijklmnopabcdefghijklmnop/"


def example() -> RpcHost:
    return RpcHost(COMMAND, arguments=[ORIGIN])


async def expect_violation(method: str, params: Any, wanted: str) -> None:
    host = await example().__aenter__()
    call = asyncio.create_task(host.call(method, params, timeout=1))
    await asyncio.gather(call, return_exceptions=True)
    with pytest.raises(ViolationError, match=wanted):
        await host.close()


async def test_host_is_started_as_a_browser_would() -> None:
    async with example() as host:
        seen = await host.call("arguments")
    assert seen["argv"] == [ORIGIN]
    assert seen["folder"] == "/"
    assert {"PATH", "HOME"} <= set(seen["environment"]) <= {"PATH", "HOME", "LC_CTYPE"}


async def test_end_of_input_ends_the_host_and_its_exit_is_measured() -> None:
    host = await RpcHost.start(COMMAND, arguments=[ORIGIN])
    await host.call("burn", 0.2)
    assert host.cpu_seconds() >= 0.2
    exit = await host.close()
    assert (exit.code, exit.signal) == (0, None)
    assert exit.cpu >= 0.2
    assert exit.after_input is not None
    assert 0 <= exit.after_input < 2


async def test_exit_code_and_standard_error_are_seen() -> None:
    async with example() as host:
        with pytest.raises(HostGoneError, match="leaving"):
            await host.call("exit", 3)
        exit = await host.wait()
    assert exit.code == 3
    assert exit.after_input is None


async def test_killed_host_settles_calls_with_its_signal() -> None:
    async with example() as host:
        call = asyncio.create_task(host.call("burn", 60))
        await asyncio.sleep(0.1)
        host.kill()
        with pytest.raises(HostGoneError):
            await call
        assert (await host.wait()).signal == signal.SIGKILL


async def test_stopped_host_answers_after_it_is_resumed() -> None:
    async with example() as host:
        host.stop()
        call = asyncio.create_task(host.call("echo", 1))
        done, _ = await asyncio.wait({call}, timeout=0.2)
        assert not done
        host.resume()
        assert await call == 1


async def test_anonymous_memory_follows_what_the_host_holds() -> None:
    async with example() as host:
        before = host.memory().anonymous
        async with host.sampled_peak() as peak:
            await host.call("hold", 32 << 20)
            await asyncio.sleep(0.1)  # longer than the interval between two samples
        assert host.memory().anonymous - before >= 32 << 20
        assert peak.anonymous - before >= 32 << 20
        assert peak.samples > 0


async def test_batch_gives_results_and_errors_in_order_of_the_calls() -> None:
    async with example() as host:
        first, second = await host.batch([Call("echo", [1]), Call("echo", {"é": "😀"})])
        assert (first, second) == ([1], {"é": "😀"})
        with pytest.raises(RpcError) as caught:
            await host.call("nothing")
    assert (caught.value.code, caught.value.kind) == (-32601, "methodNotFound")


async def test_notifications_are_kept() -> None:
    async with example() as host:
        await host.notify("something", {"a": 1})
        await host.until(lambda: bool(host.notifications))
    assert host.notifications[0]["method"] == "heard"


async def test_raw_bytes_can_be_split_anywhere() -> None:
    async with example() as host:
        body = '{"jsonrpc":"2.0","id":"raw","method":"echo","params":"é"}'.encode()
        frame = len(body).to_bytes(4, sys.byteorder) + body
        await host.send_split(frame, range(1, len(frame)), delay=0.001)
        assert (await host.unclaimed())["result"] == "é"
        assert (await host.exchange(b"{"))["error"]["code"] == -32700


async def test_slow_reader_gets_the_whole_reply() -> None:
    async with RpcHost(COMMAND, arguments=[ORIGIN, "fill"]) as host:
        host.pause_reading()
        call = asyncio.create_task(host.call("fill", 500_000))
        await asyncio.sleep(0.3)
        assert not call.done()
        host.resume_reading(chunk=1000)
        assert await call == "x" * 500_000
    assert host.largest_frame > 500_000


async def test_big_messages_travel_in_parts_both_ways() -> None:
    async with example() as host:
        host.enable_parts(4)
        value = {"é" * 40_000: "😀" * 400_000, "list": ["\x00" * 20_000, 5, {"deep": "a" * 70_000}]}
        assert await host.call("echo", value) == value
        small, big = await host.batch([Call("echo", 1), Call("echo", "b" * 300_000)])
        assert (small, big) == (1, "b" * 300_000)
    assert host.largest_frame < 600_000
    assert host.acks


async def test_window_bounds_what_is_sent_unacknowledged() -> None:
    async with example() as host:
        host.enable_parts(2)
        host.stop()
        call = asyncio.create_task(host.call("echo", "c" * 3_000_000))
        await asyncio.sleep(0.2)
        assert host.in_flight <= 2
        host.resume()
        assert await call == "c" * 3_000_000


async def test_any_host_can_be_driven_without_json_rpc() -> None:
    async with NativeHost(COMMAND, arguments=[ORIGIN]) as host:
        await host.send_frame(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":1}')
        assert await host.receive() == {"jsonrpc": "2.0", "id": 1, "result": 1}
        host.kill()
        with pytest.raises(HostGoneError):
            await host.receive()


async def test_text_on_standard_output_is_noticed() -> None:
    await expect_violation("print", None, "claims 1819043176 bytes.*hello from a print")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("nonsense", "not JSON"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "beyond a double"),
        ('{"a": 1, "a": 2}', "stands twice"),
        (r'"\\ud83d"', "surrogate"),
        (r'"\xff"', "UTF-8"),
        ('{"jsonrpc": "2.0", "id": 1}', "either result or error"),
        ('{"id": 1, "result": 1}', "no JSON-RPC"),
        ("[]", "empty array"),
    ],
)
async def test_reply_that_is_not_strict_is_noticed(text: str, wanted: str) -> None:
    await expect_violation("raw", text, wanted)


async def test_frame_above_the_limit_is_noticed_and_one_at_it_is_not() -> None:
    await expect_violation("big", (1 << 20) + 1, "claims 1048577 bytes")
    async with NativeHost(COMMAND, arguments=[ORIGIN]) as host:
        await host.send_frame(b'{"jsonrpc":"2.0","id":1,"method":"big","params":1048576}')
        assert len(await host.receive()) == (1 << 20) - 2


async def test_output_that_ends_inside_a_frame_is_noticed() -> None:
    await expect_violation("half", None, "ends inside a frame")


async def test_second_response_to_one_request_is_noticed() -> None:
    await expect_violation("twice", 1, "nobody asked for")


async def test_response_in_an_array_to_a_lone_request_is_noticed() -> None:
    await expect_violation("array", 1, "answered an array")


async def test_host_that_ignores_the_end_of_input_is_noticed_and_killed() -> None:
    host = await example().__aenter__()
    await host.call("stubborn")
    with pytest.raises(ViolationError, match="still runs"):
        await host.close()
    assert host.exit is not None
    assert host.exit.signal == signal.SIGKILL


async def test_child_left_behind_is_noticed_and_killed() -> None:
    await expect_violation("orphan", None, "outlives the host")


async def test_parts_beyond_the_window_are_noticed() -> None:
    host = await example().__aenter__()
    host.enable_parts(2)
    host.hold_acknowledgements()
    with pytest.raises(ViolationError, match="the window is 2"):
        await host.call("flood", 2_000_000)
    with pytest.raises(ViolationError, match="the window is 2"):
        await host.close()


async def test_parts_that_were_not_agreed_on_are_noticed() -> None:
    await expect_violation("flood", 2_000_000, "not agreed on")
