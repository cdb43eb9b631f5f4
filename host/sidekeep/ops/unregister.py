"""Takes back what ``register`` did: manifests of some or all browsers, or one extension's id.

Rules of this module: the record and the configuration follow what lies on the disk; manifests of
other programs are left alone; program and data stay.
"""

from __future__ import annotations

from pathlib import Path

from sidekeep.errors import NotFoundError
from sidekeep.ops.browsers import Target, named_browsers, read_table
from sidekeep.ops.ids import DEMO_IDS
from sidekeep.ops.options import Options
from sidekeep.ops.places import MANIFEST_FILE, Places
from sidekeep.ops.plan import Plan
from sidekeep.ops.state import State
from sidekeep.ops.uninstall import known_manifests, remove_manifests


def without_ids(before: State, options: Options) -> tuple[str, ...]:
    """Return the given ids that remain.

    Raises ``NotFoundError`` for an id that was never given, so that a slip of the keyboard is not
    taken for a success.
    """
    unwanted = [given.value for given in options.ids]
    for value in unwanted:
        if value not in before.given:
            why = (
                "is the shipped extension's; it is let in while no other id is given"
                if value in DEMO_IDS.values()
                else "is not among those let in"
            )
            raise NotFoundError(f"The id {value} {why}.", next="`sidekeep doctor` lists the ids.")
    return tuple(value for value in before.given if value not in unwanted)


def unwanted_manifests(places: Places, before: State, options: Options) -> list[Path]:
    """Return the manifests to remove: those of the named browsers and folders, or all."""
    if not options.browsers and not options.user_data_dirs:
        return [] if options.ids else known_manifests(places, before)
    folders = [
        place.manifests
        for browser in named_browsers(read_table(places), options.browsers)
        for place in browser.places
    ]
    folders += [folder / "NativeMessagingHosts" for folder in options.user_data_dirs]
    return [folder / MANIFEST_FILE for folder in folders]


def remaining_targets(before: State, removed: list[Path]) -> tuple[Target, ...]:
    """Return the earlier registrations that stay."""
    return tuple(
        target
        for target in before.targets
        if target.manifest not in removed and target.manifest.exists()
    )


def take_back(places: Places, before: State, options: Options) -> tuple[Plan, list[str]]:
    """Remove the unwanted manifests; return the plan of what remains, and what was done.

    The plan is carried out like any other, which writes the shorter list of ids everywhere.
    Raises ``NotFoundError`` if nothing is installed.
    """
    if before.launch is None:
        raise NotFoundError("Sidekeep is not installed here.", next="Run install.sh.")
    given = without_ids(before, options)
    unwanted = unwanted_manifests(places, before, options)
    lines = remove_manifests(places, unwanted)
    plan = Plan(
        places=places,
        before=before,
        launch=before.launch,
        data_dir=before.data_dir or places.default_data,
        given=given,
        targets=remaining_targets(before, unwanted),
        sandboxes=(),
    )
    return plan, lines
