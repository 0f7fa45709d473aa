"""The command line: thin commands over the rooms, one file per group of commands."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import io
import os
import sys

import typer

from moviola.cli.app import app, note
from moviola.errors import MoviolaError

__all__ = ["all_commands", "main"]

COMMANDS = {
    "index": "indexing", "watch": "indexing", "search": "search", "list": "library", "show": "library",
    "transcript": "library", "remove": "library", "verify": "library", "repair": "library",
    "compact": "library", "library": "library", "duplicates": "library", "kept": "kept", "answer": "answers",
    "mark": "kept", "teach": "kept", "concepts": "kept", "export": "export", "open": "export",
    "cut": "export", "mcp": "serve", "doctor": "library", "serve": "serve", "gridhouse": "datasets",
    "evaluate": "measures", "compare": "measures", "dataset": "datasets", "judge": "judge",
    "features": "features", "models": "models", "train": "train", "public": "public",
}  # fmt: skip
"""The module of each command and group, which adds it when imported; in the order of the help."""


def load_commands(wanted: str = "") -> None:
    """Add commands to :data:`app`: the one that is wanted, or all if there is none of that name.

    To build all of them takes as long as a tenth of a first search. Heavy libraries are imported by the
    command that runs.
    """
    for module in [COMMANDS[wanted]] if wanted in COMMANDS else dict.fromkeys(COMMANDS.values()):
        importlib.import_module(f"moviola.cli.{module}")
    order = list(COMMANDS)
    app.registered_commands.sort(
        key=lambda one: order.index(str(one.name or getattr(one.callback, "__name__", "")))
    )


_EXTRAS = {"torch": "train", "transformers": "train", "scipy": "studies"}
"""The extra that installs a package, for packages that a command imports."""


def all_commands() -> typer.Typer:
    """The command line with all its commands."""
    load_commands()
    return app


def main() -> None:
    """Run the command line. An error, ours or the system's, becomes one line on standard error and code 1."""
    _open_missing_streams()
    # Memory is freed with the process; a last garbage collection would take .2 s. Those while modules are
    # imported, which leave no garbage, take a twentieth of a cold search.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal may lack letters of a name or a subtitle; standard error escapes them by itself.
        sys.stdout.reconfigure(errors="backslashreplace")
    load_commands(_command_in(sys.argv[1:]))
    try:
        app()
    except SystemExit as left:
        if left.code == 130:
            note("interrupted")
        if isinstance(left.__context__, BrokenPipeError):  # `| head` has read enough; typer makes it code 1
            sys.exit(0)
        option = getattr(left.__context__, "option_name", "")
        if left.code == 2 and option[:1] == "-" != option[1:2]:
            note("A text or a name that begins with a dash is given after --: moviola show -- -film")
        raise
    except (MoviolaError, ModuleNotFoundError, OSError) as error:
        note(f"error: {_complaint(error)}")
        sys.exit(1)


def _open_missing_streams() -> None:
    """Give a process that was started without standard streams such as lead nowhere.

    Else a file that is opened becomes standard output, and takes what is printed.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _command_in(words: list[str]) -> str:
    """The command in a command line, after options of ``moviola`` itself; empty if there is none."""
    left = iter(words)
    for word in left:
        if word == "--log":
            next(left, "")
        elif not word.startswith("--log="):
            return word
    return ""


def _complaint(error: Exception) -> str:
    """What an error says; of the system's what was refused, where, and the remedy."""
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise error
        return f"{package} is not installed; run: pip install 'moviola[{_EXTRAS[package]}]'"
    if not isinstance(error, OSError):
        return str(error)
    what = error.strerror or str(error)
    remedy = "free some space" if error.errno == errno.ENOSPC else "check that it exists and may be used"
    where = error.filename or "standard output or a temporary file"
    return f"{where}: {what}; {remedy}, then run the command again"
