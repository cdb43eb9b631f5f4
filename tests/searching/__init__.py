"""Search in saved conversations: the scan alone, on a store, and in a process of its own."""
