"""Kind 1 of the field faults: the host does not start. Each test retells one of them."""

from __future__ import annotations

import asyncio
import json
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness.sidekeep_host import refused
from tests.ops.fixtures import checkout, empty_machine, machine, prepared
from tests.ops.machine import DEMO_ID, HOST_NAME, ROOT, Machine, copy_checkout
from tests.ops.wheels import use_local_wheels

__all__ = ["checkout", "empty_machine", "machine", "prepared"]

CHROMIUM = ".config/chromium/NativeMessagingHosts"
FIREFOX = ".mozilla/native-messaging-hosts"
LETTERS = "abcdefghijklmnopabcdefghijklmnop"

LINUX_ROOTS = {
    ".config/google-chrome": ".config/google-chrome/NativeMessagingHosts",
    ".config/google-chrome-beta": ".config/google-chrome-beta/NativeMessagingHosts",
    ".config/google-chrome-unstable": ".config/google-chrome-unstable/NativeMessagingHosts",
    ".config/google-chrome-for-testing": ".config/google-chrome-for-testing/NativeMessagingHosts",
    ".config/chromium": ".config/chromium/NativeMessagingHosts",
    ".config/microsoft-edge": ".config/microsoft-edge/NativeMessagingHosts",
    ".config/microsoft-edge-beta": ".config/microsoft-edge-beta/NativeMessagingHosts",
    ".config/microsoft-edge-dev": ".config/microsoft-edge-dev/NativeMessagingHosts",
    ".config/BraveSoftware/Brave-Browser": (
        ".config/BraveSoftware/Brave-Browser/NativeMessagingHosts"
    ),
    ".config/BraveSoftware/Brave-Browser-Dev": (
        ".config/BraveSoftware/Brave-Browser-Dev/NativeMessagingHosts"
    ),
    ".config/BraveSoftware/Brave-Browser-Beta": (
        ".config/BraveSoftware/Brave-Browser-Beta/NativeMessagingHosts"
    ),
    ".config/BraveSoftware/Brave-Browser-Nightly": (
        ".config/BraveSoftware/Brave-Browser-Nightly/NativeMessagingHosts"
    ),
    ".config/vivaldi": ".config/vivaldi/NativeMessagingHosts",
    ".config/vivaldi-snapshot": ".config/vivaldi-snapshot/NativeMessagingHosts",
    ".config/opera": ".config/opera/NativeMessagingHosts",
    ".config/opera-beta": ".config/opera-beta/NativeMessagingHosts",
    ".config/opera-developer": ".config/opera-developer/NativeMessagingHosts",
    ".config/yandex-browser": ".config/yandex-browser/NativeMessagingHosts",
    ".mozilla": ".mozilla/native-messaging-hosts",
    ".librewolf": ".librewolf/native-messaging-hosts",
    ".waterfox": ".waterfox/native-messaging-hosts",
}

_SUPPORT = "Library/Application Support"
MAC_ROOTS = {
    f"{_SUPPORT}/{root}": f"{_SUPPORT}/{manifests or root}/NativeMessagingHosts"
    for root, manifests in {
        "Google/Chrome": "",
        "Google/Chrome Beta": "",
        "Google/Chrome Dev": "",
        "Google/Chrome Canary": "",
        "Google/ChromeForTesting": "",
        "Chromium": "",
        "Microsoft Edge": "",
        "Microsoft Edge Beta": "",
        "Microsoft Edge Dev": "",
        "BraveSoftware/Brave-Browser": "",
        "BraveSoftware/Brave-Browser-Dev": "",
        "Vivaldi": "",
        "Opera": "",
        "Yandex/YandexBrowser": "",
        "Firefox": "Mozilla",
        "LibreWolf": "",
        "Waterfox": "",
    }.items()
}


@pytest.mark.parametrize(
    "folder", ["snap/chromium/common/chromium", ".var/app/org.chromium.Chromium"]
)
def test_1_a_sandboxed_browser_is_named_as_unsupported_and_not_counted(
    machine: Machine, folder: str
) -> None:
    machine.browser(folder)
    result = machine.installed()
    (line,) = [line for line in result.out.splitlines() if folder in line]
    assert "Chromium" in line
    assert "not supported" in line
    assert "Install Chromium as an ordinary package" in line
    assert not line.startswith("ok")
    assert machine.manifests() == {}


async def test_3_a_host_starts_with_a_bare_path_from_the_root_folder(
    machine: Machine, tmp_path: Path
) -> None:
    import msgspec

    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    machine.python = str(venv / "bin" / "python")
    machine.environment["PYTHONPATH"] = str(Path(msgspec.__file__).parents[1])
    machine.browser(".config/chromium", ".config/google-chrome", ".mozilla")
    await asyncio.to_thread(machine.installed)
    manifests = machine.manifests()
    assert len(manifests) == 3
    for folder in manifests:
        async with machine.host(folder) as host:
            assert host.environment == {"HOME": str(machine.home), "PATH": "/usr/bin:/bin"}
            assert host.folder == "/"
            await asyncio.wait_for(host.hello(), 3)
            await host.ping()


