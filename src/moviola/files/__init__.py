"""Files read and written, once for all rooms.

``rows``: JSON, JSON lines, CSV and plain rows, with the file and the line in every error. ``writing``: files
that are whole or not there. ``toml``: settings. ``locks``: one writer at a time.
"""
