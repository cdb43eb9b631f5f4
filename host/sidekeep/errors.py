"""Every error that can reach a caller, each with its code, its kind and what to do next.

Rules of this module:

* One class per kind. Codes only grow: a number once given is never used for anything else.
* ``message`` is one sentence a person can read; ``next`` says what to do, where that is known.
* The table in ``docs/protocol.md`` is compared with these classes by a test.

The standard codes are those of JSON-RPC 2.0; the product's own lie in -32001 … -32010, inside the
range that JSON-RPC leaves to servers.
"""

from __future__ import annotations


class SidekeepError(Exception):
    """Base of all errors that are answered to a caller.

    ``message``: one sentence for a person. ``next``: what to do about it, or ``None``.
    ``data``: further JSON-compatible fields for ``error.data`` (for instance the current
    revision of a ``conflict``).
    """

    code: int = -32603
    kind: str = "internal"

    def __init__(self, message: str, *, next: str | None = None, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.next = next
        self.data = data

    def body(self) -> dict[str, object]:
        """Return the JSON-RPC ``error`` object: ``{code, message, data: {kind, next?, …}}``."""
        data: dict[str, object] = {"kind": self.kind}
        if self.next is not None:
            data["next"] = self.next
        data.update(self.data)
        return {"code": self.code, "message": self.message, "data": data}


class ParseError(SidekeepError):
    """A frame, or one element of a batch, is not valid JSON text."""

    code = -32700
    kind = "parse"


class InvalidRequest(SidekeepError):
    """Valid JSON that is no JSON-RPC 2.0 request, or one that may not come now."""

    code = -32600
    kind = "invalidRequest"


class MethodNotFound(SidekeepError):
    """No method of that name exists in this version."""

    code = -32601
    kind = "methodNotFound"


class InvalidParams(SidekeepError):
    """The parameters do not have the types the method asks for."""

    code = -32602
    kind = "invalidParams"


class InternalError(SidekeepError):
    """A fault of the host itself; the request had no effect."""

    code = -32603
    kind = "internal"


class QuotaError(SidekeepError):
    """The store has reached the largest size that its configuration allows."""

    code = -32001
    kind = "quota"


class ConflictError(SidekeepError):
    """The state is not the one the caller expects; ``data`` names the present one."""

    code = -32002
    kind = "conflict"


class NotFoundError(SidekeepError):
    """What the call names does not exist."""

    code = -32003
    kind = "notFound"


class BusyError(SidekeepError):
    """Another process holds the write lock longer than the bounded wait."""

    code = -32004
    kind = "busy"


class DamagedError(SidekeepError):
    """The file, or a record in it, is not what was written; nothing was changed."""

    code = -32005
    kind = "damaged"


class TooLargeError(SidekeepError):
    """A message or a value is larger than what can be carried or stored."""

    code = -32006
    kind = "tooLarge"


class DiskFullError(SidekeepError):
    """The disk has no room for the change; what was stored before is intact."""

    code = -32007
    kind = "diskFull"


class ForbiddenError(SidekeepError):
    """The caller may not use this host, or not in this way."""

    code = -32008
    kind = "forbidden"


class UnavailableError(SidekeepError):
    """Something the call needs is not there: a library, an area, the host itself."""

    code = -32009
    kind = "unavailable"


class UnknownOutcomeError(SidekeepError):
    """Whether the change took effect is no longer known; read before repeating it."""

    code = -32010
    kind = "unknown"
