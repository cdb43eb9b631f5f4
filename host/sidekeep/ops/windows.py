r"""Registration on Windows: one registry key per browser instead of a folder of manifests.

NOT RUN: written from the browsers' documentation; there is no installer for Windows yet. Source:
developer.chrome.com and developer.mozilla.org, "Native messaging": the default value of
``HKEY_CURRENT_USER\<browser's key>\<host name>`` is the full path of the manifest.

Rules of this module: standard library only; the registry is reached through an interface, so that
what would be written can be looked at on any system.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import PureWindowsPath
from typing import Protocol

from sidekeep.errors import UnavailableError
from sidekeep.ops.browsers import Browser
from sidekeep.ops.places import HOST_NAME


class Registry(Protocol):
    """The part of ``HKEY_CURRENT_USER`` that registration needs."""

    def has_key(self, key: str) -> bool:
        """Return whether ``key`` exists."""

    def set_default(self, key: str, value: str) -> None:
        """Make ``value`` the default value of ``key``, creating the key."""

    def delete(self, key: str) -> None:
        """Remove ``key`` if it exists."""


def registry_key(browser: Browser) -> str | None:
    """Return the key that names our host for ``browser``, or ``None`` if it has none."""
    return None if browser.windows_key is None else f"{browser.windows_key}\\{HOST_NAME}"


def register(
    registry: Registry, browsers: Iterable[Browser], manifests: dict[str, PureWindowsPath]
) -> list[str]:
    """Point each browser at the manifest of its family; return the keys that were written.

    ``manifests`` maps ``chromium`` and ``firefox`` to the two manifests. As on other systems,
    a browser whose vendor key is absent is not there and gets nothing.
    """
    written = []
    for browser in browsers:
        key = registry_key(browser)
        if key is None or not registry.has_key(key.rsplit("\\", 2)[0]):
            continue
        registry.set_default(key, str(manifests[browser.family]))
        written.append(key)
    return written


def unregister(registry: Registry, browsers: Sequence[Browser]) -> list[str]:
    """Remove our keys; return those that were there."""
    removed = []
    for browser in browsers:
        key = registry_key(browser)
        if key is not None and registry.has_key(key):
            registry.delete(key)
            removed.append(key)
    return removed


def current_user() -> Registry:
    """Return the real registry of the present user; raises ``UnavailableError`` elsewhere."""
    if sys.platform != "win32":
        raise UnavailableError("Only Windows has a registry.")
    import winreg

    class CurrentUser:
        def has_key(self, key: str) -> bool:
            try:
                winreg.OpenKey(winreg.HKEY_CURRENT_USER, key).Close()
            except FileNotFoundError:
                return False
            return True

        def set_default(self, key: str, value: str) -> None:
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, key) as handle:
                winreg.SetValueEx(handle, "", 0, winreg.REG_SZ, value)

        def delete(self, key: str) -> None:
            winreg.DeleteKey(winreg.HKEY_CURRENT_USER, key)

    return CurrentUser()
