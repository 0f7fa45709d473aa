"""Letters that steer a terminal: what is printed, or may be, has none of them."""

from __future__ import annotations

import re

__all__ = ["STEERING", "plain"]

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, marks that turn the direction of writing, and the halves of
characters as which Python reads file names that are not Unicode."""


def plain(text: str) -> str:
    """A text without characters that steer the terminal or cannot be written; each becomes ``�``."""
    return STEERING.sub("\ufffd", text)
