"""The command line: thin commands over the rooms, one file per group of commands."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from typer.models import CommandInfo, TyperInfo

from moviola.cli.app import PANELS, app, note, placed, short_help
from moviola.errors import BrokenPlugin, InvalidValue, MissingDependency, MoviolaError
from moviola.plugins import naming_plugins, plugin, plugins

__all__ = ["all_commands", "main"]

COMMANDS = {name: module for names in PANELS.values() for name, (module, _) in names.items()}
"""The module of each of moviola's own commands and groups."""

HOOK = "moviola.commands"
"""The group of entry points by which packages add commands; those of studies come so, too."""


def load_commands(wanted: str = "") -> None:
    """Add commands to :data:`app`: the one that is wanted, or all if there is none of that name.

    To build all of them takes as long as a tenth of a first search, and to look for those of other packages a
    twentieth. Heavy libraries are imported by the command that runs. Where all are added, for the help, a
    plug-in that is broken is named, and the others are shown.
    """
    if wanted in COMMANDS:
        importlib.import_module(f"moviola.cli.{COMMANDS[wanted]}")
        if any(_group(one).info.name == wanted for one in app.registered_groups):
            for added in plugins(HOOK):
                if added.point.name == wanted:
                    _adopt(added.load(typer.Typer))
    elif named := plugin(HOOK, wanted) if wanted else None:
        _adopt(named.load(typer.Typer))
    else:
        for module in dict.fromkeys(COMMANDS.values()):
            with _naming_broken():
                importlib.import_module(f"moviola.cli.{module}")
        for added in plugins(HOOK):
            with _naming_broken():
                _adopt(added.load(typer.Typer))
    for command in app.registered_commands:
        if not isinstance(command.rich_help_panel, str):
            command.rich_help_panel = placed(_name(command))[1]
        command.short_help = command.short_help or short_help(_name(command))
    for group in app.registered_groups:
        if not isinstance(group.rich_help_panel, str):
            group.rich_help_panel = placed(str(_group(group).info.name))[1]
        own = short_help(str(_group(group).info.name))
        group.short_help = own if own else group.short_help


@contextmanager
def _naming_broken() -> Iterator[None]:
    try:
        yield
    except BrokenPlugin as error:
        note(f"error: {error}")


def _adopt(added: typer.Typer) -> None:
    """Add the commands and groups of a plug-in; a group of a name that is there gets more commands."""
    _add_commands(added, app)
    groups = {_group(one).info.name: _group(one) for one in app.registered_groups}
    for group in added.registered_groups:
        own = _group(group)
        if there := groups.get(own.info.name):
            if there is not own:
                _add_commands(own, there)
        else:
            app.registered_groups.append(group)


def _add_commands(added: typer.Typer, group: typer.Typer) -> None:
    """Commands of a name that is there stay what they are."""
    known = set(map(_name, group.registered_commands))
    group.registered_commands += [one for one in added.registered_commands if _name(one) not in known]


def _name(command: CommandInfo) -> str:
    return str(command.name or getattr(command.callback, "__name__", ""))


def _group(info: TyperInfo) -> typer.Typer:
    assert info.typer_instance is not None  # that of all groups which were added as one
    return info.typer_instance


# With less, all of OpenBLAS, OpenVINO and libav have ended a process by a signal.
_LEAST_MEMORY = 2 << 30
_MORE_MEMORY = "give it 4 GiB (ulimit -v 4194304), or more for large models"

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
    try:
        if not {"-h", "--help", "--version"} & set(sys.argv[1:]):
            _require_memory()
        if sys.argv[1:] != ["--version"]:  # which needs none of them
            load_commands(_command_in(sys.argv[1:]))
        with naming_plugins():
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
    except MemoryError as error:
        note(f"error: not enough memory ({error or 'none is left'}); {_MORE_MEMORY}")
        sys.exit(1)


def _require_memory() -> None:
    """Refuse an address space in which libraries end the process, or fail halfway."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has none
        return
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
        return str(MissingDependency(f"{package} is not installed", _EXTRAS[package]))
    if not isinstance(error, OSError):
        return str(error)
    what = error.strerror or str(error)
    remedy = "free some space" if error.errno == errno.ENOSPC else "check that it exists and may be used"
    where = error.filename or "standard output or a temporary file"
    return f"{where}: {what}; {remedy}, then run the command again"
