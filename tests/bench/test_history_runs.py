"""The measurement of the calls for conversations runs: in a real Chromium, over little data."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240


@pytest.mark.browser
def test_every_work_with_conversations_is_measured_for_everybody_it_is_compared_with(
    tmp_path: Path,
) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "bench" / "history.py", "--quick", "--results", tmp_path],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    (result,) = tmp_path.iterdir()
    lines = json.loads(result.read_text(encoding="utf-8"))["lines"]
    compared = {line["title"]: set(line["samples"]) for line in lines}
    assert compared["append beside so many sessions"] == {
        "5 sessions",
        "20 sessions",
        "100 sessions",
    }
    assert compared["open as text"] == {"Sidekeep", "local", "C echo"}
    for line in lines:
        assert line["samples"], line["title"]
        assert all(sample > 0 for samples in line["samples"].values() for sample in samples), line
