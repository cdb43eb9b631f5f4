"""The areas beside the real ones: seeded random calls, and the table of wanted differences."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.harness.sidekeep_host import ROOT

from .driver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_RANDOM_CALLS = Path(__file__).with_name("random_calls.js").read_text(encoding="utf-8")
_OWN_KEYS = ["sidekeep:profile", "sidekeep:run"]


@dataclass(frozen=True)
class Difference:
    """A row of the table in ``docs/differences.md``."""

    number: str
    area: str
    call: str
    real: str
    ours: str
    random: str


def _table() -> list[Difference]:
    """Return the wanted differences, one for each area that a row names."""
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    rows = []
    for line in re.findall(r"^\| (\d+ \|.*) \|$", text, re.MULTILINE):
        number, areas, call, real, ours, _, excused = (cell.strip() for cell in line.split("|"))
        rows += [
            Difference(number, area, *(cell.strip("`") for cell in (call, real, ours, excused)))
            for area in areas.split(", ")
        ]
    assert len({row.number for row in rows}) >= 8, "the table was not read"
    return rows


@pytest_asyncio.fixture(loop_scope="session")
async def compared(browser: Browser) -> AsyncIterator[Page]:
    """Return a page that may empty the real areas: the stub's own keys are put back."""
    page = await browser.page()
    await page.evaluate("keep.storage.session.getKeys()")
    kept = {
        area: await page.evaluate(f"(keys) => chrome.storage.{area}.get(keys)", _OWN_KEYS)
        for area in ("local", "session")
    }
    yield page
    for area, items in kept.items():
        await page.evaluate(f"(items) => chrome.storage.{area}.set(items)", items)
        await page.evaluate(f"keep.storage.{area}.clear()")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of the calls: ``SIDEKEEP_SEED``, else a new one, which is printed."""
    given = os.environ.get("SIDEKEEP_SEED")
    seed = random.randrange(1 << 31) if given is None else int(given)
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f" random calls: repeat with SIDEKEEP_SEED={seed}")
    return seed


@pytest.mark.parametrize("area", ["local", "session"])
async def test_random_calls_give_what_the_real_area_gives(
    compared: Page, area: str, seed: int
) -> None:
    long = bool(os.environ.get("SIDEKEEP_LONG"))
    wanted = [row.random for row in _table() if row.random]
    outcome = await compared.evaluate(
        _RANDOM_CALLS.rstrip().rstrip(";"),
        {
            "seed": seed,
            "area": area,
            "calls": 50_000 if long else 1_000_000,
            "seconds": 3600 if long else 25,
            "wanted": wanted,
        },
    )
    calls, events = outcome["calls"], outcome["events"]
    print(f"{calls} calls and {events} events on {area}")  # noqa: T201
    for difference in outcome["differences"]:
        print(json.dumps(difference, indent=1))  # noqa: T201 - pytest would shorten it
    assert not outcome["differences"], f"SIDEKEEP_SEED={seed}"
    assert calls > (49_999 if long else 500)
    assert events > calls / 4


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row.number}-{row.area}") for row in _table()]
)
async def test_each_difference_of_the_table_is_as_it_says(compared: Page, row: Difference) -> None:
    found = []
    for storage in ("chrome.storage", "keep.storage"):
        found.append(
            await compared.evaluate(f"""async () => {{
              const A = {storage}.{row.area};
              await A.clear();
              const call = async () => {{ {row.call} }};
              const outcome = await call().then((value) => JSON.stringify(value), () => 'rejects');
              await A.clear();
              return outcome;
            }}""")
        )
    assert found == [row.real, row.ours]
