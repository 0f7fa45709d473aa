"""Films and a library that commands work on."""

from two_films import films, library

__all__ = ["films", "library"]
