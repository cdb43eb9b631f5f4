"""A snapshot of a store that several messages read from while they are sent."""

from __future__ import annotations

from collections.abc import Callable

from sidekeep.store.environment import Store
from sidekeep.store.transaction import Transaction


class SharedSnapshot:
    """A read transaction that ends when the last message that reads from it has been sent."""

    __slots__ = ("_users", "transaction")

    # How many snapshots of this process have not ended yet.
    live = 0

    def __init__(self, store: Store) -> None:
        self.transaction: Transaction = store.snapshot()
        self._users = 1
        SharedSnapshot.live += 1

    def use(self) -> Callable[[], None]:
        """Count one more user; the function returned ends that use."""
        self._users += 1
        return self.release

    def release(self) -> None:
        """End one use."""
        self._users -= 1
        if not self._users:
            self.transaction.txn.abort()
            SharedSnapshot.live -= 1
