"""Data sets: reading them, building them, and the generated one, gridhouse; nothing is imported here."""
