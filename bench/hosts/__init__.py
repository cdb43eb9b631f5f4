"""Hosts to compare with: what the pipe, a synced write and a Python start cost at least."""