async def test_4_spaces_and_foreign_letters_anywhere(tmp_path: Path, checkout: Path) -> None:
    source = copy_checkout(tmp_path / "our app (1)" / "x y é中", checkout)
    machine = Machine(tmp_path / "Jo Doe Ünï", source)
    machine.browser(".config/chromium", ".mozilla")
    machine.installed("--user-data-dir", machine.home / "my profile (2)")
    paths = list(machine.home.rglob(f"{HOST_NAME}.json"))
    manifests = [path for path in paths if machine.program not in path.parents]
    assert len(manifests) == 3
    for path in manifests:
        assert Path(json.loads(path.read_bytes())["path"]).is_absolute()
        async with machine.host(path.parent.relative_to(machine.home).as_posix()) as host:
            await host.hello()
            await host.ping()


@pytest.mark.parametrize(
    "text",
    [
        LETTERS,
        LETTERS.upper(),
        f"chrome-extension://{LETTERS}/",
        f"chrome-extension://{LETTERS}",
    ],
)
def test_6_every_spelling_of_an_id_becomes_one_origin(machine: Machine, text: str) -> None:
    machine.browser(".config/chromium", ".mozilla")
    machine.installed("--extension-id", text)
    manifests = machine.manifests()
    assert manifests[CHROMIUM]["allowed_origins"] == [f"chrome-extension://{LETTERS}/"]
    assert "allowed_extensions" not in manifests[CHROMIUM]
    assert manifests[FIREFOX]["allowed_extensions"]
    assert "allowed_origins" not in manifests[FIREFOX]


def test_6_two_ids_at_once_both_get_in(machine: Machine) -> None:
    machine.browser(".config/chromium")
    other = LETTERS[::-1]
    machine.installed("--extension-id", LETTERS, f"--extension-id={other}")
    assert machine.manifests()[CHROMIUM]["allowed_origins"] == [
        f"chrome-extension://{LETTERS}/",
        f"chrome-extension://{other}/",
    ]


@pytest.mark.parametrize(
    "text",
    [
        LETTERS[:31], "q" * 32, "z" * 32, LETTERS[:31] + "1", "", " ", "*",
        "chrome-extension://*/", "*@*", "http://example.org/", "--browser",
    ],
)  # fmt: skip
def test_6_a_bad_id_is_refused_with_a_reason_and_nothing_is_written(
    empty_machine: Machine, text: str
) -> None:
    empty_machine.browser(".config/chromium", ".mozilla")
    before = empty_machine.snapshot()
    result = empty_machine.install("--extension-id", LETTERS, "--extension-id", text)
    assert result.code == 2, result
    assert result.err.strip()
    assert empty_machine.snapshot() == before


