"""Tests of the wire: a channel in this process, or in a child, over real pipes."""
