"""Slow work in a process of its own: thumbnails now, whatever else must not hold calls up.

``parent`` is the host's side, ``child`` the helper's main; between them go the ``frames``. A kind
of work is one module of the table in ``kinds``, imported in the child only.
"""
