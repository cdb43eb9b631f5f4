"""``textDigest``: what the seed's own search looks at, in the rows of ``savedSessions``.

Source: the seed storage model ("textDigest", 100,000 characters a session) and the reference: the
text of each entry and a line feed, in order, cut at the cap, in lower case. Characters are UTF-16
units there, so they are here.
"""

from __future__ import annotations

from collections.abc import Iterable

from sidekeep.model.entries import Facts

CAP = 100_000


def digest(entries: Iterable[Facts], before: str = "") -> str:
    """Return the digest of these entries, or the one ``before`` with them added."""
    parts = [before]
    size = _units(before)
    for facts in entries:
        if size >= CAP:
            break
        text = "\n".join(facts.texts) + "\n"
        size += _units(text)
        parts.append(text.lower())
    return _cut("".join(parts))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _cut(text: str) -> str:
    if _units(text) <= CAP:
        return text
    encoded = text.encode("utf-16-le")[: CAP * 2]
    return encoded.decode("utf-16-le", errors="ignore")
