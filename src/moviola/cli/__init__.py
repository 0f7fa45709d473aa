"""The command line: thin commands over the rooms, one file per group of commands."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

__all__ = ["all_commands", "main"]

# With less, all of OpenBLAS, OpenVINO and libav have ended a process by a signal.
_LEAST_MEMORY = 2 << 30
_MORE_MEMORY = "give it 4 GiB (ulimit -v 4194304), or more for large models"

_EXTRAS = {"torch": "train", "transformers": "train", "scipy": "studies"}
"""The extra that installs a package, for packages that a command imports."""


def all_commands() -> typer.Typer:
    """The command line with all its commands."""
    from moviola.cli import commands

    return commands.all_commands()


def main() -> None:
    """Run the command line. An error, ours or the system's, becomes one line on standard error and code 1."""
    _open_missing_streams()
    # Memory is freed with the process; a last garbage collection would take .2 s. Those while modules are
    # imported, which leave no garbage, take a twentieth of a cold search.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal may lack letters of a name or a subtitle; standard error escapes them by itself.
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.argv[1:] == ["--version"]:  # as an option of the application it would take twice as long
        from moviola.cli.version import print_version

        try:
            print_version()
        except BrokenPipeError:
            return
        except OSError as error:
            _fail(error)
    else:
        _run()


def _run() -> None:
    from moviola.cli.app import note
    from moviola.cli.commands import load_commands
    from moviola.errors import MoviolaError
    from moviola.plugins import naming_plugins

    try:
        if not {"-h", "--help", "--version"} & set(sys.argv[1:]):
            _require_memory()
        run = load_commands(_command_in(sys.argv[1:]))
        with naming_plugins():
            run()
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
        _fail(error)
    except MemoryError as error:
        note(f"error: not enough memory ({error or 'none is left'}); {_MORE_MEMORY}")
        sys.exit(1)


def _fail(error: Exception) -> NoReturn:
    from moviola.cli.app import note

    note(f"error: {_complaint(error)}")
    sys.exit(1)


def _require_memory() -> None:
    """Refuse an address space in which libraries end the process, or fail halfway."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has none
        return
    from moviola.errors import InvalidValue

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < _LEAST_MEMORY:
        raise InvalidValue(
            f"the address space is limited to {limit / 2**30:.1f} GiB (ulimit -v), and libraries reserve "
            f"more than they use; {_MORE_MEMORY}"
        )


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
        from moviola.errors import MissingDependency

        return str(MissingDependency(f"{package} is not installed", _EXTRAS[package]))
    if not isinstance(error, OSError):
        return str(error)
    what = error.strerror or str(error)
    remedy = "free some space" if error.errno == errno.ENOSPC else "check that it exists and may be used"
    where = error.filename or "standard output or a temporary file"
    return f"{where}: {what}; {remedy}, then run the command again"
