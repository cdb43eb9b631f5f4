"""The table of browsers and what is found with it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sidekeep.errors import InvalidParams, UnavailableError
from sidekeep.ops.browsers import (
    Browser,
    data_folder,
    find_sandboxes,
    find_targets,
    read_table,
)
from sidekeep.ops.ids import CHROMIUM, FIREFOX
from sidekeep.ops.places import Places, find_places


def places_for(home: Path, system: str = "Linux", **environment: str) -> Places:
    return find_places(system, {"HOME": str(home), **environment})


def table_for(home: Path, system: str = "Linux", **environment: str) -> list[Browser]:
    return read_table(places_for(home, system, **environment))


def test_every_row_is_complete_and_no_name_is_used_twice(tmp_path: Path) -> None:
    rows = json.loads((data_folder() / "browsers.json").read_text("utf-8"))["browsers"]
    for row in rows:
        allowed = {"name", "title", "family", "Linux", "Darwin"}
        assert allowed <= set(row)
        assert set(row) <= allowed | {"system", "windows", "second", "sandboxes"}
        assert row["family"] in {CHROMIUM, FIREFOX}
        assert row["Linux"] or row["Darwin"]
    for system in ("Linux", "Darwin"):
        table = table_for(tmp_path, system)
        assert max(Counter(browser.name for browser in table).values()) == 1
        for browser in table:
            assert all(path.manifests.is_relative_to(tmp_path) for path in browser.places)


def test_no_two_browsers_share_a_folder(tmp_path: Path) -> None:
    for system in ("Linux", "Darwin"):
        used = Counter(
            folder
            for browser in table_for(tmp_path, system)
            for folder in {place.manifests for place in browser.places}
        )
        assert max(used.values()) == 1


def test_second_places_name_browsers_of_the_table(tmp_path: Path) -> None:
    table = table_for(tmp_path)
    names = {browser.name for browser in table}
    with_second = {browser.name: browser.second for browser in table if browser.second}
    assert set(with_second) >= {"opera", "vivaldi"}
    assert all(set(second) <= names for second in with_second.values())


def test_only_browsers_whose_folder_exists_are_found(tmp_path: Path) -> None:
    (tmp_path / ".config" / "chromium").mkdir(parents=True)
    (tmp_path / ".config" / "google-chrome").write_text("a file is no browser")
    targets = find_targets(table_for(tmp_path), (), ())
    assert [target.manifest.relative_to(tmp_path).as_posix() for target in targets] == [
        ".config/chromium/NativeMessagingHosts/org.sidekeep.host.json"
    ]


def test_a_named_browser_is_found_without_a_folder_and_excludes_others(tmp_path: Path) -> None:
    (tmp_path / ".config" / "chromium").mkdir(parents=True)
    targets = find_targets(table_for(tmp_path), ["Edge"], ())
    assert [target.title for target in targets] == ["Microsoft Edge"]


def test_an_unknown_browser_is_refused_with_the_known_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams) as caught:
        find_targets(table_for(tmp_path), ["netscape"], ())
    assert "vivaldi" in (caught.value.next or "")


def test_a_browser_that_this_system_has_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParams):
        find_targets(table_for(tmp_path, "Linux"), ["edge-canary"], ())


def test_both_config_folders_count_when_xdg_names_another(tmp_path: Path) -> None:
    other = tmp_path / "other config"
    (other / "chromium").mkdir(parents=True)
    (tmp_path / ".config" / "chromium").mkdir(parents=True)
    targets = find_targets(table_for(tmp_path, XDG_CONFIG_HOME=str(other)), (), ())
    assert [target.folder.parent for target in targets] == [
        other / "chromium",
        tmp_path / ".config" / "chromium",
    ]


def test_a_folder_reached_twice_gets_one_manifest(tmp_path: Path) -> None:
    (tmp_path / ".config" / "chromium").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / ".config")
    table = table_for(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "linked"))
    assert len(find_targets(table, (), ())) == 1


def test_opera_alone_does_not_create_chromes_folder(tmp_path: Path) -> None:
    (tmp_path / ".config" / "opera").mkdir(parents=True)
    assert [target.title for target in find_targets(table_for(tmp_path), (), ())] == ["Opera"]


def test_vivaldi_by_name_takes_existing_chrome_folders_as_second_places(tmp_path: Path) -> None:
    for name in ("vivaldi", "google-chrome", "chromium"):
        (tmp_path / ".config" / name).mkdir(parents=True)
    targets = find_targets(table_for(tmp_path), ["vivaldi"], ())
    assert [target.folder.parent.name for target in targets] == [
        "vivaldi",
        "google-chrome",
        "chromium",
    ]


def test_new_firefox_profiles_still_lead_to_the_old_manifest_folder(tmp_path: Path) -> None:
    (tmp_path / ".config" / "mozilla").mkdir(parents=True)
    targets = find_targets(table_for(tmp_path), (), ())
    assert [target.folder for target in targets] == [tmp_path / ".mozilla/native-messaging-hosts"]


@pytest.mark.parametrize(
    ("folder", "title"),
    [
        ("snap/chromium/common/chromium", "Chromium"),
        ("snap/firefox/common/.mozilla", "Firefox"),
        (".var/app/org.chromium.Chromium", "Chromium"),
        (".var/app/org.mozilla.firefox", "Firefox"),
        (".var/app/com.google.Chrome", "Google Chrome"),
        (".var/app/com.brave.Browser", "Brave"),
    ],
)
def test_snaps_and_flatpaks_are_found_and_are_no_targets(
    tmp_path: Path, folder: str, title: str
) -> None:
    (tmp_path / folder).mkdir(parents=True)
    table = table_for(tmp_path)
    (sandbox,) = find_sandboxes(table)
    assert sandbox.title == title
    assert "not supported" in sandbox.advice
    assert "Install" in sandbox.advice
    assert find_targets(table, (), ()) == []


def test_the_shell_help_names_only_browsers_of_the_table(tmp_path: Path) -> None:
    text = (data_folder().parent / "install.sh").read_text("utf-8")
    line = next(line for line in text.splitlines() if "chrome-beta, chromium" in line)
    named = {word.strip() for word in line.split(",")} - {"...", ""}
    assert named <= {browser.name for browser in table_for(tmp_path)}


def test_other_systems_and_homes_are_refused() -> None:
    with pytest.raises(UnavailableError):
        find_places("FreeBSD", {"HOME": "/home/a"})
    for home in ("", "relative", "/a\nb", "/caf\udce9"):
        with pytest.raises(UnavailableError):
            find_places("Linux", {"HOME": home})


def test_relative_xdg_folders_count_as_unset() -> None:
    places = find_places("Linux", {"HOME": "/h", "XDG_DATA_HOME": "x", "XDG_CONFIG_HOME": "y"})
    assert places.program == Path("/h/.local/share/sidekeep")
    assert places.config_bases == (Path("/h/.config"),)


def test_xdg_data_home_moves_the_program_home_on_linux_only() -> None:
    environment = {"HOME": "/h", "XDG_DATA_HOME": "/data"}
    assert find_places("Linux", environment).program == Path("/data/sidekeep")
    mac = find_places("Darwin", environment).program
    assert mac == Path("/h/Library/Application Support/Sidekeep")
