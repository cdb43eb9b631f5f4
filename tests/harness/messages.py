"""JSON-RPC 2.0 messages: a call to make, an error that came back, what a message must look like.

Source of the rules: https://www.jsonrpc.org/specification and ``docs/protocol.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class RpcError(Exception):
    """An error response: ``code``, ``message``, ``data`` (``kind`` is ``data["kind"]``)."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']} {error.get('data')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}

    @property
    def kind(self) -> str | None:
        """The stable word for the kind of error, if the host gives one."""
        kind = self.data.get("kind")
        return kind if isinstance(kind, str) else None


@dataclass(frozen=True)
class Call:
    """One request of a batch. ``op`` numbers a mutation, so that it can be repeated safely."""

    method: str
    params: Any = None
    op: int | None = None


def shape_fault(message: Any) -> str | None:
    """Return what is wrong with a response or notification, or ``None``."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "no JSON-RPC 2.0 message"
    if "method" in message:
        return "a request of the host" if "id" in message else None
    if "id" not in message:
        return "a response without id"
    if ("result" in message) == ("error" in message):
        return "a response needs either result or error"
    if "error" in message:
        error = message["error"]
        if (
            not isinstance(error, dict)
            or type(error.get("code")) is not int
            or not isinstance(error.get("message"), str)
        ):
            return "an error without code and message"
    return None
