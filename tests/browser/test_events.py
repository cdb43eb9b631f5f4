"""Change events: every context hears every change once, in the order of the journal."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest
from playwright.async_api import Page, Worker

from tests.harness.sidekeep_host import SidekeepHost

from .driver import Browser, kill, until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Context = Page | Worker

# Listens to everything and keeps what was heard in `heard`, as [event, arguments].
_LISTEN = """() => {
  globalThis.heard = [];
  keep.storage.onChanged.addListener((...args) => heard.push(['all', args]));
  keep.storage.local.onChanged.addListener((...args) => heard.push(['local', args]));
  keep.storage.session.onChanged.addListener((...args) => heard.push(['session', args]));
}"""

# Listens to the local area only and keeps the changes.
_LISTEN_LOCAL = """() => {
  globalThis.heard = [];
  globalThis.listener = (changes) => heard.push(changes);
  keep.storage.local.onChanged.addListener(listener);
}"""


async def _listen(context: Context, script: str = _LISTEN_LOCAL) -> None:
    await context.evaluate(script)
    await context.evaluate("keep.storage.local.getKeys()")  # the watch is answered


async def _heard(context: Context, count: int, seconds: float = 15) -> list[Any]:
    """Return what was heard, as soon as it is ``count`` events and nothing more comes."""
    end = asyncio.get_running_loop().time() + seconds
    heard: list[Any] = []
    while len(heard) < count:
        heard = await context.evaluate("heard")
        if asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.03)
    await asyncio.sleep(0.1)
    heard = await context.evaluate("heard")
    assert len(heard) == count, heard
    return heard


async def _host(context: Context) -> int:
    pid = await context.evaluate("keep.status().host.pid")
    assert isinstance(pid, int)
    return pid


async def test_an_event_has_the_shape_of_the_real_one_and_comes_before_the_promise(
    page: Page,
) -> None:
    await page.evaluate(_LISTEN)
    settled = """async () => {
      await keep.storage.local.set({ b: 1, a: { y: 1, x: 2 } });
      heard.push('settled');
      await keep.storage.local.set({ a: { x: 2, y: 1 }, b: 2, c: null, d: undefined });
      heard.push('settled');
      await keep.storage.local.remove(['c', 'missing']);
      await keep.storage.local.remove('missing');
      await keep.storage.local.clear();
      return heard.map((event) => JSON.stringify(event));
    }"""
    first = '{"a":{"newValue":{"x":2,"y":1}},"b":{"newValue":1}}'
    second = '{"b":{"newValue":2,"oldValue":1},"c":{"newValue":null}}'
    third = '{"c":{"oldValue":null}}'
    fourth = '{"a":{"oldValue":{"x":2,"y":1}},"b":{"oldValue":2}}'
    expected: list[str] = []
    for changes in (first, second, third, fourth):
        expected += [f'["local",[{changes}]]', f'["all",[{changes},"local"]]']
        if changes in {first, second}:
            expected.append('"settled"')
    assert await page.evaluate(settled) == expected


async def test_listeners_share_nothing_with_each_other_or_with_what_is_read(page: Page) -> None:
    await page.evaluate("""() => {
      const { local, onChanged } = keep.storage;
      local.onChanged.addListener((changes) => { changes.a.newValue.list.push('mine'); });
      onChanged.addListener((changes) => { globalThis.seen = changes; });
    }""")
    await page.evaluate("keep.storage.local.set({ a: { list: [1] } })")
    assert await page.evaluate("seen") == {"a": {"newValue": {"list": [1]}}}
    assert await page.evaluate("keep.storage.local.get()") == {"a": {"list": [1]}}


async def test_every_context_hears_every_process(browser: Browser, page: Page) -> None:
    other, worker = await browser.page(), await browser.wake_worker()
    contexts: list[Context] = [page, other, worker]
    for context in contexts:
        await _listen(context)
    await page.evaluate("keep.storage.local.set({ from: 'page' })")
    await other.evaluate("keep.storage.local.set({ from: 'other' })")
    await worker.evaluate("keep.storage.local.set({ from: 'worker' })")
    async with browser.installation.second_process(await browser.token()) as host:
        await host.set({"from": "process"})
    names = ["page", "other", "worker", "process"]
    expected: list[Any] = [{"from": {"newValue": "page"}}]
    expected += [
        {"from": {"newValue": new, "oldValue": old}} for old, new in itertools.pairwise(names)
    ]
    for context in contexts:
        assert await _heard(context, 4) == expected
    await worker.evaluate("keep.storage.local.onChanged.removeListener(listener)")


async def test_a_refused_change_is_no_event_and_changes_nothing(page: Page) -> None:
    await page.evaluate("keep.storage.session.set({ kept: 1 })")
    await page.evaluate(_LISTEN)
    refused = await page.evaluate("""() => keep.storage.session
      .set({ kept: 2, big: 'x'.repeat(11_000_000) })
      .then(() => null, (error) => [error instanceof Error, error.message])""")
    assert refused == [True, "Session storage quota bytes exceeded. Values were not stored."]
    assert await page.evaluate("keep.storage.session.get()") == {"kept": 1}
    assert await page.evaluate("heard") == []
    await page.evaluate("keep.storage.session.clear()")


async def test_a_listener_that_writes_back_what_it_was_told_comes_to_rest(browser: Browser) -> None:
    pages = [await browser.page(), await browser.page()]
    await pages[0].evaluate("keep.storage.local.clear()")
    for page in pages:
        await _listen(
            page,
            """() => {
              globalThis.heard = [];
              keep.storage.local.onChanged.addListener((changes) => {
                heard.push(changes);
                const { b, a } = changes.value.newValue;
                keep.storage.local.set({ value: { b, a } });
              });
            }""",
        )
    await pages[0].evaluate("keep.storage.local.set({ value: { a: 1, b: [2] } })")
    for page in pages:
        await _heard(page, 1)


async def test_a_removed_listener_hears_nothing_and_lets_the_port_go(browser: Browser) -> None:
    page = await browser.page(options={"idle": 300})
    await page.evaluate("keep.storage.local.clear()")
    await _listen(page)
    pid = await _host(page)
    await asyncio.sleep(1)
    assert pid in browser.installation.hosts(), "a listener holds the port of a page"
    assert await page.evaluate("keep.storage.local.onChanged.hasListener(listener)")
    assert await page.evaluate("keep.storage.local.onChanged.hasListeners()")
    await page.evaluate("keep.storage.local.onChanged.removeListener(listener)")
    assert not await page.evaluate("keep.storage.local.onChanged.hasListeners()")
    await page.evaluate("keep.storage.local.set({ a: 1 })")
    assert await page.evaluate("heard") == []
    await until(lambda: pid not in browser.installation.hosts(), "the port to close")


async def test_a_new_listener_hears_only_what_happens_from_then_on(page: Page) -> None:
    await page.evaluate("keep.storage.local.set({ a: 1 })")
    await page.evaluate(_LISTEN_LOCAL)
    await page.evaluate("keep.storage.local.set({ a: 2 })")
    await page.evaluate("keep.storage.local.onChanged.removeListener(listener)")
    await page.evaluate("keep.storage.local.set({ a: 3 })")
    await page.evaluate("keep.storage.local.onChanged.addListener(listener)")
    await page.evaluate("keep.storage.local.set({ a: 4 })")
    assert await _heard(page, 2) == [
        {"a": {"newValue": 2, "oldValue": 1}},
        {"a": {"newValue": 4, "oldValue": 3}},
    ]


async def test_a_context_that_does_not_listen_is_sent_no_values(browser: Browser) -> None:
    page = await browser.page(spy=True)
    other = await browser.page()
    await page.evaluate("""() => {
      globalThis.told = [];
      spy.swallow = ({ method, params }) => {
        if (method) told.push(params.area);
        return false;
      };
    }""")
    await page.evaluate("keep.storage.local.getKeys()")
    await other.evaluate("keep.storage.local.set({ unheard: 1 })")
    await _listen(page)
    await other.evaluate("keep.storage.local.set({ unheard: 2 })")
    await other.evaluate("keep.storage.session.set({ unheard: 2 })")
    await _heard(page, 1)
    await page.evaluate("keep.storage.local.onChanged.removeListener(listener)")
    await page.evaluate("keep.storage.local.getKeys()")
    await other.evaluate("keep.storage.local.set({ unheard: 3 })")
    await page.evaluate("keep.storage.local.getKeys()")
    assert await page.evaluate("told") == ["local"]
    await other.evaluate("keep.storage.session.clear()")


async def test_quiet_keys_are_left_out(browser: Browser) -> None:
    page = await browser.page(options={"quiet": ["history", "session_*"]})
    await page.evaluate("keep.storage.local.clear()")
    await page.evaluate(_LISTEN_LOCAL)
    await page.evaluate("""async () => {
      const { local } = keep.storage;
      await local.set({ history: [1], session_1: [], history2: 1, session: 2 });
      await local.set({ history: [1, 2], session_2: [] });
      await local.remove(['session_1', 'session']);
    }""")
    assert await _heard(page, 2) == [
        {"history2": {"newValue": 1}, "session": {"newValue": 2}},
        {"session": {"oldValue": 2}},
    ]


async def test_what_happens_while_a_port_is_lost_is_heard_once(
    browser: Browser, page: Page
) -> None:
    await _listen(page)
    async with browser.installation.second_process(await browser.token()) as host:
        for number in range(5):
            await host.set({"value": 2 * number})
            kill(await _host(page))
            await host.set({"value": 2 * number + 1})
            await _heard(page, 2 * number + 2)
    heard = await page.evaluate("heard.map(({ value }) => value.newValue)")
    assert heard == list(range(10))


async def test_a_page_that_listens_comes_back_when_the_host_does(
    browser: Browser, page: Page
) -> None:
    manifest = browser.installation.manifest()
    hidden = manifest.with_suffix(".hidden")
    await _listen(page)
    async with browser.installation.second_process(await browser.token()) as host:
        manifest.rename(hidden)
        try:
            kill(await _host(page))
            await page.wait_for_function("() => keep.status().state === 'resting'")
            assert "finds no Sidekeep host" in await page.evaluate("keep.status().reason")
            await host.set({"value": 1})
        finally:
            hidden.rename(manifest)
        assert await _heard(page, 1, seconds=35) == [{"value": {"newValue": 1}}]


async def test_what_can_no_longer_be_told_is_a_gap(browser: Browser, page: Page) -> None:
    manifest = browser.installation.manifest()
    hidden = manifest.with_suffix(".hidden")
    # A commit drops at most 16 old rows of the journal, and earlier tests have left hundreds.
    await page.evaluate("keep.trash.empty()")
    await _listen(page)
    await page.evaluate(
        "() => { globalThis.gaps = []; keep.onGap.addListener((gap) => gaps.push(gap)); }"
    )
    async with browser.installation.second_process(await browser.token()) as host:
        manifest.rename(hidden)
        try:
            kill(await _host(page))
            await page.wait_for_function("() => keep.status().state === 'resting'")
            for number in range(8):  # more than the journal keeps for nobody
                await host.set({"big": str(number) * 1_000_000})
            # Somebody else may listen, a worker; for them it is kept for 10 seconds.
            await asyncio.sleep(10.5)
            await host.set({"big": 0})
        finally:
            hidden.rename(manifest)
        await page.evaluate("keep.retry()")
        await page.wait_for_function("() => gaps.length > 0")
        await host.set({"small": 1})
        assert await _heard(page, 1) == [{"small": {"newValue": 1}}]
    assert await page.evaluate("gaps") == [{"area": "local"}]


async def test_the_worker_hears_what_it_missed_at_its_next_wake(
    browser: Browser, page: Page
) -> None:
    worker = await browser.wake_worker()
    await _listen(worker)
    await page.evaluate("keep.storage.local.set({ value: 0 })")
    await _heard(worker, 1)
    pid = await _host(worker)
    await until(lambda: pid not in browser.installation.hosts(), "the worker's port to close", 20)
    await page.evaluate("keep.storage.local.set({ value: 1 })")  # it is awake, and has no port
    assert (await _heard(worker, 2))[1] == {"value": {"newValue": 1, "oldValue": 0}}
    await browser.stop_worker()
    await page.evaluate("keep.storage.local.set({ value: 2 })")
    await page.evaluate("keep.storage.local.set({ value: 3 })")
    worker = await browser.wake_worker()
    await worker.evaluate(_LISTEN_LOCAL)  # no call: the listener alone opens the port
    assert await _heard(worker, 2) == [
        {"value": {"newValue": 2, "oldValue": 1}},
        {"value": {"newValue": 3, "oldValue": 2}},
    ]
    await worker.evaluate("keep.storage.local.onChanged.removeListener(listener)")


# One round of random changes, each with values that occur nowhere else.
_WRITE = """async ({ name, seed, calls }) => {
  let state = seed;
  const below = (n) => { state = (state * 48271) % 2147483647; return state % n; };
  const work = [];
  for (let call = 0; call < calls; call += 1) {
    globalThis.written = (globalThis.written ?? 0) + 1;
    const value = `${name} ${written}` + (below(40) === 0 ? 'x'.repeat(70_000) : '');
    const keys = Array.from({ length: 1 + below(3) }, () => `key ${below(12)}`);
    const { local } = keep.storage;
    switch (below(6)) {
      case 0: work.push(local.remove(keys)); break;
      case 1: work.push(local.update('count', { increment: 1 })); break;
      case 2: work.push(local.update('list', { push: value.slice(0, 20) })); break;
      default: work.push(local.set(Object.fromEntries(keys.map((key) => [key, value]))));
    }
    if (below(3) === 0) await Promise.allSettled(work);
  }
  const refused = (await Promise.allSettled(work)).filter(({ reason }) => reason);
  return refused.map(({ reason: { kind, message } }) => `${kind}: ${message}`);
}"""


async def _write_over_stdio(host: SidekeepHost, dice: random.Random, rounds: int) -> None:
    for number in range(rounds):
        if dice.random() < 0.3:
            await host.remove([f"key {dice.randrange(12)}"])
        else:
            await host.set({f"key {dice.randrange(12)}": f"process {number}"})
        await asyncio.sleep(dice.random() * 0.02)


@pytest.mark.parametrize("rounds", [12, pytest.param(200, marks=pytest.mark.long)])
async def test_every_context_hears_the_journal_though_hosts_are_killed(
    browser: Browser, page: Page, dice: random.Random, rounds: int
) -> None:
    worker = await browser.wake_worker()
    contexts: list[Context] = [page, await browser.page(), worker]
    installation = browser.installation
    token = await browser.token()
    async with (
        installation.second_process(token) as host,
        installation.second_process(token) as one,
    ):
        await one.call("storage.watch", {"areas": ["local"]})
        for context in contexts:
            await _listen(context)
        spared = {host.pid, one.pid}

        async def kill_now_and_then() -> None:
            while True:
                await asyncio.sleep(0.1 + dice.random() * 0.5)
                victims = [pid for pid in installation.hosts() if pid not in spared]
                if victims:
                    kill(dice.choice(victims))

        killer = asyncio.create_task(kill_now_and_then())
        try:
            for number in range(rounds):
                work = [
                    context.evaluate(
                        _WRITE,
                        {
                            "name": f"{index}.{number}",
                            "seed": dice.randrange(1, 2**31 - 1),
                            "calls": 25,
                        },
                    )
                    for index, context in enumerate(contexts)
                ]
                results = await asyncio.gather(*work, _write_over_stdio(host, dice, 12))
                # A call whose hosts were killed three times is given up, and says so.
                refused = list(itertools.chain.from_iterable(results[:-1]))
                assert all(text.startswith(("unknown", "unavailable")) for text in refused), refused
        finally:
            killer.cancel()
        for context in contexts:
            await context.evaluate("keep.retry()")  # ends a rest, reads nothing
        await one.ping()
        journal = [
            message["params"]["changes"]
            for message in one.notifications
            if message["method"] == "storage.changed"
        ]
        for context in contexts:
            heard = await _heard(context, len(journal), seconds=30)
            assert heard == journal
    await worker.evaluate("keep.storage.local.onChanged.removeListener(listener)")
