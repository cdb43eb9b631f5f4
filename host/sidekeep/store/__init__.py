"""The store: documents, blobs, conversations and the journal in one LMDB file.

The only layer that imports lmdb. ``docs/format.md`` describes the file.
"""
