"""A word that is no command leads to the one that is meant: by a name that other programs have for it, of
a group of commands, or misspelt; nothing is suggested that does not exist.
"""

from __future__ import annotations

from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.cli.meant import _OF_OTHERS, commands_meant

app = all_commands()


MEANT = {
    "find dog": "search", "play 1": "open", "info": "show", "help": "--help", "version": "--version",
    "status": "library info", "add films": "index", "FIND": "search", "tag": "kept tag",
    "library list": "list", "models use": "library use", "serch": "search", "library movee": "library move",
    "xyzzy": "--help",
}  # fmt: skip


@pytest.mark.parametrize(("words", "meant"), MEANT.items())
def test_an_unknown_command_leads_to_the_one_that_is_meant(words: str, meant: str) -> None:
    ran = CliRunner().invoke(app, words.split(), env={"COLUMNS": "200"})
    assert ran.exit_code == 2 and "No such command" in ran.output
    said = [part for part in ran.output.split("`")[1::2] if part != "moviola -h"]
    assert said[0] == f"moviola {meant}" and set(said) <= {f"moviola {name}" for name in commands()}


def test_every_command_that_is_named_for_another_name_exists() -> None:
    assert set(_OF_OTHERS) <= set(commands())
    names = [other for others in _OF_OTHERS.values() for other in others.split()]
    assert not set(names) & set(commands())
    built = typer.main.get_command(app)
    assert all(commands_meant(one, built) for one in names)


def commands() -> list[str]:
    def below(group: Any, before: str) -> list[str]:
        names = [f"{before} {name}".strip() for name in group.commands]
        groups = {n: c for n, c in group.commands.items() if hasattr(c, "commands")}
        return names + [one for n, c in groups.items() for one in below(c, f"{before} {n}".strip())]

    return ["--help", "--version", *below(typer.main.get_command(app), "")]
