"""Fixtures of the tests of installation; the ``conftest`` of each folder takes them in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops.machine import Machine, copy_checkout, use_prepared_app


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the source tree, made once, so that all tests install the same bytes."""
    return copy_checkout(tmp_path_factory.mktemp("checkout") / "sidekeep")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, checkout: Path) -> Machine:
    """Return a machine with a finished install whose program folder others may take."""
    machine = Machine(tmp_path_factory.mktemp("prepared") / "home", checkout)
    machine.installed()
    return machine


@pytest.fixture
def machine(tmp_path: Path, prepared: Machine) -> Machine:
    """Return a machine without browsers; its program folder is there, so installing is quick."""
    machine = Machine(tmp_path / "home", prepared.checkout)
    use_prepared_app(prepared, machine)
    return machine


@pytest.fixture
def empty_machine(tmp_path: Path, checkout: Path) -> Machine:
    """Return a machine with nothing at all on it."""
    return Machine(tmp_path / "home", checkout)
