"""Ids of extensions as people paste them, and as manifests want them.

Rules of this module: standard library only. One malformed origin makes Chromium refuse a whole
manifest, so nothing passes here that is not exactly an id; wildcards never pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sidekeep.errors import InvalidParams

CHROMIUM = "chromium"
FIREFOX = "firefox"

# The shipped extension: its key in extension_stub/manifest.json gives the first id, its
# browser_specific_settings the second.
DEMO_IDS = {
    CHROMIUM: "andamljdfjmkeeaoodefglpnfbaoklhh",
    FIREFOX: "sidekeep@sidekeep.org",
}

CHROMIUM_ID = re.compile(r"[a-p]{32}")
# What Firefox itself accepts as an add-on id (toolkit/mozapps/extensions, isIDValid).
FIREFOX_ID = re.compile(
    r"\{[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\}"
    r"|[a-z0-9\-._]*@[a-z0-9\-._]+",
    re.IGNORECASE,
)
_SCHEME = "chrome-extension://"


@dataclass(frozen=True)
class ExtensionId:
    """One id and the family of browsers it belongs to (``chromium`` or ``firefox``)."""

    family: str
    value: str


def parse_extension_id(text: str) -> ExtensionId:
    """Return the id in ``text``.

    Accepted: 32 letters a-p in any case, the same as ``chrome-extension://…`` with or without the
    closing slash, a Firefox id ``name@host`` or ``{uuid}``. Raises ``InvalidParams`` with the
    reason for anything else.
    """
    word = text.strip()
    if not word:
        raise InvalidParams("An extension id is empty.", next=_HELP)
    if "*" in word:
        raise InvalidParams(
            f"{text!r} holds a wildcard; browsers refuse a manifest with one.", next=_HELP
        )
    if word.lower().startswith(_SCHEME):
        word = word[len(_SCHEME) :].removesuffix("/")
    elif FIREFOX_ID.fullmatch(word):
        return ExtensionId(FIREFOX, word)
    lowered = word.lower()
    if CHROMIUM_ID.fullmatch(lowered):
        return ExtensionId(CHROMIUM, lowered)
    if re.fullmatch(r"[a-z]+", lowered):
        if len(lowered) != 32:
            reason = f"it has {len(lowered)} letters instead of 32"
        else:
            strange = ", ".join(sorted({letter for letter in lowered if letter > "p"}))
            reason = f"it has letters outside a-p: {strange}"
    else:
        reason = "it has characters that no id has"
    raise InvalidParams(f"{text!r} is no extension id: {reason}.", next=_HELP)


def family_of(value: str) -> str:
    """Return the family of a bare id that was stored earlier; raises ``InvalidParams``."""
    return parse_extension_id(value).family


def unite(earlier: Iterable[str], given: Iterable[str]) -> list[str]:
    """Return both lists as one without doubles, earlier ones first."""
    return list(dict.fromkeys([*earlier, *given]))


def origin(chromium_id: str) -> str:
    """Return the origin as ``allowed_origins`` wants it and as Chromium passes it in argv[1]."""
    return f"{_SCHEME}{chromium_id}/"


_HELP = (
    "Give the 32 letters shown on the browser's extensions page (or chrome-extension://<id>/), "
    "or a Firefox add-on id like name@host or {uuid}."
)
