"""Errors that exist only over HTTP."""

from __future__ import annotations

__all__ = ["Busy", "Forbidden"]


class Busy(Exception):
    """Too much is waiting; try again later."""


class Forbidden(Exception):
    """The client has no access to this."""
