"""Carries out a plan: switch to the new program, register it, prove it, say what was seen.

Rules of this module: the new program is tried through a launcher of its own before anything that a
browser uses is changed, so a failure leaves an earlier install as it was. Files are written only
where their bytes differ. "Done" is said of what was seen to work and of nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sidekeep.errors import UnavailableError
from sidekeep.ops.files import make_folder, same_file, write_atomically
from sidekeep.ops.ids import CHROMIUM
from sidekeep.ops.launcher import Launch, launcher_text
from sidekeep.ops.manifests import write_manifest
from sidekeep.ops.models import ConfigFile, Registered, Registrations, to_bytes
from sidekeep.ops.places import MANIFEST_FILE, Places
from sidekeep.ops.plan import Plan
from sidekeep.ops.program import remove_unused
from sidekeep.ops.proof import WORKS, prove_launcher, prove_manifest
from sidekeep.ops.report import Row


@dataclass
class Report:
    """What an install did: rows for the table, further sentences, and whether all is well."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether everything that was done was seen to work."""
        return all(row.good is not False for row in self.rows)


def carry_out(plan: Plan) -> Report:
    """Install and register as planned.

    The program folder must be there already. Raises ``UnavailableError`` if the new program does
    not work; then nothing was switched or registered.
    """
    places = plan.places
    config = to_bytes(
        ConfigFile(
            data_dir=str(plan.data_dir),
            extensions=list(plan.extensions),
            map_size=plan.before.map_size,
            max_size=plan.before.max_size,
        )
    )
    launcher = launcher_text(plan.launch, "start.py", [str(places.config)])
    make_folder(places.launcher.parent)
    if not (
        same_file(places.launcher, launcher, 0o755) and same_file(places.config, config, 0o600)
    ):
        _try_before_switching(plan, config)
    report = Report()
    write_atomically(places.config, config, 0o600)
    write_atomically(places.launcher, launcher, 0o755)
    _install_command(plan, report)
    # The record comes first: a manifest that was written must be known to a later removal.
    _record(plan)
    for target in plan.targets:
        write_manifest(target, places.launcher, plan.extensions)
    previous = plan.before.launch.app if plan.before.launch else None
    remove_unused(places.apps, plan.launch.app, None if previous == plan.launch.app else previous)
    _prove(plan, report)
    return report


def _try_before_switching(plan: Plan, config: bytes) -> None:
    """Prove the new program with the new configuration through a launcher that nobody else uses."""
    places = plan.places
    folder = Path(tempfile.mkdtemp(prefix=".try-", dir=places.apps))
    try:
        trial_config = folder / "config.json"
        trial_config.write_bytes(config)
        trial = folder / "sidekeep-host"
        trial.write_bytes(launcher_text(plan.launch, "start.py", [str(trial_config)]))
        trial.chmod(0o755)
        problem = prove_launcher(
            trial, folder / MANIFEST_FILE, plan.extensions, places.home, plan.data_dir
        )
        if problem:
            raise UnavailableError(
                f"The new program does not work: {problem}. Nothing was registered or changed.",
                next="Mend the cause and run install.sh again.",
            )
    finally:
        shutil.rmtree(folder)


def _install_command(plan: Plan, report: Report) -> None:
    places = plan.places
    write_atomically(places.command, command_text(plan.launch, places), 0o755)
    link = places.command_link
    if link.is_symlink() and link.readlink() == places.command:
        return
    if link.is_symlink() or link.exists():
        report.notes.append(
            f"{link} belongs to something else and was left alone; the command is {places.command}"
        )
        return
    try:
        make_folder(link.parent)
        link.symlink_to(places.command)
    except OSError as error:
        report.notes.append(
            f"{link} could not be made ({error.strerror}); the command is {places.command}"
        )


def command_text(launch: Launch, places: Places) -> bytes:
    """Return the launcher of the ``sidekeep`` command; it is told its system and program home."""
    return launcher_text(launch, "command.py", [places.system, str(places.program)])


def _record(plan: Plan) -> None:
    record = Registrations(
        given=list(plan.given),
        manifests=[
            Registered(
                path=str(target.manifest),
                title=target.title,
                family="chromium" if target.family == CHROMIUM else "firefox",
            )
            for target in plan.targets
        ],
    )
    write_atomically(plan.places.registrations, to_bytes(record), 0o600)


def _prove(plan: Plan, report: Report) -> None:
    """Start the host from each manifest's own path as its browser would."""
    places = plan.places
    for target in plan.targets:
        problem = prove_manifest(
            target.manifest, target.family, plan.extensions, places.home, plan.data_dir
        )
        report.rows.append(
            Row(target.title, str(target.manifest), problem or WORKS, good=not problem)
        )
    if not plan.targets:
        launcher = places.launcher
        problem = prove_launcher(
            launcher,
            launcher.parent / MANIFEST_FILE,
            plan.extensions,
            places.home,
            plan.data_dir,
        )
        report.rows.append(Row("no browser", str(launcher), problem or WORKS, good=not problem))
    report.rows += [
        Row(f"{sandbox.title} ({sandbox.kind})", str(sandbox.root), sandbox.advice, good=None)
        for sandbox in plan.sandboxes
    ]
