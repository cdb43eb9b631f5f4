"""Tests of installation, registration and the sidekeep command."""
