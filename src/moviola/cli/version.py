"""``moviola --version``, which needs neither the commands nor what they are made with."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["print_version"]


def print_version() -> None:
    """Print the version of the installed package."""
    print(f"moviola {version('moviola')}")
