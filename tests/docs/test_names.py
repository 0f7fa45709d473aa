"""Names of Python objects in documents and commands exist; each command says what does the same from Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from moviola.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "DESIGN.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
DOTTED = re.compile(r"`(moviola(?:\.\w+)+)(?:\(\))?`")
FROM_PYTHON = re.compile(r"From Python: (.+?)(?:\n\n|\Z)", re.DOTALL)
COMMAND = re.compile(r"`(moviola(?: [a-z][a-z0-9-]*)+)")


def commands(command: Any, words: tuple[str, ...] = ("moviola",)) -> Iterator[tuple[str, Any]]:
    """Each command that does something, with the words that call it."""
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(words), command
    else:
        for name, one in sorted(below.items()):
            yield from commands(one, (*words, name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_documents_exist(path: Path) -> None:
    for name in sorted(set(DOTTED.findall(path.read_text(encoding="utf-8")))):
        resolve_name(name)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_exist(path: Path) -> None:
    for words in sorted(set(COMMAND.findall(path.read_text(encoding="utf-8")))):
        assert any((words + " ").startswith(known + " ") or known.startswith(words + " ") for known in COMMANDS), words


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_names_what_does_the_same_from_python(words: str) -> None:
    said = FROM_PYTHON.search(COMMANDS[words].help or "")
    assert said, f"{words}: its docstring lacks a line 'From Python: `moviola.…`.'"
    names = re.findall(r"`([\w.]+)`", said[1])
    assert names and names[0].startswith("moviola."), said[0]
    for name in names:  # "`moviola.a.b` and `c`" are names of one module
        resolve_name(name if "." in name else f"{names[0].rpartition('.')[0]}.{name}")
