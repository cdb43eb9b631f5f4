"""Values go through the stub, the pipe and the file and come back equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# Sets a value, reads it back in another call, and says whether it came back equal. The value is
# one whose keys are sorted: objects come back so.
_SAME = """
async (make) => {
  const value = eval(make)();
  await keep.storage.local.set({ value });
  const back = (await keep.storage.local.get('value')).value;
  return JSON.stringify(back) === JSON.stringify(value);
}
"""


async def test_every_json_type_comes_back_equal(page: Page) -> None:
    values = [
        None,
        True,
        False,
        0,
        -1,
        0.1,
        1e308,
        5e-324,
        2**53,
        "",
        "text",
        'Grüße, 世界, 😀, \u0000\u001f\u2028"\\/',
        [],
        {},
        [None, [True, ["x", {"deep": [1.5]}]]],
        {"": 0, "a": {"b": {"c": [None, {}]}}, "é": "é", "😀": ["😀"]},
    ]
    back = await page.evaluate(
        """async (values) => {
          const items = Object.fromEntries(values.map((value, index) => [`key ${index}`, value]));
          await keep.storage.local.set(items);
          const back = await keep.storage.local.get(Object.keys(items));
          return values.map((_, index) => back[`key ${index}`]);
        }""",
        values,
    )
    assert back == values


_ODD_TEXT = """
async ([valueUnits, keyUnits]) => {
  const units = ['é', '中文', '😀', '\\u2028', '\\u0000', '"', '\\\\', '\\u0001x', '\\ufffe'];
  const wrong = [];
  const local = keep.storage.local;
  await local.set({ other: 'untouched' });
  for (const unit of units) {
    const key = unit.repeat(keyUnits / unit.length);
    const text = unit.repeat(valueUnits / unit.length);
    await local.set({ [key]: text, [unit]: [key, unit] });
    const back = await local.get([key, unit, 'other']);
    const same = back[key] === text && back[unit]?.[0] === key && back[unit][1] === unit;
    if (!same || back.other !== 'untouched') wrong.push(`${unit} not equal`);
    if (!(await local.getKeys()).includes(key)) wrong.push(`${unit} not listed`);
    await local.remove([key, unit]);
    if ((await local.getKeys()).length !== 1) wrong.push(`${unit} not removed`);
  }
  return wrong;
}
"""


async def test_odd_text_comes_back_equal_in_values_and_keys(page: Page) -> None:
    assert await page.evaluate(_ODD_TEXT, [1_000_000, 5000]) == []


async def test_keys_of_1_mb_are_keys_like_others(page: Page) -> None:
    assert await page.evaluate(_ODD_TEXT, [10, 1_000_000]) == []


async def test_a_data_url_of_5_mb_comes_back_equal(page: Page) -> None:
    make = """() => {
      const bytes = new Uint8Array(3_750_000);
      for (let at = 0; at < bytes.length; at += 65536) {
        crypto.getRandomValues(bytes.subarray(at, at + 65536));
      }
      return { history: [{ image: `data:image/png;base64,${bytes.toBase64()}`, role: 'user' }] };
    }"""
    assert await page.evaluate(_SAME, make)


async def test_a_value_of_70_mb_comes_back_equal(page: Page) -> None:
    make = "() => ({ list: [{ text: 'value 世界 ' + 'x'.repeat(70_000_000) }, 'end'] })"
    assert await page.evaluate(_SAME, make)


@pytest.mark.parametrize("megabytes", [30, 63, 200])
async def test_large_values_come_back_equal_alone_and_as_many_keys(
    page: Page, megabytes: int
) -> None:
    wrong = await page.evaluate(
        """async (megabytes) => {
          const local = keep.storage.local;
          const wrong = [];
          const pid = keep.status().host.pid;
          const one = 'x'.repeat(megabytes * 1_000_000);
          await local.set({ one, small: 1 });
          if ((await local.get('one')).one !== one) wrong.push('alone');
          await local.remove('one');
          const many = {};
          for (let index = 0; index < megabytes; index += 1) {
            many[`key ${index}`] = String.fromCharCode(97 + (index % 26)).repeat(1_000_000);
          }
          await local.set(many);
          for (const [key, value] of Object.entries(many)) {
            if ((await local.get(key))[key] !== value) wrong.push(key);
          }
          if ((await local.get('small')).small !== 1) wrong.push('the next small get');
          if (keep.status().host.pid !== pid) wrong.push('the port was lost');
          await local.clear();
          return wrong;
        }""",
        megabytes,
    )
    assert wrong == []


async def test_many_small_entries_above_the_size_of_a_frame_come_back_equal(page: Page) -> None:
    make = """() => Array.from({ length: 60_000 }, (_, index) => ({
      flags: [true, null, index / 3], id: `entry "${index}"`, text: 'Grüße 😀'.repeat(index % 7),
    }))"""
    assert await page.evaluate(_SAME, make)


async def test_nesting_comes_back_equal_to_the_limit_and_is_refused_beyond_it(page: Page) -> None:
    outcomes = await page.evaluate("""async () => {
      const nested = (depth) => JSON.parse('['.repeat(depth) + ']'.repeat(depth));
      const outcomes = [];
      for (const depth of [100, 195, 196, 5000]) {
        const value = nested(depth);
        await keep.storage.local.set({ value }).then(
          async () => {
            const back = (await keep.storage.local.get('value')).value;
            outcomes.push(JSON.stringify(back) === JSON.stringify(value));
          },
          (error) => outcomes.push(error.kind),
        );
      }
      return outcomes;
    }""")
    assert outcomes == [True, True, "tooLarge", "tooLarge"]


async def test_2000_calls_of_one_tick_travel_in_one_frame(browser: Browser) -> None:
    page = await browser.page(spy=True)
    frames, wrong = await page.evaluate("""async () => {
      const local = keep.storage.local;
      await local.clear();
      const numbers = Array.from({ length: 2000 }, (_, index) => index);
      spy.frames.length = 0;
      await Promise.all(numbers.map((number) => local.set({ [`key ${number}`]: { number } })));
      const frames = spy.frames.map((frame) => frame.length);
      const got = await Promise.all(numbers.map((number) => local.get(`key ${number}`)));
      const wrong = numbers.filter((number) => got[number][`key ${number}`]?.number !== number);
      frames.push(spy.frames.at(-1).length, spy.frames.length);
      return [frames, wrong];
    }""")
    assert frames == [2000, 2000, 2]
    assert wrong == []


async def test_the_area_cannot_be_told_from_the_real_one(page: Page) -> None:
    program = Path(__file__).with_name("differential.js").read_text(encoding="utf-8")
    token = await page.evaluate("chrome.storage.local.get('sidekeep:profile')")
    try:
        differences = await page.evaluate(program.rstrip().rstrip(";"))
    finally:
        await page.evaluate("(token) => chrome.storage.local.set(token)", token)
    assert differences == []
