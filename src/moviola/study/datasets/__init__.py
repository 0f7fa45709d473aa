"""Data sets: readers, building steps, and the generated set, gridhouse; nothing is imported here."""
