"""Measurements side by side, each printing a ratio. Run them as programs; nothing is asserted."""
