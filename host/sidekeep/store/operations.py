"""Results of mutations, kept for callers that did not hear them.

Rules (see "Retries" in ``docs/protocol.md``):

* A client numbers its mutations, rising by one. The results of the last 256 are kept for 10
  minutes, in the transaction of the change, one row per frame.
* A client's last number is kept for 30 days, so that a late repetition is never carried out a
  second time: it is answered with ``unknown``.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from sidekeep.errors import UnknownOutcomeError
from sidekeep.store.layout import (
    CLIENT,
    CLIENTS,
    NUMBER,
    OPERATIONS,
)
from sidekeep.store.transaction import Transaction

KEPT = 256
KEPT_SECONDS = 600
CLIENT_KEPT_SECONDS = 30 * 24 * 3600


class Result(NamedTuple):
    """The JSON text of the result of one mutation, under its operation number."""

    operation: int
    result: bytes


class Number(NamedTuple):
    """Under which a result is kept: the caller's word and its number of the operation."""

    client: str
    operation: int


def find(transaction: Transaction, client: str, operation: int) -> bytes | None:
    """Return the kept result of that operation, or ``None`` if it was not carried out yet.

    ``UnknownOutcomeError`` if it is so old that its result is no longer kept.
    """
    name = client.encode()
    row = transaction.get(CLIENTS, name)
    if row is None or operation > CLIENT.unpack(row)[0]:
        return None
    for key, value in transaction.rows(OPERATIONS, name + b"\0" + NUMBER.pack(operation)):
        if not bytes(key).startswith(name + b"\0"):
            break
        for number, result in msgspec.msgpack.decode(value)[1]:
            if number == operation:
                kept: bytes = result
                return kept
        break
    raise UnknownOutcomeError(
        f"The result of operation {operation} is no longer kept.",
        next="read what is stored before you repeat the change",
    )


def keep(transaction: Transaction, client: str, results: list[Result]) -> None:
    """Keep the results of one frame (rising numbers) and drop those of this client that are old."""
    name = client.encode()
    now = time.time()
    last = results[-1].operation
    transaction.put(OPERATIONS, name + b"\0" + NUMBER.pack(last), _encode((now, results)))
    transaction.put(CLIENTS, name, CLIENT.pack(last, now))
    if last >= KEPT:
        _drop(transaction, name, last - KEPT)


def _drop(transaction: Transaction, name: bytes, up_to: int) -> None:
    """Remove the rows of a client whose numbers are all at most ``up_to``."""
    old = []
    for key, _ in transaction.rows(OPERATIONS, name + b"\0"):
        row = bytes(key)
        if not row.startswith(name + b"\0") or NUMBER.unpack(row[-8:])[0] > up_to:
            break
        old.append(row)
    for row in old:
        transaction.delete(OPERATIONS, row)


def expire(transaction: Transaction, now: float | None = None, *, everything: bool = False) -> int:
    """Remove results older than 10 minutes (or all) and clients older than 30 days.

    Returns the number of rows removed.
    """
    moment = time.time() if now is None else now
    old = [
        bytes(key)
        for key, row in transaction.rows(OPERATIONS)
        if everything or msgspec.msgpack.decode(row)[0] < moment - KEPT_SECONDS
    ]
    for key in old:
        transaction.delete(OPERATIONS, key)
    gone = [
        bytes(key)
        for key, row in transaction.rows(CLIENTS)
        if CLIENT.unpack(row)[1] < moment - CLIENT_KEPT_SECONDS
    ]
    for key in gone:
        transaction.delete(CLIENTS, key)
    return len(old) + len(gone)


_encode = msgspec.msgpack.encode
