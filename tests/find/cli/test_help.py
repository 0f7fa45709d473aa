"""Every command has help in plain words, an example, ``-h``, ``--json``, and names its Python counterpart."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pkgutil import resolve_name
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from cold_commands import cold
from moviola.cli import all_commands
from moviola.cli.commands import COMMANDS as TABLE
from moviola.cli.commands import HOOK
from moviola.plugins import plugins

app = all_commands()

UNPLAIN = re.compile(r"\b(by itself|shall)\b", re.IGNORECASE)
"""Words that hide what an option does."""


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
    texts = [command.help, *(getattr(option, "help", None) or "" for option in command.params)]
    assert not [text for text in texts if UNPLAIN.search(re.sub("`.+?`", "", text))]


@pytest.mark.parametrize("words", [[], ["kept"], ["search"], ["library", "use"]])
def test_help_has_a_short_name(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "-h"])
    assert shown.exit_code == 0 and "Usage" in shown.output


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_names_what_does_the_same_from_python(name: str) -> None:
    said = re.search(r"From Python: (.+?)(?:\n\n|\Z)", COMMANDS[name].help, re.DOTALL)
    assert said, f"{name}: its docstring lacks a line 'From Python: `moviola.…`.'"
    names = re.findall(r"`([\w.]+)`", said[1])
    assert callable(resolve_name(names[0])), f"{name}: {names[0]} is no function"
    for other in names[1:]:  # of "`moviola.a.b` and `c`" both are names of one module
        resolve_name(other if "." in other else f"{names[0].rpartition('.')[0]}.{other}")


def test_each_command_is_loaded_from_the_module_that_the_table_names() -> None:
    """A command alone is loaded by its name; a wrong table would lose it."""
    script = (
        "import sys, typer\n"
        "from moviola.cli.commands import load_commands\n"
        "from moviola.cli.app import app\n"
        "load_commands(sys.argv[1])\n"
        "commands = typer.main.get_command(app).commands\n"
        "print(*commands, *getattr(commands.get('library'), 'commands', ()))\n"
    )
    everything = list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    added = {one.point.name for one in plugins(HOOK)}
    assert set(everything) == set(TABLE) | added
    for wanted in ("train", "search", "kept", "library"):
        ran = subprocess.run(
            [sys.executable, "-c", script, wanted], capture_output=True, text=True, check=True
        )
        assert wanted in ran.stdout.split() and "models" not in ran.stdout.split()
    assert {"info", "roots"} <= {*ran.stdout.split()}


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--version"], ["typer", "rich", "dataclasses", "moviola.types", "moviola.errors"]),
        (["--help"], ["click", "pydantic", "faiss", "av", "fastapi", "openvino", "moviola.encoders.clip"]),
        (["search", "--help"], ["click", "pydantic", "numpy"]),
    ],
    ids=" ".join,
)
def test_what_a_cold_command_does_not_import(words: list[str], unneeded: list[str]) -> None:
    """Most of the time of a first command goes into imports: those here have crept in once, or would."""
    done = cold(words, unneeded)
    assert done.returncode == 0, done.stderr
    if words == ["--version"]:
        assert re.fullmatch(r"moviola \d+\.\d+\.\d+\S*\n", done.stdout)


def test_no_command_hides_another_of_its_name() -> None:
    """`models convert` was an encoder's and a checkpoint's: the second one was not there."""

    def callbacks(group: typer.Typer) -> Iterator[object]:
        yield from (command.callback for command in group.registered_commands)
        for below in group.registered_groups:
            assert below.typer_instance is not None
            yield from callbacks(below.typer_instance)

    there = {*callbacks(all_commands())}
    assert [
        own for added in plugins(HOOK) for own in callbacks(added.load(typer.Typer)) if own not in there
    ] == []
