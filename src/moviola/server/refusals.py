"""Errors that exist only over HTTP."""

from __future__ import annotations

from moviola.server.progress import Progress

__all__ = ["Busy", "Forbidden"]


class Busy(Exception):
    """Too much is waiting, or something is not done yet; try again later.

    Attributes:
        progress: of what is waited for, where that is known.
    """

    def __init__(self, message: str, progress: Progress | None = None) -> None:
        super().__init__(message)
        self.progress = progress


class Forbidden(Exception):
    """The client has no access to this."""
