"""Changes that read and write one value in one step, which ``chrome.storage`` does not have.

Rules:

* ``increment`` adds a number (a missing value counts as 0), in doubles as JavaScript does.
* ``push`` adds an element to an array (a missing value counts as ``[]``).
* ``merge`` sets members of an object (a missing value counts as ``{}``), one level deep, and keeps
  the keys in order.
* ``value`` replaces the value, which is useful with an expected revision.
* A value of another type is not overwritten: ``ConflictError``.
"""

from __future__ import annotations

import math

import msgspec

from sidekeep.errors import ConflictError, InvalidParams
from sidekeep.store import blobs, documents, records
from sidekeep.store.records import Record
from sidekeep.store.transaction import Transaction

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.encode
# JavaScript writes numbers below 1e21, and fractions from 1e-6 on, without an exponent.
_PLAIN_POWER = 21
_PLAIN_FRACTION = -6


def text_of(transaction: Transaction, record: Record) -> bytes:
    """Return the whole JSON text of a stored value."""
    return b"".join(
        piece if isinstance(piece, bytes) else b"".join(blobs.text(transaction, piece))
        for piece in record.pieces
    )


def check_revisions(transaction: Transaction, expected: dict[str, int]) -> None:
    """Compare revisions with those expected (0: the key must not exist).

    ``ConflictError`` with the present ``revisions`` of all keys named, if one differs.
    """
    present = {key: revision_of(transaction, key) for key in expected}
    if present != expected:
        raise ConflictError(
            "The value has changed since it was read.",
            next="read it again and repeat the change",
            revisions=present,
        )


def revision_of(transaction: Transaction, key: str) -> int:
    """Return the revision of an item, 0 if it does not exist."""
    found = documents.find(transaction, key)
    return 0 if found is None else found.revision


def updated(transaction: Transaction, key: str, kind: str, operand: bytes) -> bytes:
    """Return the new JSON text of the value of ``key``.

    ``kind``: ``increment``, ``push``, ``merge`` or ``value``; ``operand``: its JSON text.
    """
    if kind == "value":
        return operand
    found = documents.find(transaction, key)
    present = None
    if found is not None and not found.number:
        raise _conflict(key, {"increment": "number", "merge": "object"}[kind])
    if found is not None:
        present = text_of(transaction, records.read(transaction, found.number)).strip()
    if kind == "increment":
        return _incremented(key, present, operand)
    if kind == "push":
        return _pushed(key, present, operand)
    return _merged(key, present, operand)


def _conflict(key: str, wanted: str) -> ConflictError:
    return ConflictError(
        f"The value of {key[:64]!r} is no {wanted}.", next="remove it or set another value first"
    )


def _incremented(key: str, present: bytes | None, operand: bytes) -> bytes:
    old = 0 if present is None else msgspec.json.decode(present)
    step = msgspec.json.decode(operand)
    if isinstance(step, bool) or not isinstance(step, (int, float)):
        raise InvalidParams("increment must be a number.")
    if isinstance(old, bool) or not isinstance(old, (int, float)):
        raise _conflict(key, "number")
    total = float(old) + float(step)
    if not math.isfinite(total):
        raise ConflictError(f"The value of {key[:64]!r} would be larger than any number.")
    return number_text(total)


def number_text(value: float) -> bytes:
    """Return a finite double as ``JSON.stringify`` writes it."""
    if value == 0:
        return b"0"
    text = repr(value)  # the same shortest digits as JavaScript's, in another notation
    if "e" not in text:
        return text.removesuffix(".0").encode()
    mantissa, exponent = text.removeprefix("-").split("e")
    power = int(exponent)
    sign = "-" if value < 0 else ""
    digits = mantissa.replace(".", "")
    if 0 < power < _PLAIN_POWER and len(digits) <= power + 1:
        return f"{sign}{digits:0<{power + 1}}".encode()
    if _PLAIN_FRACTION <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}".encode()
    return f"{sign}{mantissa.removesuffix('.0')}e{power:+d}".encode()


def _pushed(key: str, present: bytes | None, operand: bytes) -> bytes:
    if present is None:
        return b"[%b]" % operand
    if not present.startswith(b"["):
        raise _conflict(key, "array")
    inner = present[1:-1].strip()
    return b"[%b,%b]" % (inner, operand) if inner else b"[%b]" % operand


def _merged(key: str, present: bytes | None, operand: bytes) -> bytes:
    if not operand.strip().startswith(b"{"):
        raise InvalidParams("merge must be an object.")
    if present is not None and not present.startswith(b"{"):
        raise _conflict(key, "object")
    members = {} if present is None else _members.decode(present)
    members.update(_members.decode(operand))
    return b"{%b}" % b",".join(
        _encode(name) + b":" + bytes(raw) for name, raw in sorted(members.items())
    )
