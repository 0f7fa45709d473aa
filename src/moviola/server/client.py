"""Asking a server from Python."""

from __future__ import annotations

__all__ = ["Client"]


class Client:
    """To be written next."""
