"""The doctor: nothing that a browser refuses may pass it, and each fault comes with a way out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ops.machine import HOST_NAME, Machine, Result

CHROMIUM = ".config/chromium/NativeMessagingHosts"
FIREFOX = ".mozilla/native-messaging-hosts"


@pytest.fixture
def installed(machine: Machine) -> Machine:
    machine.browser(".config/chromium", ".mozilla")
    machine.installed()
    return machine


def change(machine: Machine, **fields: Any) -> None:
    """Change fields of Chromium's manifest; ``None`` removes one."""
    path = machine.home / CHROMIUM / f"{HOST_NAME}.json"
    content = json.loads(path.read_bytes()) | fields
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def line_about(result: Result, text: str) -> str:
    (line,) = [line for line in result.out.splitlines() if text in line]
    return line


def test_a_good_install_is_called_well_after_round_trips(installed: Machine) -> None:
    result = installed.sidekeep("doctor")
    assert result.code == 0, result
    assert "All is well." in result.out
    for folder in (CHROMIUM, FIREFOX):
        assert "kept a value over a kill" in line_about(result, folder)


def test_the_doctor_changes_nothing(installed: Machine) -> None:
    data = installed.program / "data"
    before = installed.snapshot(leave_out=data)
    installed.sidekeep("doctor")
    assert installed.snapshot(leave_out=data) == before
    assert list(data.rglob("*")) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed_origins": ["chrome-extension://abcdefghijklmnopabcdefghijklmnop"]},
        {"allowed_origins": ["*"]},
        {"description": None},
        {"type": "pipe"},
        {"path": "sidekeep-host"},
        {"path": "/nowhere"},
        {"name": "org.sidekeep.other"},
    ],
)
def test_a_manifest_that_chromium_refuses_is_found(
    installed: Machine, fields: dict[str, Any]
) -> None:
    change(installed, **fields)
    result = installed.sidekeep("doctor")
    assert result.code == 1, result
    line = line_about(result, CHROMIUM)
    assert line.startswith("FAILED")
    assert next(iter(fields)) in line
    assert "sidekeep register" in line
    assert "kept a value" in line_about(result, FIREFOX)


def test_register_mends_what_the_doctor_found(installed: Machine) -> None:
    change(installed, type="pipe")
    assert installed.sidekeep("register").code == 0
    assert installed.sidekeep("doctor").code == 0


def test_a_manifest_that_starts_another_program_is_found(
    installed: Machine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copy2(installed.launcher, other)
    change(installed, path=str(other))
    result = installed.sidekeep("doctor")
    assert result.code == 1, result
    assert str(other) in line_about(result, CHROMIUM)


def test_an_id_that_the_host_refuses_is_found(installed: Machine) -> None:
    stranger = "ponmlkjihgfedcbaponmlkjihgfedcba"
    change(installed, allowed_origins=[f"chrome-extension://{stranger}/"])
    result = installed.sidekeep("doctor")
    assert result.code == 1, result
    assert stranger in line_about(result, CHROMIUM)


Damage = Callable[[Machine], None]


def break_start(machine: Machine) -> None:
    (app,) = machine.apps
    (app / "libs" / "lmdb" / "__init__.py").unlink()


def break_launcher(machine: Machine) -> None:
    machine.launcher.chmod(0o644)


def break_config(machine: Machine) -> None:
    (machine.program / "config.json").write_text('{"version": 1, "data_dir": "/x", "extra": 1}')


def block_data(machine: Machine) -> None:
    shutil.rmtree(machine.program / "data", ignore_errors=True)
    (machine.program / "data").write_text("in the way")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (break_start, "missing or changed"),
        (break_launcher, "may not be executed"),
        (break_config, "extra"),
        (block_data, "not a folder"),
    ],
)
def test_damage_is_named_with_the_way_out(installed: Machine, damage: Damage, words: str) -> None:
    damage(installed)
    result = installed.sidekeep("doctor")
    assert result.code == 1, result
    assert words in result.out
    assert "All is well" not in result.out


def test_a_host_that_does_not_start_is_never_called_well(installed: Machine) -> None:
    """Files are right as far as a look can tell; only the round trip shows the fault."""
    launcher = installed.launcher.read_text("utf-8")
    installed.launcher.write_text(launcher.replace("exec ", "echo hello; exec "), "utf-8")
    result = installed.sidekeep("doctor")
    assert result.code == 1, result
    assert "no frame" in line_about(result, CHROMIUM)


def test_a_browser_without_a_manifest_is_named(installed: Machine) -> None:
    installed.browser(".config/vivaldi", "snap/chromium/common/chromium")
    result = installed.sidekeep("doctor")
    assert result.code == 0, result
    assert "not registered" in line_about(result, ".config/vivaldi")
    assert "not supported" in line_about(result, "snap/chromium")


def test_without_any_registration_not_all_is_well(machine: Machine) -> None:
    machine.installed()
    result = machine.sidekeep("doctor")
    assert result.code == 1, result
    assert "no browser knows it" in result.out
