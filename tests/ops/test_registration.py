"""Whose extension may use the host, over one and several installs."""

from __future__ import annotations

import pytest

from tests.harness.sidekeep_host import refused
from tests.ops.machine import DEMO_ADDON, DEMO_ID, Machine

ONE = "abcdefghijklmnopabcdefghijklmnop"
TWO = "ponmlkjihgfedcbaponmlkjihgfedcba"
ADDON = "panel@example.org"
CHROMIUM = ".config/chromium/NativeMessagingHosts"
FIREFOX = ".mozilla/native-messaging-hosts"


@pytest.fixture(autouse=True)
def browsers(machine: Machine) -> None:
    machine.browser(".config/chromium", ".mozilla")


def origins(machine: Machine) -> list[str]:
    allowed = machine.manifests()[CHROMIUM]["allowed_origins"]
    assert isinstance(allowed, list)
    return allowed


def test_a_given_id_takes_the_place_of_the_demo(machine: Machine) -> None:
    machine.installed()
    machine.installed("--extension-id", ONE)
    assert origins(machine) == [f"chrome-extension://{ONE}/"]
    assert machine.config["extensions"] == [ONE, DEMO_ADDON]


def test_ids_of_several_installs_are_united_in_every_manifest(machine: Machine) -> None:
    machine.installed("--extension-id", ONE, "--browser", "chrome")
    machine.installed("--extension-id", TWO)
    machine.installed()
    manifests = machine.manifests()
    for folder in (CHROMIUM, ".config/google-chrome/NativeMessagingHosts"):
        assert manifests[folder]["allowed_origins"] == [
            f"chrome-extension://{ONE}/",
            f"chrome-extension://{TWO}/",
        ]
    assert machine.config["extensions"] == [ONE, TWO, DEMO_ADDON]


def test_the_demo_id_given_by_hand_stays_beside_others(machine: Machine) -> None:
    machine.installed("--extension-id", DEMO_ID)
    machine.installed("--extension-id", ONE)
    assert machine.config["extensions"] == [DEMO_ID, ONE, DEMO_ADDON]


def test_a_firefox_id_replaces_the_demo_of_firefox_alone(machine: Machine) -> None:
    machine.installed("--extension-id", ADDON)
    assert machine.config["extensions"] == [DEMO_ID, ADDON]
    assert machine.manifests()[FIREFOX]["allowed_extensions"] == [ADDON]


async def test_the_host_lets_in_exactly_the_ids_of_the_manifest(machine: Machine) -> None:
    machine.installed("--extension-id", ONE, "--extension-id", ADDON)
    for folder, own in ((CHROMIUM, ONE), (FIREFOX, ADDON)):
        async with machine.host(folder, extension=own) as host:
            await host.hello()
    for folder, stranger in ((CHROMIUM, DEMO_ID), (FIREFOX, DEMO_ADDON)):
        async with machine.host(folder, extension=stranger) as host:
            with refused("forbidden"):
                await host.hello()


def test_register_adds_browsers_and_ids_like_the_installer(machine: Machine) -> None:
    machine.installed("--extension-id", ONE)
    result = machine.sidekeep("register", "--browser", "edge", "--extension-id", TWO.upper())
    assert result.code == 0, result
    assert machine.config["extensions"] == [ONE, TWO, DEMO_ADDON]
    assert set(machine.manifests()) == {
        CHROMIUM,
        FIREFOX,
        ".config/microsoft-edge/NativeMessagingHosts",
    }


def test_register_finds_a_browser_that_came_later(machine: Machine) -> None:
    machine.installed()
    machine.browser(".config/vivaldi")
    assert machine.sidekeep("register").code == 0
    assert ".config/vivaldi/NativeMessagingHosts" in machine.manifests()


def test_register_refuses_a_bad_id_and_changes_nothing(machine: Machine) -> None:
    machine.installed()
    before = machine.snapshot()
    result = machine.sidekeep("register", "--extension-id", "*")
    assert result.code == 2, result
    assert "wildcard" in result.err
    assert machine.snapshot() == before


def test_unregister_takes_one_browser_back(machine: Machine) -> None:
    machine.browser(".config/opera", ".config/google-chrome")
    machine.installed()
    result = machine.sidekeep("unregister", "--browser", "opera")
    assert result.code == 0, result
    assert set(machine.manifests()) == {
        CHROMIUM,
        FIREFOX,
        ".config/google-chrome/NativeMessagingHosts",
    }


def test_unregister_takes_everything_back_and_keeps_the_program(machine: Machine) -> None:
    machine.installed()
    assert machine.sidekeep("unregister").code == 0
    assert machine.manifests() == {}
    assert machine.sidekeep("doctor").code == 1
    assert machine.sidekeep("register").code == 0
    assert set(machine.manifests()) == {CHROMIUM, FIREFOX}


def test_unregister_takes_an_id_back(machine: Machine) -> None:
    machine.installed("--extension-id", ONE, "--extension-id", TWO)
    assert machine.sidekeep("unregister", "--extension-id", ONE).code == 0
    assert origins(machine) == [f"chrome-extension://{TWO}/"]
    assert machine.config["extensions"] == [TWO, DEMO_ADDON]


def test_unregister_of_an_id_that_was_not_given_is_an_error(machine: Machine) -> None:
    machine.installed("--extension-id", ONE)
    for unknown in (TWO, DEMO_ID):
        result = machine.sidekeep("unregister", "--extension-id", unknown)
        assert result.code == 1, result
        assert unknown in result.err
    assert machine.config["extensions"] == [ONE, DEMO_ADDON]


def test_a_manifest_of_another_program_is_not_removed(machine: Machine) -> None:
    machine.installed()
    manifest = machine.home / CHROMIUM / "org.sidekeep.host.json"
    manifest.write_text('{"path": "/somewhere/else"}')
    result = machine.sidekeep("unregister")
    assert manifest.exists()
    assert "it starts something else" in result.out
