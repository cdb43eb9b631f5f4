"""The sidekeep command beside registration and doctor: status, get, keys, help."""

from __future__ import annotations

import json
import re

import pytest

from sidekeep import __version__
from tests.ops.machine import DEMO_ADDON, DEMO_ID, Machine

CHROMIUM = ".config/chromium/NativeMessagingHosts"
FIREFOX = ".mozilla/native-messaging-hosts"
BIG = "data:image/png;base64," + "QUJD" * 100_000


@pytest.fixture
async def filled(machine: Machine) -> Machine:
    """Return a machine on which two extensions have stored something."""
    machine.browser(".config/chromium", ".mozilla")
    machine.installed()
    async with machine.host(CHROMIUM) as host:
        await host.hello("profile-a")
        await host.set({"plain": {"é": [1, None]}, "big": {"shot": BIG}, "": "empty key"})
    async with machine.host(FIREFOX) as host:
        await host.hello("profile-b")
        await host.set({"fox": True})
    return machine


async def test_status_shows_each_store_with_its_size(filled: Machine) -> None:
    result = filled.sidekeep("status")
    assert result.code == 0, result
    (line,) = [line for line in result.out.splitlines() if DEMO_ID in line]
    assert "profile-a" in line
    assert "3 entries" in line
    assert str(filled.program / "data") in line
    (line,) = [line for line in result.out.splitlines() if DEMO_ADDON in line]
    assert "1 entries" in line


async def test_status_names_a_store_that_cannot_be_opened(filled: Machine) -> None:
    damaged = next((filled.program / "data" / DEMO_ID).rglob("store.mdb"))
    damaged.write_bytes(damaged.read_bytes()[:5000])
    result = filled.sidekeep("status")
    assert result.code == 1, result
    (line,) = [line for line in result.out.splitlines() if DEMO_ID in line]
    assert line.startswith("FAILED")
    assert damaged.stat().st_size == 5000
    assert "1 entries" in result.out
    result = filled.sidekeep("doctor")
    assert result.code == 1, result
    assert "cut short" in " ".join(result.out.split())
    result = filled.sidekeep("verify", "--extension", DEMO_ID)
    assert result.code == 1, result
    assert "Traceback" not in result.err


def test_status_without_any_store_says_where_they_will_be(machine: Machine) -> None:
    machine.installed()
    result = machine.sidekeep("status")
    assert result.code == 0, result
    assert str(machine.program / "data") in result.out


async def test_get_prints_a_value_as_json(filled: Machine) -> None:
    for key, value in (
        ("plain", {"é": [1, None]}),
        ("big", {"shot": BIG}),
        ("", "empty key"),
    ):
        result = filled.sidekeep("get", key, "--extension", DEMO_ID[:4])
        assert result.code == 0, result
        assert json.loads(result.out) == value


async def test_get_works_while_a_host_has_the_store_open(filled: Machine) -> None:
    async with filled.host(CHROMIUM) as host:
        await host.hello("profile-a")
        await host.set({"plain": "changed"})
        result = filled.sidekeep("get", "plain", "--extension", DEMO_ID)
    assert json.loads(result.out) == "changed"


async def test_keys_lists_keys_in_byte_order(filled: Machine) -> None:
    result = filled.sidekeep("keys", "--profile", "profile-a")
    assert [json.loads(line) for line in result.out.splitlines()] == ["", "big", "plain"]


async def test_an_unclear_choice_of_store_lists_what_there_is(filled: Machine) -> None:
    result = filled.sidekeep("keys")
    assert result.code == 2, result
    assert f"--extension {DEMO_ID} --profile profile-a" in result.err
    assert DEMO_ADDON in result.err


async def test_a_whole_word_wins_over_a_beginning(filled: Machine) -> None:
    async with filled.host(CHROMIUM) as host:
        await host.hello("profile-a2")
        await host.set({"other": 1})
    result = filled.sidekeep("keys", "--profile", "profile-a")
    assert result.code == 0, result
    assert "big" in result.out


async def test_a_missing_key_or_store_is_a_sentence(filled: Machine) -> None:
    result = filled.sidekeep("get", "nothing", "--profile", "profile-b")
    assert result.code == 1, result
    assert "There is no key 'nothing'" in result.err
    assert result.out == ""
    result = filled.sidekeep("keys", "--profile", "no-such")
    assert result.code == 1, result
    assert "There is no such store" in result.err


def test_before_the_first_call_there_is_no_store_yet(machine: Machine) -> None:
    machine.installed()
    for command in (["verify"], ["keys"], ["get", "key"]):
        result = machine.sidekeep(*command)
        assert result.code == 1, result
        assert "There is no store yet" in result.err


async def test_a_backup_made_in_use_can_be_restored_later(filled: Machine) -> None:
    copy = filled.home / "copy.mdb"
    async with filled.host(CHROMIUM) as host:
        await host.hello("profile-a")
        result = filled.sidekeep("backup", str(copy), "--profile", "profile-a")
        assert result.code == 0, result
        await host.remove(["big", "plain"])
        result = filled.sidekeep("restore", str(copy), "--profile", "profile-a")
        assert result.code == 1, result
        assert "close the browser" in result.err
    result = filled.sidekeep("restore", str(copy), "--profile", "profile-a")
    assert result.code == 0, result
    result = filled.sidekeep("get", "big", "--profile", "profile-a")
    assert json.loads(result.out) == {"shot": BIG}
    assert len(list((filled.program / "data" / DEMO_ID).rglob("store.mdb.*"))) == 1


async def test_verify_says_what_is_damaged(filled: Machine) -> None:
    result = filled.sidekeep("verify", "--profile", "profile-a")
    assert (result.code, result.out) == (0, "All is well.\n"), result
    path = next((filled.program / "data" / DEMO_ID).rglob("store.mdb"))
    content = path.read_bytes()
    assert b"empty key" in content
    path.write_bytes(content.replace(b"empty key", b"empty kez"))
    result = filled.sidekeep("verify", "--profile", "profile-a")
    assert result.code == 1, result
    assert "checksum" in result.out


def test_the_version_is_the_packages(machine: Machine) -> None:
    machine.installed()
    assert __version__ in machine.sidekeep("--version").out


def test_every_command_and_option_is_explained(machine: Machine) -> None:
    machine.installed()
    overview = machine.sidekeep("--help")
    assert overview.code == 0
    commands = re.findall(r"^  ([a-z]+)  ", overview.out.partition("Commands:")[2], re.M)
    assert set(commands) == {
        "backup", "doctor", "get", "keys", "register", "restore", "status", "uninstall",
        "unregister", "verify",
    }  # fmt: skip
    for name in commands:
        text = machine.sidekeep(name, "--help").out
        assert text.startswith(f"Usage: sidekeep {name}")
        for option in re.findall(r"^  (--[a-z-]+.*)$", text, re.M):
            assert re.search(r"\S {2,}\S", option) or option.rstrip().isupper() or " " in option


def test_a_command_that_makes_no_sense_ends_with_2(machine: Machine) -> None:
    machine.installed()
    assert machine.sidekeep("nonsense").code == 2
    assert machine.sidekeep("get").code == 2


def test_the_command_writes_nothing_into_its_program_folder(machine: Machine) -> None:
    machine.installed()
    before = machine.snapshot()
    machine.sidekeep("status")
    assert machine.snapshot() == before
