"""What a person reads when an install or a registration has ended."""

from __future__ import annotations

import os
import sys

from sidekeep.ops.install import Report
from sidekeep.ops.plan import Plan
from sidekeep.ops.report import show


def print_summary(plan: Plan, report: Report) -> None:
    """Print the table of what was seen to work, and what to know besides."""
    places = plan.places
    show(report.rows, ("browser", "manifest", "result"))
    lines = ["", f"extensions: {', '.join(plan.extensions)}", f"data: {plan.data_dir}"]
    if plan.left_data is not None:
        lines.append(
            f"note: the stores in {plan.left_data} stay there and are no longer used. To take them "
            f"along, close your browsers and move what is in that folder to {plan.data_dir}."
        )
    if not plan.targets:
        lines.append(
            "no browser that can use Sidekeep was found. When one is there, run install.sh again "
            "or `sidekeep register`; for a browser started with --user-data-dir=DIR run "
            "`sidekeep register --user-data-dir DIR`."
        )
    lines += [f"note: {note}" for note in report.notes]
    folder = str(places.command_link.parent)
    if folder not in os.environ.get("PATH", "").split(":"):
        lines.append(f"command: {places.command} ({folder} is not in your PATH)")
    else:
        lines.append("command: sidekeep (try `sidekeep doctor`)")
    if not report.good:
        lines.append("NOT everything works; see the table above.")
    sys.stdout.write("\n".join(lines) + "\n")
