"""Backups are one checked moment; a restore keeps what it replaces."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sidekeep.errors import BusyError, ConflictError, DamagedError, NotFoundError
from sidekeep.store import backup
from sidekeep.store.environment import Store
from tests.store import helpers


def _open(folder: Path) -> Store:
    return Store(str(folder), extension="e", profile="p")


def test_a_backup_made_during_writes_equals_one_moment(tmp_path: Path, store: Store) -> None:
    helpers.put(store, "shot", b'"' + b"QUJD" * 300_000 + b'"')
    other = threading.Event()

    def write() -> None:
        for number in range(300):
            if other.is_set():
                break
            helpers.put(store, "a", b"%d" % number)
            helpers.put(store, "b", b"%d" % number)

    writer = threading.Thread(target=write)
    writer.start()
    target = tmp_path / "copy.mdb"
    size = backup.create(store, str(target))
    other.set()
    writer.join()
    assert target.stat().st_mode & 0o777 == 0o600
    assert size == target.stat().st_size
    assert backup.restore(str(tmp_path / "again"), str(target)) is None
    again = _open(tmp_path / "again")
    found = helpers.everything(again)
    assert found["shot"] == b'"' + b"QUJD" * 300_000 + b'"'
    assert int(found.get("a", b"-1")) - int(found.get("b", b"-1")) in (0, 1)
    again.close()


def test_a_restore_keeps_what_it_replaces_and_changes_the_epoch(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    store = _open(folder)
    helpers.put(store, "k", b'"old"')
    backup.create(store, str(tmp_path / "copy.mdb"))
    helpers.put(store, "k", b'"new"')
    epoch = store.about.epoch
    store.close()
    aside = backup.restore(str(folder), str(tmp_path / "copy.mdb"))
    store = _open(folder)
    assert helpers.get(store, "k") == b'"old"'
    assert store.about.epoch != epoch
    store.close()
    assert aside is not None
    os.rename(aside, folder / "store.mdb")
    store = _open(folder)
    assert helpers.get(store, "k") == b'"new"'
    store.close()


def test_restores_in_the_same_second_each_keep_what_they_replace(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    store = _open(folder)
    for number in range(4):
        helpers.put(store, "k", b"%d" % number)
        backup.create(store, str(tmp_path / f"{number}.mdb"))
    helpers.put(store, "k", b"4")
    store.close()
    kept = [backup.restore(str(folder), str(tmp_path / f"{number}.mdb")) for number in range(4)]
    assert len(set(kept)) == 4
    for aside, value in zip(kept, (b"4", b"0", b"1", b"2"), strict=True):
        assert aside is not None
        os.replace(aside, folder / "store.mdb")
        store = _open(folder)
        assert helpers.get(store, "k") == value
        store.close()


def test_a_store_in_use_is_not_replaced(tmp_path: Path, store: Store) -> None:
    backup.create(store, str(tmp_path / "copy.mdb"))
    with pytest.raises(BusyError):
        backup.restore(store.folder, str(tmp_path / "copy.mdb"))


def test_a_bad_copy_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    store = _open(tmp_path / "s")
    helpers.put(store, "k", b'"' + b"find me" * 900 + b'"')
    copy = tmp_path / "copy.mdb"
    backup.create(store, str(copy))
    store.close()
    content = copy.read_bytes()
    copy.write_bytes(content.replace(b"find mefind", b"find mefinD", 1))
    with pytest.raises(DamagedError):
        backup.restore(str(tmp_path / "s"), str(copy))
    os.truncate(copy, len(content) // 2)
    with pytest.raises(DamagedError):
        backup.restore(str(tmp_path / "s"), str(copy))
    store = _open(tmp_path / "s")
    assert helpers.get(store, "k") == b'"' + b"find me" * 900 + b'"'
    store.close()


def test_a_backup_never_overwrites_a_file(tmp_path: Path, store: Store) -> None:
    (tmp_path / "copy.mdb").write_text("mine")
    with pytest.raises(ConflictError):
        backup.create(store, str(tmp_path / "copy.mdb"))
    assert (tmp_path / "copy.mdb").read_text() == "mine"
    with pytest.raises(NotFoundError):
        backup.create(store, str(tmp_path / "no" / "copy.mdb"))
