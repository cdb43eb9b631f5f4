"""Runs site_cache_simulation.mjs: ten thousand tabs, real hosts, kills in between."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.sidekeep_host import ORIGIN, Sandbox

SCRIPT = Path(__file__).with_name("site_cache_simulation.mjs")


@pytest.mark.parametrize("tabs", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_after_ten_thousand_tabs_and_kills_exactly_the_live_ones_have_records(
    sandbox: Sandbox, dice: random.Random, tabs: int
) -> None:
    node = shutil.which("node")
    assert node, "Node.js was not found"
    order = {"command": [*sandbox.command, ORIGIN], "tabs": tabs, "seed": dice.randrange(2**31)}
    run = subprocess.run(
        [node, SCRIPT, json.dumps(order)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    done = json.loads(run.stdout)
    print(done)  # noqa: T201 - pytest shows it on failure
    assert done["opened"] >= tabs
    assert done["hostKills"] + done["workerKills"] > 10
