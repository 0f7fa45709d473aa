"""Which module has which command, own ones and those of plug-ins."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import typer
from typer.models import CommandInfo, TyperInfo

from moviola.cli.app import PANELS, app, note, placed, short_help
from moviola.errors import BrokenPlugin
from moviola.plugins import plugin, plugins

__all__ = ["COMMANDS", "HOOK", "all_commands", "load_commands"]

COMMANDS = {name: module for names in PANELS.values() for name, (module, _) in names.items()}
"""The module of each of moviola's own commands and groups."""

HOOK = "moviola.commands"
"""The group of entry points by which packages add commands; those of studies come so, too."""


def load_commands(wanted: str = "") -> typer.Typer:
    """Add commands to :data:`app`: the one that is wanted, or all if there is none of that name. Returns what
    is to be run, without commands that share a module with the one that is wanted.

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
    return _alone(wanted) if wanted in COMMANDS else app


def _alone(wanted: str) -> typer.Typer:
    """The application with one command; with all that were added, if it is a group."""
    own = [one for one in app.registered_commands if _name(one) == wanted]
    if not own:
        return app
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = own, []
    return alone


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


def all_commands() -> typer.Typer:
    """The command line with all its commands."""
    return load_commands()
