"""Submitting moments to a DRES evaluation server (VBS, LSC): an addition to ``moviola serve``."""

PASSWORD = "MOVIOLA_DRES_PASSWORD"
"""Environment variable of the account's password."""

EXAMPLE = "https://team@dres.example.org"
