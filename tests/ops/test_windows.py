"""What would be written into a registry. The registry is imagined; no Windows was at hand."""

from __future__ import annotations

import sys
from pathlib import Path, PureWindowsPath

import pytest

from sidekeep.errors import UnavailableError
from sidekeep.ops.browsers import Browser, read_table
from sidekeep.ops.places import find_places
from sidekeep.ops.windows import current_user, register, unregister

MANIFESTS = {
    "chromium": PureWindowsPath(r"C:\Users\Jo Doe\Sidekeep\chromium.json"),
    "firefox": PureWindowsPath(r"C:\Users\Jo Doe\Sidekeep\firefox.json"),
}


class ImaginedRegistry:
    def __init__(self, *keys: str) -> None:
        self.values: dict[str, str] = dict.fromkeys(keys, "")

    def has_key(self, key: str) -> bool:
        return any(found == key or found.startswith(key + "\\") for found in self.values)

    def set_default(self, key: str, value: str) -> None:
        self.values[key] = value

    def delete(self, key: str) -> None:
        del self.values[key]


@pytest.fixture
def table(tmp_path: Path) -> list[Browser]:
    return read_table(find_places("Linux", {"HOME": str(tmp_path)}))


def test_each_browser_that_is_there_gets_the_manifest_of_its_family(table: list[Browser]) -> None:
    registry = ImaginedRegistry(r"Software\Google\Chrome", r"Software\Mozilla")
    written = register(registry, table, MANIFESTS)
    chrome = r"Software\Google\Chrome\NativeMessagingHosts\org.sidekeep.host"
    firefox = r"Software\Mozilla\NativeMessagingHosts\org.sidekeep.host"
    assert written == [chrome, firefox]
    assert registry.values[chrome] == str(MANIFESTS["chromium"])
    assert registry.values[firefox] == str(MANIFESTS["firefox"])


def test_removal_takes_our_keys_alone(table: list[Browser]) -> None:
    other = r"Software\Google\Chrome\NativeMessagingHosts\org.other"
    registry = ImaginedRegistry(r"Software\Google\Chrome", other)
    register(registry, table, MANIFESTS)
    assert unregister(registry, table) == [
        r"Software\Google\Chrome\NativeMessagingHosts\org.sidekeep.host"
    ]
    assert set(registry.values) == {r"Software\Google\Chrome", other}
    assert unregister(registry, table) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is a registry")
def test_elsewhere_there_is_no_registry() -> None:
    with pytest.raises(UnavailableError):
        current_user()
