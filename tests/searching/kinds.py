"""The table of kinds with which the tests start a helper that searches."""

from __future__ import annotations

KINDS = {"search": "sidekeep.searching.job"}
