"""Looks at an installation from the launcher to each manifest, and ends in real round trips.

Rules of this module: it changes nothing but the profile of its round trips; a check is at least as
strict as the browser's; "all is well" is only said after a host started through each manifest
worked; every fault comes with what to do.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from sidekeep.errors import SidekeepError
from sidekeep.ops.browsers import Browser, Target, find_sandboxes, find_targets, read_table
from sidekeep.ops.launcher import read_launcher
from sidekeep.ops.manifests import check_manifest, read_manifest
from sidekeep.ops.models import ChromiumManifest, ConfigFile, sentences
from sidekeep.ops.places import MANIFEST_FILE, Places
from sidekeep.ops.program import is_complete
from sidekeep.ops.proof import WORKS, prove_launcher, prove_manifest
from sidekeep.ops.report import Row
from sidekeep.ops.state import State, read_state

AGAIN = "run install.sh again"
REGISTER = "run `sidekeep register`"


def examine(places: Places) -> list[Row]:
    """Return one row for each thing looked at, in the order in which they depend on each other."""
    rows = [_program(places), _configuration(places)]
    try:
        state = read_state(places)
    except SidekeepError as error:
        return [*rows, Row("record", str(places.registrations), error.message, good=False)]
    if state.data_dir is not None:
        rows.append(_data(state.data_dir))
        if rows[0].good:  # the store's libraries are part of the program
            rows += _bad_stores(state.data_dir)
    table = read_table(places)
    manifests = _manifests(table, state)
    rows += [_registration(places, state, target) for target in manifests]
    if not manifests:
        rows.append(_unregistered(places, state))
    registered = {target.folder for target in manifests}
    rows += [
        Row(
            target.title,
            str(target.manifest),
            f"not registered; {REGISTER} if this browser should use Sidekeep",
            good=None,
        )
        for target in find_targets(table, (), ())
        if target.folder not in registered
    ]
    rows += [
        Row(f"{sandbox.title} ({sandbox.kind})", str(sandbox.root), sandbox.advice, good=None)
        for sandbox in find_sandboxes(table)
    ]
    return rows


def _bad_stores(data_dir: Path) -> list[Row]:
    """Return a row for each store that a host could not use."""
    from sidekeep.ops.stores import figures_of, find_stores

    return [
        Row(
            f"store of {store.extension}",
            str(store.folder),
            f"{figures['problem']} Restore a backup with `sidekeep restore`",
            good=False,
        )
        for store in find_stores(data_dir)
        if "problem" in (figures := figures_of(store))
    ]


def _program(places: Places) -> Row:
    title, file = "program", str(places.launcher)
    launch = read_launcher(places.launcher)
    if launch is None:
        return Row(title, file, f"the launcher is missing; {AGAIN}", good=False)
    if not os.access(launch.interpreter, os.X_OK):
        problem = f"the Python interpreter {launch.interpreter} is missing; {AGAIN}"
        return Row(title, file, problem, good=False)
    if not os.access(places.launcher, os.X_OK):
        return Row(title, file, f"the launcher may not be executed; {AGAIN}", good=False)
    if not is_complete(launch.app):
        problem = f"files in {launch.app} are missing or changed; {AGAIN}"
        return Row(title, file, problem, good=False)
    return Row(title, file, f"Sidekeep {launch.version} with {launch.interpreter}", good=True)


def _configuration(places: Places) -> Row:
    title, file = "configuration", str(places.config)
    try:
        config = ConfigFile.model_validate_json(places.config.read_bytes())
    except OSError as error:
        return Row(title, file, f"cannot be read: {error.strerror}; {AGAIN}", good=False)
    except ValidationError as error:
        return Row(title, file, f"{'; '.join(sentences(error))}; {AGAIN}", good=False)
    return Row(title, file, f"lets in {', '.join(config.extensions) or 'nobody'}", good=True)


def _data(data_dir: Path) -> Row:
    nearest = data_dir
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return Row("data", str(data_dir), f"{nearest} is not a folder", good=False)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return Row("data", str(data_dir), f"you may not write to {nearest}", good=False)
    return Row("data", str(data_dir), "can be written", good=True)


def _manifests(table: list[Browser], state: State) -> list[Target]:
    """Return the recorded manifests, and others of this name where any known browser looks."""
    found = {target.manifest: target for target in state.targets}
    for browser in table:
        user = [Target(browser.title, browser.family, place.manifests) for place in browser.places]
        machine = [
            Target(f"{browser.title} (whole machine)", browser.family, folder)
            for folder in browser.system_folders
        ]
        for target in (*user, *machine):
            if target.manifest.exists():
                found.setdefault(target.manifest, target)
    return list(found.values())


def _registration(places: Places, state: State, target: Target) -> Row:
    title, file = target.title, str(target.manifest)
    problems = check_manifest(target.manifest, target.family)
    if problems:
        text = f"the browser will not find the host: {'; '.join(problems)}; {REGISTER}"
        return Row(title, file, text, good=False)
    manifest = read_manifest(target.manifest, target.family)
    if Path(manifest.path) != places.launcher:
        text = f"starts another program, {manifest.path}; {REGISTER}"
        return Row(title, file, text, good=False)
    if isinstance(manifest, ChromiumManifest):
        callers = [text.split("/")[2] for text in manifest.allowed_origins]
    else:
        callers = list(manifest.allowed_extensions)
    strangers = [value for value in callers if value not in state.extensions]
    if strangers:
        text = f"lets in {', '.join(strangers)}, which the host refuses; {REGISTER}"
        return Row(title, file, text, good=False)
    problem = prove_manifest(
        target.manifest, target.family, callers, places.home, state.data_dir or places.default_data
    )
    return Row(title, file, problem or WORKS, good=not problem)


def _unregistered(places: Places, state: State) -> Row:
    """Try the host itself; that no browser knows it is a fault all the same."""
    launcher = places.launcher
    problem = prove_launcher(
        launcher,
        launcher.parent / MANIFEST_FILE,
        state.extensions,
        places.home,
        state.data_dir or places.default_data,
    )
    text = problem or (
        f"the host works, but no browser knows it; {REGISTER}, "
        "with --browser NAME if yours is not found"
    )
    return Row("registration", str(launcher), text, good=False)
