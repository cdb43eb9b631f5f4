"""Parse JSON more strictly than browsers do, so that a sloppy host is noticed.

Rules: RFC 8259 text in valid UTF-8 without a byte-order mark; no ``NaN`` or ``Infinity``; no number
beyond a double; no key twice in one object; no half of a surrogate pair, escaped or not. A
conforming parser may refuse each of these or silently change it, so a host must not send them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Only escapes can bring a surrogate into decoded text: strict UTF-8 refuses encoded ones.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class StrictJsonError(ValueError):
    """The text is not strict JSON; the message says which rule it breaks."""


def _no_constant(name: str) -> float:
    raise StrictJsonError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise StrictJsonError(f"the number {text[:40]} is beyond a double")
    return number


def _single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StrictJsonError(f"the key {key[:40]!r} stands twice in one object")
            seen.add(key)
    return result


def parse_strict(body: bytes) -> Any:
    """Return the value that ``body`` (UTF-8 JSON text) stands for.

    Raises ``StrictJsonError`` with the broken rule, for text that is not JSON at all too.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJsonError(f"not UTF-8: {error}") from error
    try:
        value = json.loads(
            text, object_pairs_hook=_single_keys, parse_constant=_no_constant, parse_float=_finite
        )
    except StrictJsonError:
        raise
    except (ValueError, RecursionError) as error:
        raise StrictJsonError(f"not JSON: {error}; it begins {body[:60]!r}") from error
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise StrictJsonError("half of a surrogate pair") from error
    return value
