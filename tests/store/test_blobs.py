"""Content is stored once, counted, freed, and never comes back changed."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from sidekeep.errors import DamagedError
from sidekeep.store import journal, verify
from sidekeep.store.environment import Store
from tests.store import helpers


def _url(raw: bytes) -> bytes:
    return b'"data:image/png;base64,' + base64.b64encode(raw) + b'"'


def _counts(store: Store) -> tuple[int, int]:
    with store.read() as transaction:
        return transaction.head.blobs, transaction.head.blob_bytes


def test_the_same_picture_in_many_values_is_stored_once(store: Store) -> None:
    raw = os.urandom(300_000)
    for number in range(5):
        helpers.put(store, f"k{number}", b'{"n":%d,"shot":%b}' % (number, _url(raw)))
    assert _counts(store) == (1, 300_000)


def test_content_goes_with_its_last_reference_and_not_before(store: Store) -> None:
    raw = os.urandom(50_000)
    helpers.put(store, "a", _url(raw))
    helpers.put(store, "b", b"[" + _url(raw) + b"]")
    helpers.remove(store, "a")
    store.write(lambda transaction: journal.trim(transaction, keep=1))
    assert _counts(store) == (1, 50_000)
    assert helpers.get(store, "b") == b"[" + _url(raw) + b"]"
    helpers.remove(store, "b")
    helpers.put(store, "c", b"1")
    store.write(lambda transaction: journal.trim(transaction, keep=1))
    assert _counts(store) == (0, 0)


def test_space_of_removed_values_is_used_again(store: Store) -> None:
    for _ in range(60):
        helpers.put(store, "k", _url(os.urandom(1_000_000)))
    assert os.path.getsize(store.path) < 12_000_000


def test_a_changed_byte_on_the_disk_is_reported_and_not_shown(tmp_path: Path) -> None:
    folder = str(tmp_path / "s")
    raw = os.urandom(200_000)
    store = Store(folder, extension="e", profile="p")
    helpers.put(store, "shot", _url(raw))
    helpers.put(store, "small", b'"find me somewhere"')
    store.close()
    path = tmp_path / "s" / "store.mdb"
    content = path.read_bytes()
    for needle in (raw[1000:1040], b"find me somewhere"):
        at = content.index(needle)
        content = content[: at + 5] + bytes([content[at + 5] ^ 1]) + content[at + 6 :]
    path.write_bytes(content)
    store = Store(folder, extension="e", profile="p")
    for key in ("shot", "small"):
        with pytest.raises(DamagedError):
            helpers.get(store, key)
    with store.read() as transaction:
        assert len(verify.problems(transaction)) >= 2
    # Damage does not spread: what is damaged can be replaced or removed, and all else goes on.
    helpers.put(store, "small", b'"new"')
    helpers.remove(store, "shot")
    for number in range(40):
        helpers.put(store, "k", b"%d" % number)
        store.write(lambda transaction: journal.trim(transaction, keep=1))
    assert helpers.everything(store) == {"k": b"39", "small": b'"new"'}
    store.close()
