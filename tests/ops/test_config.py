"""The configuration, written by pydantic and read by a host with msgspec."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from sidekeep.config import HostConfig, load_host_config
from sidekeep.errors import UnavailableError
from sidekeep.ops.models import ConfigFile, to_bytes

GOOD = {"version": 1, "data_dir": "/data", "extensions": ["a" * 32, "x@y"]}


def test_what_is_written_is_what_the_host_reads(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    model = ConfigFile(data_dir="/dä ta", extensions=["a" * 32], map_size=None, max_size=5)
    path.write_bytes(to_bytes(model))
    assert load_host_config(str(path)) == HostConfig(1, "/dä ta", ["a" * 32], None, 5)


def test_sizes_may_be_absent(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD))
    config = load_host_config(str(path))
    assert (config.map_size, config.max_size) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        json.dumps({**GOOD, "version": 2}),
        json.dumps({**GOOD, "data_dir": "relative"}),
        json.dumps({**GOOD, "extensions": "a"}),
        json.dumps({**GOOD, "max_size": "big"}),
        json.dumps({"version": 1}),
    ],
)
def test_an_unreadable_file_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UnavailableError) as caught:
        load_host_config(str(path))
    assert str(path) in caught.value.message
    assert caught.value.next


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="No such file"):
        load_host_config(str(tmp_path / "config.json"))


@pytest.mark.parametrize(
    "change",
    [{"data_dir": "~/x"}, {"extensions": ["*"]}, {"max_size": 0}, {"version": 2}, {"more": 1}],
)
def test_a_wrong_configuration_is_never_written(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ConfigFile.model_validate({**GOOD, **change})


def test_reading_it_imports_neither_pydantic_nor_the_installer() -> None:
    code = "import sys, sidekeep.config; print(*sys.modules)"
    root = Path(__file__).resolve().parents[2] / "host"
    out = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(root)}, capture_output=True, check=True
    )
    loaded = out.stdout.decode().split()
    assert "msgspec" in loaded
    assert not [
        name for name in loaded if name.startswith(("pydantic", "sidekeep.ops", "click", "rich"))
    ]
