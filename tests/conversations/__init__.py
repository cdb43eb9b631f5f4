"""Conversations over the wire: history, sessions, pictures, and the plain keys that show them."""
