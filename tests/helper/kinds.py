"""A table of kinds beside the product's own: work that misbehaves on purpose."""

from __future__ import annotations

KINDS = {
    "work": "tests.helper.work",
    "thumbnails": "sidekeep.helper.thumbnails",
    "missing": "tests.helper.there_is_no_such_module",
    "no_jpeg": "tests.helper.no_jpeg",
}
