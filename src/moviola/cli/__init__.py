"""The command line: thin commands over the rooms. One file a group of commands."""

from __future__ import annotations

import importlib
import sys

from moviola.cli.app import app, note
from moviola.errors import MoviolaError

__all__ = ["app", "main"]

# Each of these modules hangs its commands on `app` when imported; they import heavy libraries late.
for _group in ("library", "gridhouse", "measures", "datasets", "models", "train", "benchmark"):
    importlib.import_module(f"moviola.cli.{_group}")


def main() -> None:
    """Run the command line; a :class:`MoviolaError` becomes one line on standard error and exit code 1."""
    try:
        app()
    except MoviolaError as error:
        note(f"error: {error}")
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
