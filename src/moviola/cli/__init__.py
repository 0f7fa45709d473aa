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
    "places",
    "watch",
    "kept",
    "search",
    "answers",
    "mark",
    "export",
    "mcp",
    "transcript",
    "doctor",
    "serve",
    "gridhouse",
    "measures",
    "datasets",
    "judge",
    "features",
    "models",
    "train",
    "public",
):
    importlib.import_module(f"moviola.cli.{_group}")


_EXTRAS = {"torch": "train", "transformers": "train", "scipy": "studies"}
"""The extra that installs a package which commands import where they need it."""


def main() -> None:
    """Run the command line. An error, ours or the system's, becomes one line on standard error and code 1."""
    # What is there at the end goes with the process. To look through it for garbage first takes .2 s.
    atexit.register(gc.freeze)
    try:
        app()
    except MoviolaError as error:
        note(f"error: {error}")
        sys.exit(1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        note(f"error: {package} is not installed; run: pip install 'moviola[{_EXTRAS[package]}]'")
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
    where = error.filename or "standard output or a temporary file"
    return f"{where}: {what}; {remedy}, then run the command again"
