"""The worker sleeps, is stopped and wakes; it holds the port no longer than it needs it."""

from __future__ import annotations

import pytest

from .driver import Browser, kill

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_worker_that_was_stopped_reads_what_it_had_written(browser: Browser) -> None:
    await browser.worker.evaluate("keep.storage.local.set({ kept: 'by the worker' })")
    before = await browser.worker.evaluate("keep.status().host.pid")
    await browser.stop_worker()
    await browser.host_ended(before)
    worker = await browser.wake_worker()
    assert await worker.evaluate("keep.status().state") == "idle", "waking opens no port"
    assert await worker.evaluate("keep.storage.local.get('kept')") == {"kept": "by the worker"}
    assert await worker.evaluate("keep.status().host.pid") != before


async def test_the_worker_closes_its_port_when_it_is_idle(browser: Browser) -> None:
    worker = await browser.wake_worker()
    await worker.evaluate("keep.storage.local.getKeys()")
    pid = await worker.evaluate("keep.status().host.pid")
    await browser.host_ended(pid, 20)
    assert await worker.evaluate("keep.status().state") == "idle"


async def test_calls_in_flight_settle_when_the_worker_is_stopped(browser: Browser) -> None:
    page = await browser.page()
    worker = await browser.wake_worker()
    await page.evaluate("keep.storage.local.clear()")
    await worker.evaluate("keep.storage.local.getKeys()")
    start = """(who) => {
      const set = (_, number) =>
        keep.storage.local.set({ [`${who} ${number}`]: 'x'.repeat(50_000) + number });
      globalThis.work = Promise.allSettled(Array.from({ length: 20 }, set));
    }"""
    await page.evaluate(start, "page")
    await worker.evaluate(start, "worker")
    await browser.stop_worker()
    settled = await page.evaluate("work.then((all) => all.map((one) => one.status))")
    assert settled == ["fulfilled"] * 20
    worker = await browser.wake_worker()
    stored = await worker.evaluate("""async () => {
      const stored = await keep.storage.local.get();
      const whole = ([key, value]) => value === 'x'.repeat(50_000) + key.split(' ')[1];
      return Object.entries(stored).map(([key, value]) => [key, whole([key, value])]);
    }""")
    assert {key for key, _ in stored} >= {f"page {number}" for number in range(20)}
    assert all(whole for _, whole in stored), "a value of the stopped worker is there in part"


@pytest.mark.parametrize("rounds", [8, pytest.param(200, marks=pytest.mark.long)])
async def test_what_was_acknowledged_survives_worker_and_host(
    browser: Browser, rounds: int
) -> None:
    worker = await browser.wake_worker()
    await worker.evaluate("keep.storage.local.clear()")
    for number in range(rounds):
        await worker.evaluate(
            "(number) => keep.storage.local.set({ [`round ${number}`]: { number } })", number
        )
        kill(await worker.evaluate("keep.status().host.pid"))
        await browser.stop_worker()
        worker = await browser.wake_worker()
        stored = await worker.evaluate("keep.storage.local.get()")
        assert stored == {f"round {past}": {"number": past} for past in range(number + 1)}
