"""Fixtures of the tests of installation."""

from tests.ops.fixtures import checkout, empty_machine, machine, prepared

__all__ = ["checkout", "empty_machine", "machine", "prepared"]
