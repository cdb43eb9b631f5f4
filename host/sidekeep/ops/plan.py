"""What an install would do, decided before anything is written.

Rules of this module: standard library only; it reads and decides, nothing else. ``--dry-run`` is
this module and a printout.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sidekeep import __version__
from sidekeep.ops.browsers import Sandbox, Target, find_sandboxes, find_targets, read_table
from sidekeep.ops.ids import unite
from sidekeep.ops.launcher import Launch, real_interpreter
from sidekeep.ops.libraries import find_importable, read_pins
from sidekeep.ops.options import Options
from sidekeep.ops.places import Places
from sidekeep.ops.program import HOST_LOCK, TOOLS_LOCK, is_complete, program_name, refuse_downgrade
from sidekeep.ops.state import State, allowed_ids


@dataclass(frozen=True)
class Plan:
    """What will be true after the install."""

    places: Places
    before: State
    launch: Launch
    data_dir: Path
    given: tuple[str, ...]
    targets: tuple[Target, ...]
    sandboxes: tuple[Sandbox, ...]

    @property
    def extensions(self) -> tuple[str, ...]:
        """The ids that the host lets in."""
        return allowed_ids(self.given)

    @property
    def left_data(self) -> Path | None:
        """A data folder in use until now that the host will no longer look at."""
        old = self.before.data_dir
        return old if old is not None and old != self.data_dir and old.exists() else None


def make_plan(places: Places, before: State, options: Options, root: Path) -> Plan:
    """Decide what installing from ``root`` means.

    Raises ``ConflictError`` for a downgrade and ``InvalidParams`` for unknown browsers.
    """
    if before.launch is not None:
        refuse_downgrade(before.launch.version)
    launch = Launch(real_interpreter(), places.apps / program_name(root))
    return plan_for(places, before, options, launch)


def plan_for(places: Places, before: State, options: Options, launch: Launch) -> Plan:
    """Decide the registration for a program folder that is known."""
    table = read_table(places)
    targets = find_targets(table, options.browsers, options.user_data_dirs)
    folders = {target.folder for target in targets}
    # Earlier registrations follow the ids, unless their browser is gone.
    targets += [
        target
        for target in before.targets
        if target.folder not in folders and target.manifest.exists()
    ]
    return Plan(
        places=places,
        before=before,
        launch=launch,
        data_dir=options.data_dir or before.data_dir or places.default_data,
        given=tuple(unite(before.given, [given.value for given in options.ids])),
        targets=tuple(targets),
        sandboxes=tuple(find_sandboxes(table)),
    )


def describe(plan: Plan, root: Path) -> list[str]:
    """Return the lines of a dry run."""
    places = plan.places
    there = is_complete(plan.launch.app)
    lines = [f"Sidekeep {__version__} would be installed like this; nothing has been touched.", ""]
    lines.append(f"interpreter   {plan.launch.interpreter}")
    lines.append(f"program       {plan.launch.app}{' (is there)' if there else ''}")
    if not there:
        for lock in (HOST_LOCK, TOOLS_LOCK):
            copied = find_importable(read_pins(root / "requirements" / lock)) is not None
            how = "copied from this Python" if copied else "pip would fetch them"
            lines.append(f"libraries     {lock}: {how}")
    lines.append(f"launcher      {places.launcher}")
    lines.append(f"configuration {places.config}")
    lines.append(f"data          {plan.data_dir}")
    lines.append(f"command       {places.command}, linked from {places.command_link}")
    lines += [f"extension     {value}" for value in plan.extensions]
    lines += [f"manifest      {target.manifest} for {target.title}" for target in plan.targets]
    if not plan.targets:
        lines.append("manifest      none, since no browser's folder was found")
    lines += [f"left out      {sandbox.title}: {sandbox.advice}" for sandbox in plan.sandboxes]
    return lines
