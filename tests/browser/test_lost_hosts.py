"""Hosts that are killed, missing, silent or slow: every call settles, nothing is applied twice."""

from __future__ import annotations

import asyncio
import random

import pytest
from playwright.async_api import Page

from .driver import Browser, kill, until_true

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SECONDS_TO_REPLACE_A_HOST = 2.0
"""What the stub promises for a host that was killed (and is installed and well)."""

MINUTE = 60
ATTEMPTS_IN_A_MINUTE = 10
"""A missing host is tried less often than this, however often it is called."""

# Makes a call and says how it ended and after how many milliseconds.
_CALL = """
async ({ host, timeout, close }) => {
  globalThis.links ??= {};
  links[host] ??= connect({ host, timeout });
  const started = performance.now();
  const how = await links[host].storage.local.getKeys().then(
    () => ({ kind: 'answered' }),
    ({ name, kind, message, next }) => ({ name, kind, message, next }),
  );
  const took = performance.now() - started;
  if (close) await links[host].close();
  return { ...how, took };
}
"""


async def _pid(page: Page) -> int:
    pid = await page.evaluate("keep.status().host.pid")
    assert isinstance(pid, int)
    return pid


async def test_a_host_killed_between_calls_is_replaced_by_the_next_call(page: Page) -> None:
    times = []
    for value in range(3):
        await page.evaluate("(value) => keep.storage.local.set({ value })", value)
        killed = await _pid(page)
        kill(killed)
        got, took = await page.evaluate("""async () => {
          const started = performance.now();
          const got = await keep.storage.local.get('value');
          return [got, performance.now() - started];
        }""")
        assert got == {"value": value}
        assert await _pid(page) != killed
        times.append(took / 1000)
    assert min(times) < SECONDS_TO_REPLACE_A_HOST, times


async def test_an_ended_host_is_told_in_words(page: Page) -> None:
    kill(await _pid(page))
    await until_true(page, "keep.status().state !== 'connected'")
    status = await page.evaluate("keep.status()")
    assert status["state"] == "idle"
    assert status["lastError"] == "Native host has exited."
    assert status["reason"] == "The host process ended."
    assert status["next"]


async def test_calls_that_a_killed_host_left_open_settle_with_values(page: Page) -> None:
    chance = random.Random(1)
    for number in range(6):
        await page.evaluate(
            """(number) => {
              const local = keep.storage.local;
              const calls = [];
              for (let index = 0; index < 60; index += 1) {
                calls.push(local.set({ [`key ${index}`]: number }), local.get(`key ${index}`));
                if (index % 20 > 0) continue;
                calls.push(local.set({ [`big ${index}`]: 'x'.repeat(3_000_000) + number }));
              }
              globalThis.work = Promise.allSettled(calls);
            }""",
            number,
        )
        pid = await page.evaluate("keep.status().host?.pid")
        await asyncio.sleep(chance.random() * 0.15)
        if pid is not None:
            kill(pid)
        refused = await page.evaluate(
            "work.then((all) => all.filter((one) => one.reason).map((one) => String(one.reason)))"
        )
        assert refused == []
        wrong = await page.evaluate(
            """async (number) => {
              const stored = await keep.storage.local.get();
              return Object.keys(stored).filter((key) => !String(stored[key]).endsWith(number));
            }""",
            number,
        )
        assert wrong == []
        await until_true(page, "keep.status().state === 'connected'")


async def test_a_change_whose_answer_was_lost_is_not_applied_twice(browser: Browser) -> None:
    first = await browser.page(spy=True)
    second = await browser.page()
    await first.evaluate("keep.storage.local.clear()")
    pid = await _pid(first)
    await first.evaluate("""() => {
      // The host applies the change, and its answer never arrives.
      spy.swallow = (message) => 'result' in message;
      globalThis.change = keep.storage.local.set({ value: 'first' });
    }""")
    await until_true(second, "keep.storage.local.get('value').then((got) => got.value === 'first')")
    await second.evaluate("keep.storage.local.set({ value: 'second' })")
    await first.evaluate("() => { spy.swallow = () => false; }")
    kill(pid)
    await first.evaluate("change")
    posted = await first.evaluate(
        "spy.frames.flat().filter((frame) => frame.method === 'storage.set').map(({ op }) => op)"
    )
    assert len(posted) == 2
    assert posted[0] == posted[1], "the change was repeated under the same number"
    assert await first.evaluate("keep.storage.local.get('value')") == {"value": "second"}


