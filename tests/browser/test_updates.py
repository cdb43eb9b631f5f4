"""Changes in one step: what chrome.storage lacks, and that it does not show where it is added."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TIMES = 300


async def test_increments_and_pushes_of_two_contexts_are_all_there(browser: Browser) -> None:
    pages = [await browser.page(), await browser.page()]
    await pages[0].evaluate("keep.storage.local.clear()")
    work = """async ({ name, times, together }) => {
      const { local } = keep.storage;
      const answers = [];
      for (let number = 0; number < times; number += 1) {
        answers.push(local.update('count', { increment: 1 }));
        answers.push(local.update('list', { push: `${name} ${number}` }));
        if (number % together === 0) await Promise.all(answers);
      }
      const values = (await Promise.all(answers)).map(({ value }) => value);
      return values.filter((value) => value !== undefined);
    }"""
    counts = await asyncio.gather(
        *(
            page.evaluate(work, {"name": name, "times": TIMES, "together": together})
            for page, name, together in zip(pages, "ab", (1, 7), strict=True)
        )
    )
    pids = [await page.evaluate("keep.status().host.pid") for page in pages]
    assert len(set(pids)) == 2, "each context has a host of its own"
    assert sorted(counts[0] + counts[1]) == list(range(1, 2 * TIMES + 1)), "no count came twice"
    stored = await pages[1].evaluate("keep.storage.local.get()")
    assert stored["count"] == 2 * TIMES
    assert sorted(stored["list"]) == sorted(f"{n} {i}" for n in "ab" for i in range(TIMES))
    for name in "ab":
        mine = [entry for entry in stored["list"] if entry.startswith(name)]
        assert mine == [f"{name} {number}" for number in range(TIMES)], "in call order"


@pytest.mark.parametrize("area", ["local", "session"])
async def test_each_kind_of_change(page: Page, area: str) -> None:
    outcome = await page.evaluate(f"""async () => {{
      const area = keep.storage.{area};
      await area.clear();
      await area.update('n', {{ increment: 2 }});
      const {{ value }} = await area.update('n', {{ increment: -0.5 }});
      await area.update('list', {{ push: {{ b: 1, a: new Date() }} }});
      await area.update('list', {{ push: null }});
      await area.update('object', {{ merge: {{ b: 1 }} }});
      await area.update('object', {{ merge: {{ a: [2], b: 3 }} }});
      await area.update('value', {{ value: 'x' }});
      const stored = await area.get();
      await area.clear();
      return [value, stored];
    }}""")
    assert outcome == [
        1.5,
        {"list": [{"a": {}, "b": 1}, None], "n": 1.5, "object": {"a": [2], "b": 3}, "value": "x"},
    ]


async def test_a_value_of_another_type_is_not_overwritten(page: Page) -> None:
    kinds = await page.evaluate("""async () => {
      const { local } = keep.storage;
      await local.set({ text: 'x' });
      const changes = [{ increment: 1 }, { push: 1 }, { merge: {} }];
      const refused = (change) => local.update('text', change).catch(({ kind }) => kind);
      const kinds = await Promise.all(changes.map(refused));
      return [...kinds, await local.get()];
    }""")
    assert kinds == ["conflict", "conflict", "conflict", {"text": "x"}]


async def test_a_stale_revision_is_refused_with_the_present_one(browser: Browser) -> None:
    first, second = await browser.page(), await browser.page()
    await first.evaluate("keep.storage.local.clear()")
    await first.evaluate("keep.storage.local.set({ a: 1, b: 1 })")
    known = await first.evaluate("keep.storage.local.getWithRevisions(['a', 'b', 'none'])")
    assert known["items"] == {"a": 1, "b": 1}
    assert known["revisions"]["none"] == 0
    await second.evaluate("keep.storage.local.set({ a: 2 })")
    present = (await second.evaluate("keep.storage.local.getWithRevisions('a')"))["revisions"]["a"]
    assert present != known["revisions"]["a"]
    refused = await first.evaluate(
        """async (expect) => {
          const { local } = keep.storage;
          const settled = await Promise.allSettled([
            local.set({ a: 3, b: 3 }, { expect }),
            local.update('a', { value: 3, expect: expect.a }),
            local.set({ none: 1 }, { expect: { none: 7 } }),
          ]);
          return settled.map(({ reason }) => [reason.kind, reason.code, reason.data.revisions]);
        }""",
        known["revisions"],
    )
    assert refused == [
        ["conflict", -32002, known["revisions"] | {"a": present}],
        ["conflict", -32002, {"a": present}],
        ["conflict", -32002, {"none": 0}],
    ]
    assert await first.evaluate("keep.storage.local.get()") == {"a": 2, "b": 1}
    taken = await first.evaluate(
        "(a) => keep.storage.local.set({ a: 3, b: 3 }, { expect: { a, none: 0 } })", present
    )
    assert sorted(taken["revisions"]) == ["a", "b"]
    again = await first.evaluate(
        "(expect) => keep.storage.local.update('a', { increment: 1, expect })",
        taken["revisions"]["a"],
    )
    assert again["value"] == 4


async def test_the_additions_do_not_show_in_the_shape(page: Page) -> None:
    shown = await page.evaluate("""() => {
      const { local } = keep.storage;
      const found = [];
      for (const key in local) found.push(key);
      return [found, Object.keys(keep.storage), 'update' in local];
    }""")
    names = ["get", "getKeys", "set", "remove", "clear", "getBytesInUse", "setAccessLevel"]
    assert shown == [
        [*names, "onChanged", "QUOTA_BYTES"],
        ["session", "local", "onChanged", "AccessLevel"],
        True,
    ]


async def test_arguments_of_the_wrong_type_throw_at_once(page: Page) -> None:
    thrown = await page.evaluate("""() => {
      const { local } = keep.storage;
      const calls = [
        () => local.update(1, { increment: 1 }),
        () => local.update('a'),
        () => local.update('a', {}),
        () => local.update('a', { increment: 1, push: 1 }),
        () => local.update('a', { increment: '1' }),
        () => local.update('a', { increment: NaN }),
        () => local.update('a', { merge: [] }),
        () => local.update('a', { value: 1, expect: -1 }),
        () => local.update('a', { value: 1, expect: '1' }),
        () => local.set({}, { expect: 1 }),
        () => local.set({}, { expect: { a: '1' } }),
        () => local.set({}, { expected: {} }),
        () => local.getWithRevisions(1),
        () => local.getWithRevisions([1]),
      ];
      return calls.map((call) => {
        try {
          call();
          return 'nothing';
        } catch (error) {
          return error.name;
        }
      });
    }""")
    assert thrown == ["TypeError"] * 14
    assert await page.evaluate("keep.storage.local.get()") == {}


async def test_what_cannot_be_stored_is_refused(page: Page) -> None:
    kinds = await page.evaluate("""() => {
      const { local } = keep.storage;
      const changes = [{ value: undefined }, { push: () => 1 }, { value: new Uint8Array(1) }];
      const refused = (change) => local.update('a', change).catch(({ kind }) => kind);
      return Promise.all(changes.map(refused));
    }""")
    assert kinds == ["invalidParams"] * 3
    assert await page.evaluate("keep.storage.local.get()") == {}
