"""Commands of studies, entry points of ``moviola.commands``."""

STUDIES = "Studies"
"""Their panel in the help."""
