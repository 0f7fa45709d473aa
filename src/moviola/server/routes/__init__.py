"""Routes by theme; each module has a ``router``."""
