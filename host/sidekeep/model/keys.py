"""The keys of the local area whose arrays are kept entry by entry, and the one beside them."""

HISTORY = "history"
INDEX = "savedSessions"
BODY = "session_"
ACTIVE = "activeSessionId"
# A longer key does not fit into a row's key; it stays a plain item.
LONGEST_KEY = 400


def is_view(key: str) -> bool:
    """Whether an array under this key of the local area is kept entry by entry."""
    return key in {HISTORY, INDEX} or (
        key.startswith(BODY) and key != BODY and len(key.encode()) <= LONGEST_KEY
    )