def test_8_a_clone_with_windows_line_endings_asked_for_installs(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git = ["git", "-c", "safe.directory=*", "-c", "core.autocrlf=true"]
    command = [*git, "clone", "-q", "--no-hardlinks", str(ROOT), str(clone)]
    subprocess.run(command, check=True, capture_output=True)
    machine = Machine(tmp_path / "home", clone)
    machine.browser(".config/chromium")
    machine.installed()
    assert set(machine.manifests()) == {CHROMIUM}
    shipped = subprocess.run(
        [*git, "-C", str(clone), "ls-files", "*.sh", "*.py", "*.json", "*.txt"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert "install.sh" in shipped
    for name in shipped:
        assert b"\r" not in (clone / name).read_bytes(), name


def test_8_generated_files_have_unix_line_endings(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    for path in (machine.launcher, machine.command, machine.home / CHROMIUM):
        for file in [path] if path.is_file() else path.iterdir():
            assert b"\r" not in file.read_bytes()


async def test_10_a_removed_venv_does_not_matter_and_a_removed_python_is_named(
    machine: Machine, tmp_path: Path
) -> None:
    import msgspec

    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    machine.browser(".config/chromium")
    machine.python = None
    machine.path.insert(0, str(venv / "bin"))
    machine.environment = {
        "VIRTUAL_ENV": str(venv),
        "PYTHONPATH": str(Path(msgspec.__file__).parents[1]),
    }
    await asyncio.to_thread(machine.installed)
    shutil.rmtree(venv)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        await host.set({"a": "kept"})

    # The interpreter itself goes away, as when a distribution moves on.
    text = machine.launcher.read_text("utf-8")
    link = tmp_path / "python"
    link.symlink_to(tmp_path / "gone")
    broken = [f"python={link}" if line.startswith("python=") else line for line in text.split("\n")]
    machine.launcher.write_text("\n".join(broken), "utf-8")
    began = time.monotonic()
    result = machine.launch()
    assert time.monotonic() - began < 1
    assert result.code == 69
    assert result.out == ""
    (line,) = result.err.splitlines()
    assert str(link) in line
    assert "re-run install.sh" in line

    machine.path.pop(0)
    machine.environment = {}
    machine.python = sys.executable
    await asyncio.to_thread(machine.installed)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert await host.get() == {"a": "kept"}


def test_13_each_browser_gets_its_own_manifest_on_linux(machine: Machine) -> None:
    machine.browser(*LINUX_ROOTS)
    result = machine.installed()
    assert set(machine.manifests()) == set(LINUX_ROOTS.values())
    assert result.out.count("kept a value over a kill") == len(LINUX_ROOTS)
    data = machine.program / "data"
    before = machine.snapshot(leave_out=data)
    machine.installed()
    assert machine.snapshot(leave_out=data) == before


def test_13_each_browser_gets_its_own_manifest_on_macos(machine: Machine, tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "uname").write_text("#!/bin/sh\necho Darwin\n")
    (fake / "uname").chmod(0o755)
    machine.path.insert(0, str(fake))
    machine.system = "Darwin"
    shutil.rmtree(machine.home / ".local")
    machine.browser(*MAC_ROOTS)
    machine.installed()
    assert set(machine.manifests()) == set(MAC_ROOTS.values())
    assert not (machine.home / ".config").exists()
    assert not (machine.home / ".local" / "share").exists()
    data = machine.program / "data"
    before = machine.snapshot(leave_out=data)
    machine.installed()
    assert machine.snapshot(leave_out=data) == before
    assert machine.sidekeep("doctor").code == 0


@pytest.mark.parametrize("present", [".config/opera", ".config/vivaldi", ".config/chromium"])
def test_13_folders_of_absent_browsers_are_not_created(machine: Machine, present: str) -> None:
    machine.browser(present)
    machine.installed()
    folders = {path.name for path in (machine.home / ".config").iterdir()}
    assert folders == {Path(present).name}
    assert not (machine.home / ".mozilla").exists()


@pytest.mark.parametrize("browser", ["opera", "vivaldi"])
def test_13_opera_and_vivaldi_use_chromes_folders_as_a_second_place(
    machine: Machine, browser: str
) -> None:
    machine.browser(f".config/{browser}", ".config/google-chrome", ".config/chromium")
    machine.installed("--browser", browser)
    assert set(machine.manifests()) == {
        f".config/{browser}/NativeMessagingHosts",
        ".config/google-chrome/NativeMessagingHosts",
        ".config/chromium/NativeMessagingHosts",
    }


def test_15_without_wheels_it_stops_with_the_command_and_registers_nothing(
    empty_machine: Machine, tmp_path: Path
) -> None:
    """Only sources are to be had: nothing is built, whatever else is there."""
    machine = empty_machine
    machine.browser(".config/chromium")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    machine.python = str(tmp_path / "venv" / "bin" / "python")
    machine.checkout = copy_checkout(tmp_path / "checkout", machine.checkout)
    machine.environment = use_local_wheels(machine.checkout, tmp_path / "wheels")
    for wheel in (tmp_path / "wheels").glob("lmdb-*.whl"):
        wheel.rename(wheel.with_name("lmdb-3.0.0.tar.gz"))
    result = machine.install()
    assert result.code == 1, result
    assert "lmdb" in result.err
    assert "-m pip install" in result.err
    assert machine.manifests() == {}
    assert not machine.launcher.exists()


async def test_15_a_host_that_lost_lmdb_says_so_in_a_frame(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    (app,) = machine.apps
    shutil.rmtree(app / "libs" / "lmdb")
    async with machine.host(CHROMIUM) as host:
        with refused("unavailable") as caught:
            await host.hello()
        assert "storage unavailable" in caught.value.message
        await host.ping()
    # The next run of the installer mends it.
    await asyncio.to_thread(machine.installed)
    async with machine.host(CHROMIUM) as host:
        await host.hello()


def test_the_program_home_is_no_place_that_privacy_controls_or_sync_tools_touch(
    machine: Machine,
) -> None:
    machine.installed()
    parts = {part.lower() for part in machine.program.relative_to(machine.home).parts}
    assert not parts & {"documents", "desktop", "downloads", "dropbox", "onedrive"}
    assert stat.S_IMODE(machine.program.stat().st_mode) == 0o700


def test_a_launcher_takes_the_browsers_arguments_for_nothing_else(machine: Machine) -> None:
    """Hosts with sub-commands took the origin for one and ended."""
    machine.installed()
    for arguments in (
        [f"chrome-extension://{DEMO_ID}/"],
        [f"chrome-extension://{DEMO_ID}/", "--parent-window=0"],
    ):
        assert machine.launch(*arguments).code == 0
