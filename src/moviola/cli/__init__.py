"""The command line: thin commands over the rooms, one file per group of commands."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import sys

from moviola.cli.app import app, note
from moviola.errors import MoviolaError

__all__ = ["app", "main"]

_INTERRUPTED = 130

# Each module adds its commands to `app` when imported; heavy libraries are imported by the command that runs.
for _group in (
    "indexing",
    "library",
    "places",
    "kept",
    "search",
    "answers",
    "mark",
    "export",
    "mcp",
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
"""The extra that installs a package, for packages that a command imports."""


def main() -> None:
    """Run the command line. An error, ours or the system's, becomes one line on standard error and code 1."""
    # Memory is freed with the process; a last garbage collection would take .2 s.
    atexit.register(gc.freeze)
    try:
        app()
    except SystemExit as left:
        if left.code == _INTERRUPTED:
            note("interrupted")
        raise
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
        note(f"error: {_system_error(error)}")
        sys.exit(1)


def _system_error(error: OSError) -> str:
    """What the system refused, where, and the remedy."""
    what = error.strerror or str(error)
    remedy = "free some space" if error.errno == errno.ENOSPC else "check that it exists and may be used"
    where = error.filename or "standard output or a temporary file"
    return f"{where}: {what}; {remedy}, then run the command again"
