"""What install.sh hands over to: install, dry run and removal.

Rules of this module: nothing outside the standard library is imported before the program folder
with the libraries is in place. Sentences, not tracebacks, for everything that can go wrong outside
this program. Exit codes: 0 if everything said to be done was seen to work, 1 if not, 2 for options
that make no sense (nothing was written then).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Carry out ``arguments`` (those of install.sh, and ``--system``); return the exit code."""
    from sidekeep.errors import InvalidParams, SidekeepError

    try:
        return _run(arguments)
    except SidekeepError as error:
        _say(f"sidekeep: {error.message}", *([error.next] if error.next else []))
        return 2 if isinstance(error, InvalidParams) else 1
    except OSError as error:
        _say(f"sidekeep: {error.filename or 'the system'}: {error.strerror or error}")
        return 1


def _run(arguments: list[str]) -> int:
    from sidekeep.ops import uninstall
    from sidekeep.ops.files import exclusive, make_folder
    from sidekeep.ops.options import parse_arguments
    from sidekeep.ops.places import find_places
    from sidekeep.ops.plan import describe, make_plan
    from sidekeep.ops.program import build, source_root
    from sidekeep.ops.state import read_state

    system, options = parse_arguments(arguments)
    places = find_places(system, os.environ)
    root = source_root()
    if options.uninstall:
        work = uninstall.describe if options.dry_run else uninstall.uninstall
        for line in work(places):
            sys.stdout.write(line + "\n")
        return 0
    if options.dry_run:
        plan = make_plan(places, read_state(places), options, root)
        sys.stdout.write("\n".join(describe(plan, root)) + "\n")
        return 0
    make_plan(places, read_state(places), options, root)  # refuses before anything is written
    make_folder(places.program, 0o700)
    with exclusive(places.lock):
        plan = make_plan(places, read_state(places), options, root)
        make_folder(places.apps)
        app = build(root, places.apps, plan.launch.app.name)
        sys.path[:0] = [str(app / "libs"), str(app / "tools")]
        from sidekeep.ops.install import carry_out
        from sidekeep.ops.summary import print_summary

        report = carry_out(plan)
    print_summary(plan, report)
    return 0 if report.good else 1


def _say(*lines: str) -> None:
    sys.stderr.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    # Run as a file, so that sys.path starts with this folder; the package's root has to take its
    # place.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    sys.exit(main(sys.argv[1:]))
