"""Routes by theme, each module with a ``router``."""
