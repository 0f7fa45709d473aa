"""Every command has help, an example, ``--json``, and names what does the same from Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any

import pytest
import typer.main

from moviola.cli import app


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for word, one in below.items():
        yield from commands(one, f"{name} {word}")


COMMANDS = dict(commands(typer.main.get_command(app), "moviola"))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert command.help and "Example" in command.help, f"{name}: no example in its help"
    assert any("--json" in p.opts for p in command.params), f"{name}: no --json"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_names_what_does_the_same_from_python(name: str) -> None:
    said = re.search(r"From Python: (.+?)(?:\n\n|\Z)", COMMANDS[name].help, re.DOTALL)
    assert said, f"{name}: its docstring lacks a line 'From Python: `moviola.…`.'"
    names = re.findall(r"`([\w.]+)`", said[1])
    assert callable(resolve_name(names[0])), f"{name}: {names[0]} is no function"
    for other in names[1:]:  # of "`moviola.a.b` and `c`" both are names of one module
        resolve_name(other if "." in other else f"{names[0].rpartition('.')[0]}.{other}")
