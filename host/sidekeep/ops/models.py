"""The files that Sidekeep writes and that others read, as models that refuse anything else.

Rules of this module: a model is at least as strict as its reader. For manifests that is Chromium,
which refuses a whole manifest for one bad entry and then only says "not found", and Firefox.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from sidekeep.ops.ids import CHROMIUM, CHROMIUM_ID, FIREFOX_ID, origin

_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("a host name has lower-case letters, digits, _ and single dots only")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError("not an absolute path (a browser expands no ~ and knows no folder)")
    return value


def _origin(value: str) -> str:
    bare = value.removeprefix("chrome-extension://").removesuffix("/")
    if not CHROMIUM_ID.fullmatch(bare) or value != origin(bare):
        raise ValueError("not chrome-extension:// and 32 letters a-p and a slash")
    return value


def _addon(value: str) -> str:
    if not FIREFOX_ID.fullmatch(value):
        raise ValueError("not a Firefox add-on id like name@host or {uuid}")
    return value


def _extension(value: str) -> str:
    if not (CHROMIUM_ID.fullmatch(value) or FIREFOX_ID.fullmatch(value)):
        raise ValueError("not a bare extension id")
    return value


Absolute = Annotated[str, AfterValidator(_absolute)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Manifest(_Strict):
    name: Annotated[str, AfterValidator(_name)]
    description: Annotated[str, Field(min_length=1)]
    path: Absolute
    type: Literal["stdio"]


class ChromiumManifest(_Manifest):
    """A host manifest of Chrome and its relatives."""

    allowed_origins: Annotated[list[Annotated[str, AfterValidator(_origin)]], Field(min_length=1)]


class FirefoxManifest(_Manifest):
    """A host manifest of Firefox and its relatives."""

    allowed_extensions: Annotated[list[Annotated[str, AfterValidator(_addon)]], Field(min_length=1)]


Manifest = ChromiumManifest | FirefoxManifest


def manifest_model(family: str) -> type[ChromiumManifest] | type[FirefoxManifest]:
    """Return the model of a family of browsers."""
    return ChromiumManifest if family == CHROMIUM else FirefoxManifest


class ConfigFile(_Strict):
    """``config.json``, which the host reads with ``sidekeep.config.load_host_config``."""

    version: Literal[1] = 1
    data_dir: Absolute
    extensions: list[Annotated[str, AfterValidator(_extension)]]
    map_size: Annotated[int, Field(gt=0)] | None = None
    max_size: Annotated[int, Field(gt=0)] | None = None


class Registered(_Strict):
    """One manifest that was written."""

    path: Absolute
    title: str
    family: Literal["chromium", "firefox"]


class Registrations(_Strict):
    """``registrations.json``: what an update has to renew and a removal to take away."""

    version: Literal[1] = 1
    given: list[str]
    manifests: list[Registered]


def to_bytes(model: BaseModel) -> bytes:
    """Return the file content of a model: indented UTF-8 JSON without absent fields."""
    return (model.model_dump_json(indent=2, exclude_none=True) + "\n").encode()


def sentences(error: ValidationError) -> list[str]:
    """Return what a model refused, one readable sentence per fault."""
    return [_sentence(dict(fault)) for fault in error.errors()]


def _sentence(fault: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in fault["loc"]) or "the file"
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}"
