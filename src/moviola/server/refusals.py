"""What a server refuses that a library would not: errors that only exist over HTTP."""

from __future__ import annotations

__all__ = ["Busy", "Forbidden"]


class Busy(Exception):
    """More is waiting than the server takes on; try again later."""


class Forbidden(Exception):
    """Whoever asks may not have that."""
