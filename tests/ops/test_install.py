"""install.sh from end to end: what it writes, what it proves, what it leaves alone."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from tests.ops.machine import DEMO_ADDON, DEMO_ID, Machine, copy_checkout

CHROMIUM = ".config/chromium/NativeMessagingHosts"
FIREFOX = ".mozilla/native-messaging-hosts"


def test_a_first_install_registers_proves_and_says_so(empty_machine: Machine) -> None:
    machine = empty_machine
    machine.browser(".config/chromium", ".mozilla")
    result = machine.installed()
    manifests = machine.manifests()
    assert set(manifests) == {CHROMIUM, FIREFOX}
    assert manifests[CHROMIUM]["allowed_origins"] == [f"chrome-extension://{DEMO_ID}/"]
    assert manifests[FIREFOX]["allowed_extensions"] == [DEMO_ADDON]
    for folder, content in manifests.items():
        assert content["path"] == str(machine.launcher)
        (line,) = [line for line in result.out.splitlines() if folder in line]
        assert line.startswith("ok ")
        assert "kept a value over a kill" in line
    assert machine.config == {
        "version": 1,
        "data_dir": str(machine.program / "data"),
        "extensions": [DEMO_ID, DEMO_ADDON],
    }


def test_the_proof_leaves_no_trace_in_the_data_folder(machine: Machine) -> None:
    machine.browser(".config/chromium", ".mozilla")
    machine.installed()
    assert list((machine.program / "data").rglob("*")) == []


def test_program_home_and_configuration_belong_to_the_user_alone(machine: Machine) -> None:
    shutil.rmtree(machine.program)
    machine.installed()
    assert stat.S_IMODE(machine.program.stat().st_mode) == 0o700
    assert stat.S_IMODE((machine.program / "config.json").stat().st_mode) == 0o600


async def test_an_installed_host_serves_each_browser(machine: Machine) -> None:
    machine.browser(".config/chromium", ".mozilla")
    machine.installed()
    for folder in (CHROMIUM, FIREFOX):
        async with machine.host(folder) as host:
            await host.hello()
            await host.set({"from": folder})
        async with machine.host(folder) as host:
            await host.hello()
            assert await host.get() == {"from": folder}


async def test_the_libraries_of_a_host_are_lmdb_msgspec_and_pillow_alone(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    (app,) = machine.apps
    names = {path.name for path in (app / "libs").iterdir() if path.suffix != ".dist-info"}
    assert names - {"pillow.libs"} == {"lmdb", "msgspec", "PIL"}
    compiled = list((app / "sidekeep" / "__pycache__").glob("__main__.*.pyc"))
    assert compiled
    # Bit 0 of the flags: hash-based; bit 1 clear: the source is not looked at (PEP 552).
    assert compiled[0].read_bytes()[4:8] == b"\x01\0\0\0"


def test_a_second_run_changes_nothing(machine: Machine) -> None:
    machine.browser(".config/chromium", ".config/google-chrome", ".mozilla")
    machine.installed()
    data = machine.program / "data"
    before = machine.snapshot(leave_out=data)
    machine.installed()
    assert machine.snapshot(leave_out=data) == before


def test_a_dry_run_touches_nothing_and_names_what_it_would_write(empty_machine: Machine) -> None:
    machine = empty_machine
    machine.browser(".config/chromium", "snap/chromium/common/chromium")
    before = machine.snapshot()
    result = machine.installed("--dry-run", "--data-dir", machine.home / "elsewhere")
    assert machine.snapshot() == before
    for text in (CHROMIUM, str(machine.launcher), DEMO_ID, "elsewhere", "not supported"):
        assert text in result.out


def test_without_a_browser_it_installs_proves_and_says_how_to_go_on(machine: Machine) -> None:
    result = machine.installed()
    assert machine.manifests() == {}
    assert "no browser that can use Sidekeep was found" in result.out
    assert "sidekeep register" in result.out
    assert "kept a value over a kill" in result.out


async def test_deleting_the_checkout_breaks_nothing(tmp_path: Path, checkout: Path) -> None:
    checkout = copy_checkout(tmp_path / "our app (1) ü" / "x y", checkout)
    machine = Machine(tmp_path / "Jo Döe's" / "home", checkout)
    machine.browser(".config/chromium")
    machine.installed()
    shutil.rmtree(checkout.parent)
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        await host.set({"a": 1})
    result = machine.sidekeep("doctor")
    assert result.code == 0, result
    removed = machine.sidekeep("uninstall", "--yes")
    assert removed.code == 0, removed
    assert machine.manifests() == {}


def test_the_checkout_is_not_written_to(tmp_path: Path, checkout: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout", checkout)
    before = sorted(checkout.rglob("*"))
    Machine(tmp_path / "home", checkout).installed()
    assert sorted(checkout.rglob("*")) == before


def test_a_data_folder_can_be_chosen_and_is_remembered(machine: Machine, tmp_path: Path) -> None:
    machine.browser(".config/chromium")
    chosen = tmp_path / "my däta"
    machine.installed("--data-dir", chosen)
    assert machine.config["data_dir"] == str(chosen)
    machine.installed()
    assert machine.config["data_dir"] == str(chosen)


def test_moving_the_data_folder_says_that_the_old_data_stays(
    machine: Machine, tmp_path: Path
) -> None:
    machine.installed("--data-dir", tmp_path / "one")
    result = machine.installed("--data-dir", tmp_path / "two")
    assert f"the stores in {tmp_path / 'one'} stay there" in result.out


def test_a_user_data_dir_is_registered_besides_the_browsers_found(
    machine: Machine, tmp_path: Path
) -> None:
    machine.browser(".config/chromium")
    folder = tmp_path / "profile 1"
    machine.installed("--user-data-dir", folder, "--user-data-dir", f"{folder} b")
    assert (folder / "NativeMessagingHosts" / "org.sidekeep.host.json").is_file()
    assert (tmp_path / "profile 1 b" / "NativeMessagingHosts").is_dir()
    assert set(machine.manifests()) == {CHROMIUM}


@pytest.mark.parametrize(
    "options",
    [
        ["--nonsense"],
        ["--browser", "netscape"],
        ["--browser"],
        ["--user-data-dir", ""],
        ["--user-data-dir", "/etc/passwd"],
        ["--user-data-dir", "/tmp/a\nb"],
        ["--data-dir", "/tmp/caf\udce9"],
        ["--data-dir", ""],
        ["surplus"],
        ["--extension-id"],
    ],
)
def test_wrong_options_end_with_2_and_write_nothing(
    empty_machine: Machine, options: list[str]
) -> None:
    empty_machine.browser(".config/chromium")
    before = empty_machine.snapshot()
    result = empty_machine.install(*options)
    assert result.code == 2, result
    assert result.err.strip()
    assert empty_machine.snapshot() == before


def test_an_unusable_data_folder_registers_nothing(machine: Machine, tmp_path: Path) -> None:
    machine.browser(".config/chromium")
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    result = machine.install("--data-dir", blocked / "data")
    assert result.code == 1, result
    assert "Nothing was registered" in result.err
    assert machine.manifests() == {}
    assert not machine.launcher.exists()


def test_a_damaged_configuration_is_not_guessed_at(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    (machine.program / "config.json").write_text('{"version": 1,')
    result = machine.install()
    assert result.code == 1, result
    assert "config.json" in result.err
    assert (machine.program / "config.json").read_text() == '{"version": 1,'


def test_a_foreign_file_in_the_users_bin_is_left_alone(machine: Machine) -> None:
    foreign = machine.home / ".local" / "bin" / "sidekeep"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    result = machine.installed()
    assert foreign.read_text() == "mine"
    assert "was left alone" in result.out
    assert machine.sidekeep("--version").code == 0


def test_the_command_is_linked_where_shells_look(machine: Machine) -> None:
    machine.installed()
    link = machine.home / ".local" / "bin" / "sidekeep"
    result = machine.run([link, "--version"])
    assert result.code == 0, result


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix"), ("bash",)])
def test_every_posix_shell_will_do(machine: Machine, shell: tuple[str, ...]) -> None:
    machine.browser(".config/chromium")
    machine.shell = shell
    machine.installed()
    assert set(machine.manifests()) == {CHROMIUM}


def test_help_needs_no_python_and_explains_every_option(empty_machine: Machine) -> None:
    empty_machine.python = None
    empty_machine.path = ["/bin"]
    result = empty_machine.installed("--help")
    for option in (
        "--extension-id", "--browser", "--user-data-dir", "--data-dir",
        "--python", "--dry-run", "--uninstall", "--help",
    ):  # fmt: skip
        assert option in result.out
    assert empty_machine.snapshot() == {}


def test_several_files_are_replaced_whole_even_if_they_were_damaged(machine: Machine) -> None:
    machine.browser(".config/chromium")
    machine.installed()
    (app,) = machine.apps
    (app / "sidekeep" / "errors.py").write_text("broken")
    machine.launcher.write_text("broken")
    (machine.home / CHROMIUM / "org.sidekeep.host.json").write_text("broken")
    machine.installed()
    assert machine.apps == [app]
    assert machine.sidekeep("doctor").code == 0


def test_sizes_set_by_hand_stay_in_the_configuration(machine: Machine) -> None:
    machine.installed()
    config = machine.program / "config.json"
    config.write_text(json.dumps({**machine.config, "max_size": 10_000_000}))
    machine.installed("--browser", "chromium")
    assert machine.config["max_size"] == 10_000_000


async def test_a_locale_that_is_not_utf8_changes_no_path(tmp_path: Path, checkout: Path) -> None:
    machine = Machine(tmp_path / "Jo Döe", checkout)
    machine.browser(".config/chromium")
    machine.environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    machine.installed("--data-dir", machine.home / "Dätä")
    async with machine.host(CHROMIUM) as host:
        await host.hello()
        assert Path((await host.status())["file"]).is_relative_to(machine.home / "Dätä")


def test_manifests_of_two_runs_stay_registered(machine: Machine) -> None:
    machine.installed("--browser", "edge")
    machine.installed("--browser", "chrome")
    record = json.loads((machine.program / "registrations.json").read_bytes())
    assert {entry["title"] for entry in record["manifests"]} == {"Microsoft Edge", "Google Chrome"}
    assert len(machine.manifests()) == 2
