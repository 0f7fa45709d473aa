"""Every command has help, an example, ``--json``, and names what does the same from Python."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
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
# Their functions are to come: `moviola.training.experiment`.
WITHOUT_A_FUNCTION = {"moviola train", "moviola answer"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_an_example(name: str) -> None:
    command = COMMANDS[name]
    assert command.help and "Example" in command.help, f"{name}: no example in its help"
    assert any("--json" in p.opts for p in command.params), f"{name}: no --json"


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - WITHOUT_A_FUNCTION))
def test_every_command_names_what_does_the_same_from_python(name: str) -> None:
    found = re.search(r"From Python: `([\w.]+)`", COMMANDS[name].help)
    assert found, f"{name}: no function in its help"
    assert callable(resolved(found[1])), f"{name}: {found[1]} is no function"


def resolved(path: str) -> Any:
    """What a dotted path names: the longest module in it, then attributes."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"{path}: no such module")
