"""Reading and writing files, for all rooms.

``rows``: JSON, JSON lines, CSV and plain rows, with the file and the line in every error. ``writing``: files
that appear complete or not at all. ``toml``: settings. ``locks``: one writer at a time. ``names``: accents.
"""
