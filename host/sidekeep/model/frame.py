"""The changes of one frame: each call in a nested transaction, the journal's row at the end.

Rule (docs/protocol.md, "Retries"): the row of the journal and the row of results are written once
per frame, in the transaction of the changes themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sidekeep.errors import InvalidRequest
from sidekeep.store import journal, operations
from sidekeep.store.journal import AnyChange, Call
from sidekeep.store.operations import Result
from sidekeep.store.transaction import Transaction

EXPIRE_EVERY_SECONDS = 60.0

# Carries out a mutation under a revision; gives what changed and the JSON text of the result.
Mutation = Callable[[Transaction, int], tuple[Sequence[AnyChange], bytes]]


class Frame:
    """Collects what the calls of one frame change. Made anew for every attempt of a write."""

    __slots__ = ("_calls", "_client", "_results", "transaction")

    def __init__(self, transaction: Transaction, client: str | None) -> None:
        """``client``: the word of the caller's hello, if it gave one."""
        self.transaction = transaction
        self._client = client
        self._calls: list[Call] = []
        self._results: dict[int, bytes] = {}

    def mutate(self, mutation: Mutation, operation: int | None) -> bytes:
        """Carry out one mutation, or find the result of an earlier one of that number.

        Returns the JSON text of the result. Whatever is raised, the mutation had no effect.
        """
        if operation is not None:
            known = self._known(operation)
            if known is not None:
                return known
        with self.transaction.nested() as transaction:
            revision = transaction.head.seq + 1
            changes, result = mutation(transaction, revision)
            if changes:
                transaction.head.seq = revision
        if changes:
            self._calls.append(Call(revision, list(changes)))
        if operation is not None:
            self._results[operation] = result
        return result

    def _known(self, operation: int) -> bytes | None:
        client = known_client(self._client)
        result = self._results.get(operation)
        if result is not None:
            return result
        return operations.find(self.transaction, client, operation)

    def finish(self, *, watched: bool) -> None:
        """Write the rows of the journal and of the results. ``watched``: somebody listens."""
        if self._calls:
            journal.append(self.transaction, self._calls, watched=watched)
        if self._results and self._client is not None:
            results = [Result(number, self._results[number]) for number in sorted(self._results)]
            operations.keep(self.transaction, self._client, results)


def known_client(client: str | None) -> str:
    """Return the word of the caller's hello; ``InvalidRequest`` if it gave none."""
    if not client:
        raise InvalidRequest(
            "A call with op needs a hello with client.", next="send client in host.hello"
        )
    return client


class Expiry:
    """Remembers when old results were last looked for, so that it is done now and then only."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = time.monotonic()

    def look(self, transaction: Transaction) -> None:
        """Remove results and clients that are too old, at most once a minute."""
        now = time.monotonic()
        if now - self._last > EXPIRE_EVERY_SECONDS:
            from sidekeep.store import trash, turns

            self._last = now
            operations.expire(transaction)
            trash.expire(transaction)
            turns.expire(transaction)
