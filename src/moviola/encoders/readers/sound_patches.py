"""Where patches of sound begin and end, for those who search what was heard and need no reader."""

__all__ = ["HOP", "PATCH"]

HOP, PATCH = 0.48, 0.96
"""Seconds between the starts of two patches, and the length of one."""