async def test_a_missing_host_is_told_at_once_and_found_when_it_is_installed(
    browser: Browser,
) -> None:
    page = await browser.page()
    host = "org.sidekeep.later"
    call = {"host": host, "timeout": 10_000}
    browser.installation.manifest(host).unlink(missing_ok=True)
    refused = await page.evaluate(_CALL, call)
    assert (refused["name"], refused["kind"]) == ("SidekeepError", "unavailable")
    assert host in refused["message"]
    assert "install" in refused["next"]
    assert refused["took"] < 10_000
    status = await page.evaluate("(host) => links[host].status()", host)
    assert status["lastError"] == "Specified native messaging host not found."
    for _ in range(20):
        assert (await page.evaluate(_CALL, call))["kind"] == "unavailable"
    attempts = await page.evaluate("(host) => links[host].status().attempts", host)
    assert attempts < 10
    browser.installation.register(host, browser.installation.launcher)
    found = False
    for _ in range(350):
        found = (await page.evaluate(_CALL, call))["kind"] == "answered"
        if found:
            break
        await asyncio.sleep(0.1)
    assert found, "a host that was installed later was not found within 35 s"


async def test_a_host_that_never_answers_ends_the_call_with_a_reason(browser: Browser) -> None:
    program = browser.installation.program(
        "silent", "import sys\nwhile sys.stdin.buffer.read(1):\n    pass\n"
    )
    browser.installation.register("org.sidekeep.silent", program)
    page = await browser.page()
    call = {"host": "org.sidekeep.silent", "timeout": 700}
    for _ in range(2):
        refused = await page.evaluate(_CALL, call)
        assert (refused["name"], refused["kind"]) == ("SidekeepError", "unavailable")
        assert "did not answer" in refused["message"]
    await page.evaluate(_CALL, call | {"close": True})


async def test_an_answer_that_comes_too_late_is_dropped_and_a_later_call_works(
    browser: Browser,
) -> None:
    launcher = browser.installation.launcher
    program = browser.installation.program(
        "slow",
        # What the host says is held back for 2 s once, then passed on as it comes.
        "import os, subprocess, sys, threading, time\n"
        f"host = subprocess.Popen([{launcher!r}, *sys.argv[1:]], stdout=subprocess.PIPE)\n"
        "time.sleep(2)\n"
        "while data := os.read(host.stdout.fileno(), 65536):\n"
        "    os.write(1, data)\n",
    )
    browser.installation.register("org.sidekeep.slow", program)
    page = await browser.page()
    call = {"host": "org.sidekeep.slow", "timeout": 1000}
    first = await page.evaluate(_CALL, call)
    assert first["kind"] == "unavailable"
    await until_true(page, "links['org.sidekeep.slow'].status().state === 'connected'")
    second = await page.evaluate(_CALL, call)
    assert second["kind"] == "answered"
    await page.evaluate(_CALL, call | {"close": True})


async def test_a_host_that_speaks_no_frames_is_told_in_words(browser: Browser) -> None:
    program = browser.installation.program(
        "noisy", "print('hello from a shell profile')\ninput()\n"
    )
    browser.installation.register("org.sidekeep.noisy", program)
    page = await browser.page()
    refused = await page.evaluate(_CALL, {"host": "org.sidekeep.noisy", "timeout": 10_000})
    assert refused["kind"] == "unavailable"
    assert "no message" in refused["message"] or "ended" in refused["message"]


async def test_a_closed_link_leaves_no_host_behind(browser: Browser) -> None:
    page = await browser.page()
    await page.evaluate("keep.storage.local.getKeys()")
    pid = await _pid(page)
    assert pid in browser.installation.hosts()
    await page.evaluate("keep.close()")
    await browser.host_ended(pid)


async def test_a_missing_host_is_tried_seldom_and_at_once_when_a_person_asks(
    browser: Browser,
) -> None:
    page = await browser.page(connect=False)
    host = "org.sidekeep.resting"
    browser.installation.manifest(host).unlink(missing_ok=True)
    await page.evaluate(
        """async (host) => {
          globalThis.attempts = 0;
          const connectNative = chrome.runtime.connectNative.bind(chrome.runtime);
          chrome.runtime.connectNative = (name) => {
            attempts += 1;
            return connectNative(name);
          };
          const { connect } = await import('/sidekeep/index.js');
          globalThis.kinds = new Set();
          globalThis.resting = connect({ host });
          const { local } = resting.storage;
          local.onChanged.addListener(() => {});
          const refused = ({ kind }) => kinds.add(kind);
          const call = () => local.get('a').then(() => kinds.add('value'), refused);
          setInterval(call, 50);
        }""",
        host,
    )
    await asyncio.sleep(MINUTE)
    assert await page.evaluate("[...kinds]") == ["unavailable"]
    attempts = await page.evaluate("attempts")
    assert 1 < attempts < ATTEMPTS_IN_A_MINUTE
    assert await page.evaluate("resting.status().state") in {"resting", "connecting"}
    browser.installation.register(host, browser.installation.launcher)
    state = await page.evaluate("resting.retry().then(({ state }) => state)")
    assert state == "connected"
    assert await page.evaluate("attempts") <= attempts + 2
    await page.evaluate("resting.close()")
