"""Removal takes away what was installed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from tests.ops.machine import HOST_NAME, Machine

CHROMIUM = ".config/chromium/NativeMessagingHosts"


async def test_everything_goes_but_the_data(machine: Machine, tmp_path: Path) -> None:
    machine.browser(".config/chromium", ".mozilla", ".config/google-chrome")
    profile = tmp_path / "profile"
    machine.installed("--user-data-dir", profile)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        await host.set({"a": "kept"})
    result = machine.installed("--uninstall")
    data = machine.program / "data"
    assert str(data) in result.out
    assert machine.manifests() == {}
    assert not list(profile.rglob("*.json"))
    assert [path for path in machine.program.iterdir() if path != data] == []
    assert not (machine.home / ".local" / "bin" / "sidekeep").is_symlink()
    for folder in (".config/chromium", ".mozilla", ".config/google-chrome"):
        assert (machine.home / folder).is_dir()
        assert list((machine.home / folder).iterdir()) == []
    machine.installed()
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert await host.get() == {"a": "kept"}


def test_a_dry_run_of_a_removal_touches_nothing(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    before = sorted(machine.home.rglob("*"))
    result = machine.installed("--dry-run", "--uninstall")
    assert f"would remove {machine.home / CHROMIUM}" in result.out
    assert sorted(machine.home.rglob("*")) == before


def test_ids_given_before_a_removal_are_forgotten(machine: Machine) -> None:
    one = "abcdefghijklmnopabcdefghijklmnop"
    machine.installed("--extension-id", one)
    machine.installed("--uninstall")
    machine.installed()
    assert one not in machine.config["extensions"]


async def test_a_moved_data_folder_is_found_again(machine: Machine, tmp_path: Path) -> None:
    machine.browser(".config/chromium")
    chosen = tmp_path / "my data"
    machine.installed("--data-dir", chosen)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        await host.set({"a": "kept"})
    result = machine.installed("--uninstall")
    assert str(chosen) in result.out
    machine.installed()
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert await host.get() == {"a": "kept"}


def test_other_programs_files_stay(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    folder = machine.home / CHROMIUM
    (folder / "org.other.host.json").write_text("{}")
    foreign = machine.home / ".config/google-chrome/NativeMessagingHosts" / f"{HOST_NAME}.json"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(json.dumps({"path": "/somewhere/else"}))
    result = machine.installed("--uninstall")
    assert (folder / "org.other.host.json").exists()
    assert foreign.exists()
    assert f"left {foreign}" in result.out
    assert not (folder / f"{HOST_NAME}.json").exists()


def test_removing_twice_is_no_error(machine: Machine) -> None:
    machine.installed()
    machine.installed("--uninstall")
    machine.installed("--uninstall")


def test_removal_on_a_machine_without_an_install_leaves_nothing(empty_machine: Machine) -> None:
    empty_machine.installed("--uninstall")
    assert empty_machine.snapshot() == {}


def test_a_damaged_record_does_not_stop_the_removal(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    (machine.program / "registrations.json").write_text("{")
    machine.installed("--uninstall")
    assert machine.manifests() == {}
    assert not (machine.program / "app").exists()
    assert not (machine.program / "bin").exists()
