"""Search in saved conversations: names, then the text of entries, then attachments.

``scan`` looks through rows and knows nothing of a store, ``sessions`` brings the rows of one moment
of the store to it, ``job`` is the form in which a helper process does it.
"""
