"""The header of an attachment: what it says of the page, and the text below it.

Source of the rules: the reference's ``buildPageContextText`` (§4 of its description), as
docs/protocol.md, "Attachments", settles it. What opens an account must not reach a model: user
names, passwords and tokens in URLs are replaced, in the header and in the text.
"""

from __future__ import annotations

import re

from sidekeep.requests.settings import RequestSettings

HIDDEN = "…"
_END = "---"

# A header is known by its second line, and ends with the first "---" behind the line "Mode: ".
_HEADER = re.compile(
    r"[^\n]*\n(?=URL: |Title: )(?:[^\n]*\n)*?Mode: [^\n]*\n(?:Note: [^\n]*\n)?---(?:\n\n?|\Z)"
)
# Scheme and what follows it up to white space, quotes or brackets. The scheme's length is bounded
# so that long runs of letters cost no time.
_URL = re.compile(r"(?<![a-z0-9+.\-])[a-z][a-z0-9+.\-]{0,31}://[^\s\"'<>`|\\^{}]+", re.IGNORECASE)
# What is hidden is ASCII: a sentence in Chinese may follow an address without white space.
_USER = re.compile(r"(?<=://)(?:(?![/?#()\[\]])[!-~])*@")
_SECRET = re.compile(
    r"(?<=[?&;#])"
    r"((?:[\w.\-]*(?:token|secret|passwd|password|passphrase|signature|credential|api[_\-]?key"
    r"|access[_\-]?key(?:[_\-]?id)?|session[_\-]?id|sessid)"
    r"|(?:[\w.\-]*[_.\-])?(?:key|pwd|pass|auth|authorization|sig|jwt))=)"
    r"(?:(?![&#;()\[\]])[!-~])+",
    re.IGNORECASE,
)


def header(
    settings: RequestSettings,
    *,
    url: str,
    title: str,
    mode: str,
    body: str,
    format: str | None = None,
    block: str | None = None,
    fallback: bool = False,
    changed_since: str | None = None,
) -> str:
    """Return the text of an attachment: its header, an empty line, and ``body``.

    ``block``: further lines, after the title. ``fallback``: whether another mode was wanted.
    ``changed_since``: when the page was attached before, if it has changed since.
    """
    lines = [settings.prefix, f"URL: {_line(url)}", f"Title: {_line(title)}"]
    if block:
        lines.append(block.removesuffix("\n"))
    lines.append(
        f"Mode: {_line(mode)}"
        + (f" | {_line(format)}" if format else "")
        + (" (fallback to full)" if fallback else "")
    )
    if changed_since:
        lines.append(
            "Note: this page's content has changed since it was last attached "
            f"(previously attached {_line(changed_since)})."
        )
    return redacted("\n".join([*lines, _END, "", body]))


def _line(text: str) -> str:
    """Return a text as it may stand in one line of a header."""
    return " ".join(line for line in text.splitlines() if line.strip()).strip()


def split_header(text: str) -> tuple[str, str]:
    """Return the header of an attachment's text, up to the empty line behind it, and the rest.

    The header is empty if there is none. Together they are the text.
    """
    found = _HEADER.match(text)
    end = found.end() if found else 0
    return text[:end], text[end:]


def named_line(text: str, name: str) -> str:
    """Return what follows ``<name>: `` in the first such line, ``""`` if there is none.

    Only the header is looked at, where the text has one.
    """
    looked = split_header(text)[0] or text
    found = re.search(rf"^{name}: (.*)$", looked, re.MULTILINE)
    return found[1].strip() if found else ""


def redacted(text: str) -> str:
    """Return the text with ``…`` for user names, passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    return _URL.sub(lambda found: _safe(found[0]), text)


def _safe(url: str) -> str:
    return _SECRET.sub(rf"\1{HIDDEN}", _USER.sub(f"{HIDDEN}@", url, count=1))
