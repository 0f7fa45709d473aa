"""The command line: thin commands over the rooms. One file a group of commands."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import sys

from moviola.cli.app import app, note
from moviola.errors import MoviolaError

__all__ = ["app", "main"]

# Each of these modules hangs its commands on `app` when imported; they import heavy libraries late.
for _group in (
    "library",
    "search",
    "answers",
    "export",
    "mcp",
    "transcript",
    "doctor",
    "serve",
    "gridhouse",
    "measures",
    "studies",
    "datasets",
    "judge",
    "features",
    "models",
    "train",
    "benchmark",
):
    importlib.import_module(f"moviola.cli.{_group}")


def main() -> None:
    """Run the command line. An error, ours or the system's, becomes one line on standard error and code 1."""
    # What is there at the end goes with the process. To look through it for garbage first takes .2 s.
    atexit.register(gc.freeze)
    try:
        app()
    except MoviolaError as error:
        note(f"error: {error}")
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        note(f"error: {_told(error)}")
        sys.exit(1)


def _told(error: OSError) -> str:
    """What the system refused, where, and what to do: the machine stands in the way, not a defect."""
    what = error.strerror or str(error)
    remedy = "free some space" if error.errno == errno.ENOSPC else "see that it is there and may be used"
    return f"{f'{error.filename}: ' if error.filename else ''}{what}; {remedy}, then run the command again"
