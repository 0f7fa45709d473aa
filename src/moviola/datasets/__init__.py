"""Data sets: reading them, writing them, making them. One module a data set; nothing is imported here."""
