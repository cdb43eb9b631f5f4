"""What is kept, in the words of its users: areas now; conversations and pictures on top of them.

Uses ``store`` and knows nothing of messages.
"""
