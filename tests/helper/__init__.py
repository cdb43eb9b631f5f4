"""Tests of slow work in a process of its own."""
