"""Manifests as they are written, and the check that must be at least as strict as Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sidekeep.ops.browsers import Target
from sidekeep.ops.ids import CHROMIUM, FIREFOX
from sidekeep.ops.manifests import check_manifest, make_manifest, write_manifest

ID = "abcdefghijklmnopabcdefghijklmnop"
OTHER = "ponmlkjihgfedcbaponmlkjihgfedcba"
ADDON = "panel@example.org"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "a launcher"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def good(program: Path) -> dict[str, Any]:
    return {
        "name": "org.sidekeep.host",
        "description": "d",
        "path": str(program),
        "type": "stdio",
        "allowed_origins": [f"chrome-extension://{ID}/"],
    }


def check(folder: Path, content: dict[str, Any] | str | bytes, family: str = CHROMIUM) -> list[str]:
    path = folder / "org.sidekeep.host.json"
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return check_manifest(path, family)


def test_each_family_gets_its_own_ids_and_its_own_field(program: Path) -> None:
    chromium = make_manifest(CHROMIUM, program, [ID, ADDON, OTHER]).model_dump()
    assert chromium["allowed_origins"] == [
        f"chrome-extension://{ID}/",
        f"chrome-extension://{OTHER}/",
    ]
    assert "allowed_extensions" not in chromium
    firefox = make_manifest(FIREFOX, program, [ID, ADDON]).model_dump()
    assert firefox["allowed_extensions"] == [ADDON]
    assert "allowed_origins" not in firefox
    for manifest in (chromium, firefox):
        assert manifest["name"] == "org.sidekeep.host"
        assert manifest["type"] == "stdio"
        assert manifest["path"] == str(program)
        assert manifest["description"]


def test_what_is_written_passes_the_check(tmp_path: Path, program: Path) -> None:
    for family in (CHROMIUM, FIREFOX):
        target = Target("x", family, tmp_path / family)
        assert write_manifest(target, program, [ID, ADDON])
        assert check_manifest(target.manifest, family) == []


def test_writing_the_same_again_touches_nothing(tmp_path: Path, program: Path) -> None:
    target = Target("x", CHROMIUM, tmp_path / "folder")
    assert write_manifest(target, program, [ID])
    before = target.manifest.stat()
    assert not write_manifest(target, program, [ID])
    after = target.manifest.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_manifest_that_is_a_link_becomes_a_file(tmp_path: Path, program: Path) -> None:
    target = Target("x", CHROMIUM, tmp_path / "folder")
    target.folder.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    target.manifest.symlink_to(elsewhere)
    assert write_manifest(target, program, [ID])
    assert not target.manifest.is_symlink()
    assert elsewhere.read_text() == "precious"


def test_a_good_manifest_has_no_problems(tmp_path: Path, program: Path) -> None:
    assert check(tmp_path, good(program)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("description", None),
        ("description", ""),
        ("type", "pipe"),
        ("type", None),
        ("name", "org.sidekeep.other"),
        ("name", "org.Sidekeep.host"),
        ("name", "org.side-keep.host"),
        ("name", "org..host"),
        ("path", "sidekeep-host"),
        ("path", "~/sidekeep-host"),
        ("path", "/nowhere/sidekeep-host"),
        ("path", "/"),
        ("path", 5),
        ("allowed_origins", None),
        ("allowed_origins", []),
        ("allowed_origins", f"chrome-extension://{ID}/"),
        ("allowed_origins", [f"chrome-extension://{ID}"]),
        ("allowed_origins", [f"chrome-extension://{ID}/", "chrome-extension://*/"]),
        ("allowed_origins", ["*"]),
        ("allowed_origins", [f"chrome-extension://{ID.upper()}/"]),
        ("allowed_origins", [f"chrome-extension://{ID[:31]}/"]),
        ("allowed_origins", [f"chrome-extension://{ID}/x"]),
        ("allowed_origins", [f"https://{ID}/"]),
        ("allowed_extensions", [ADDON]),
    ],
)
def test_what_chromium_refuses_is_a_problem(
    tmp_path: Path, program: Path, field: str, value: object
) -> None:
    content = good(program)
    content[field] = value
    if value is None:
        del content[field]
    problems = check(tmp_path, content)
    assert problems
    assert any(field in problem for problem in problems)


def test_a_program_that_may_not_be_executed_is_a_problem(tmp_path: Path, program: Path) -> None:
    program.chmod(0o644)
    (problem,) = check(tmp_path, good(program))
    assert "executed" in problem


def test_text_that_is_not_plain_json_is_a_problem(tmp_path: Path, program: Path) -> None:
    text = json.dumps(good(program))
    for broken in (
        text[:-1] + ",}",
        "// note\n" + text,
        "",
        "[]",
        "null",
        b"\xef\xbb\xbf",
        b"\xff",
    ):
        assert check(tmp_path, broken), broken
    missing = check_manifest(tmp_path / "nowhere.json", CHROMIUM)
    assert "cannot be read" in missing[0]


@pytest.mark.parametrize("ids", [[], ["nonsense"], ["*"], [f"chrome-extension://{ID}/"]])
def test_a_firefox_manifest_needs_real_addon_ids(
    tmp_path: Path, program: Path, ids: list[str]
) -> None:
    content = good(program)
    del content["allowed_origins"]
    assert check(tmp_path, {**content, "allowed_extensions": [ADDON]}, FIREFOX) == []
    assert check(tmp_path, {**content, "allowed_extensions": ids}, FIREFOX)
