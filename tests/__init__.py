"""Tests of Sidekeep, by layer; the stdio harness they share is ``tests.harness``."""
