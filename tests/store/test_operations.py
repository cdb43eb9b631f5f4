"""Results of mutations are found again, for a while."""

from __future__ import annotations

import time

import pytest

from sidekeep.errors import UnknownOutcomeError
from sidekeep.store import operations
from sidekeep.store.environment import Store
from sidekeep.store.operations import Result


def _keep(store: Store, client: str, *numbers: int) -> None:
    results = [Result(number, b'{"n":%d}' % number) for number in numbers]
    store.write(lambda transaction: operations.keep(transaction, client, results))


def _find(store: Store, client: str, number: int) -> bytes | None:
    with store.read() as transaction:
        return operations.find(transaction, client, number)


def test_a_result_is_found_by_client_and_number(store: Store) -> None:
    _keep(store, "a", 0, 1, 2)
    _keep(store, "ab", 1)
    assert _find(store, "a", 1) == b'{"n":1}'
    assert _find(store, "a", 3) is None
    assert _find(store, "ab", 1) == b'{"n":1}'
    assert _find(store, "b", 0) is None


def test_a_number_that_was_passed_over_is_not_carried_out_later(store: Store) -> None:
    _keep(store, "ab", 7)
    _keep(store, "a", 5, 9)
    with pytest.raises(UnknownOutcomeError):
        _find(store, "a", 6)


def test_the_last_256_results_of_a_client_are_kept(store: Store) -> None:
    for number in range(300):
        _keep(store, "a", number)
    assert _find(store, "a", 299 - 255) is not None
    with pytest.raises(UnknownOutcomeError):
        _find(store, "a", 299 - 256)


def test_results_of_old_calls_expire_but_are_never_carried_out_again(store: Store) -> None:
    _keep(store, "a", 1)

    def later(seconds: float) -> int:
        return store.write(lambda t: operations.expire(t, time.time() + seconds))

    assert later(590) == 0
    assert later(610) == 1
    with pytest.raises(UnknownOutcomeError):
        _find(store, "a", 1)
    assert later(31 * 24 * 3600) == 1
    assert _find(store, "a", 1) is None
