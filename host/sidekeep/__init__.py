"""Sidekeep: a local, user-owned store for a browser extension's data."""

__version__ = "0.1.0"
