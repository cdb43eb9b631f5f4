"""Text as people see it: graphemes, names made from text, text made comparable for a search.

Pure functions of strings; nothing here knows of requests or of the store.
"""
