"""The whole surface: which module carries out which methods.

Rules:

* One typed struct per method. What a struct does not name is ignored, so that newer callers can
  talk to older hosts.
* A method turns parameters into one call of ``model`` and the outcome into JSON text. It holds no
  state; ``connection`` decides about transactions, order and errors.
* A module is imported by the first call of one of its methods.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidekeep.service.method import Method

MODULES = {
    "attachments": "sidekeep.service.attachments",
    "host": "sidekeep.service.host",
    "history": "sidekeep.service.history",
    "images": "sidekeep.service.images",
    "sessions": "sidekeep.service.sessions",
    "siteCache": "sidekeep.service.sites",
    "storage": "sidekeep.service.storage",
    "trash": "sidekeep.service.trash",
    "turns": "sidekeep.service.turns",
}


def find(name: str) -> Method | None:
    """Return the method of that name, or ``None``."""
    module = MODULES.get(name.partition(".")[0])
    if module is None:
        return None
    methods: dict[str, Method] = import_module(module).METHODS
    return methods.get(name)
