"""Names of Python objects and of commands in documents exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer

from moviola.cli import all_commands
from moviola.library.disk import settings
from moviola.retrieval.saved import description

app = all_commands()

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "DESIGN.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "history.md"),
]
DOTTED = re.compile(r"`(moviola(?!\.toml`)(?:\.\w+)+)(?:\(\))?`")
ROLE = re.compile(r":\w+:`~?(moviola\.[\w.]+)`")
FILE = re.compile(r"`(?:python )?((?:tests|benchmarks|scripts|examples|docs|src)/[\w./-]+)`")
COMMAND = re.compile(r"`(moviola(?: [a-z][a-z0-9-]*)+)")


def exists(name: str) -> bool:
    """Whether a dotted name is that of a module or of something in one; fields of dataclasses count."""
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        holder, _, field = name.rpartition(".")
        return field in getattr(resolve_name(holder), "__dataclass_fields__", {}) if exists(holder) else False
    return True


def commands(command: Any, words: str) -> Iterator[str]:
    """The words that call each command, or list a group of them."""
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{words} {name}")


COMMANDS = set(commands(typer.main.get_command(app), "moviola"))
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
# Of pip, and of Typer itself.
OTHERS = {"--constraint", "--extra-index-url", "--help", "--install-completion", "--with"}


def options(command: Any, words: str) -> Iterator[tuple[str, set[str]]]:
    """The options of each command, by the words that call it."""
    own = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    yield words, own | {"--help", "--log"}
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{words} {name}")


OPTIONS = dict(options(typer.main.get_command(app), "moviola"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_documents_exist(path: Path) -> None:
    wrong = [name for name in DOTTED.findall(path.read_text(encoding="utf-8")) if not exists(name)]
    assert not wrong


def test_formats_in_the_page_on_them_are_those_of_the_code() -> None:
    page = (ROOT / "docs" / "howto" / "safe.md").read_text(encoding="utf-8")
    for what, newest, oldest in (
        ("library", settings.FORMAT_VERSION, 1),
        ("trained model", description.FORMAT, description._OLDEST),
    ):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {what} |")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert (cells[1], cells[3]) == (str(newest), f"{oldest} to {newest}")


def test_names_and_files_in_docstrings_exist() -> None:
    """A page that has moved leaves a constant whose figures nobody can look up."""
    wrong = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names = [name for name in ROLE.findall(text) if not exists(name)]
        files = [name for name in FILE.findall(text) if not (ROOT / name).exists()]
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name in (*names, *files)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_in_documents_exist(path: Path) -> None:
    wrong = [name for name in FILE.findall(path.read_text(encoding="utf-8")) if not (ROOT / name).exists()]
    assert not wrong


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_exist(path: Path) -> None:
    for words in sorted(set(COMMAND.findall(path.read_text(encoding="utf-8")))):
        called = words.split(" ")
        grouped = any(known.startswith(" ".join(called[:2]) + " ") for known in COMMANDS)
        assert " ".join(called[: 3 if grouped else 2]) in COMMANDS, words  # arguments follow


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_in_documents_exist(path: Path) -> None:
    """Those behind a command are its own; those alone may be any command's, or a script's."""
    scripts = "".join(one.read_text(encoding="utf-8") for one in (ROOT / "benchmarks").rglob("*.py"))
    known = set().union(*OPTIONS.values(), OTHERS)
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        words = code.split()
        if words[0].startswith("--"):
            as_argument = rf"\b{words[0].lstrip('-').replace('-', '_')}="  # of `measuring.arguments`
            of_scripts = f'"{words[0]}"' in scripts or re.search(as_argument, scripts)
            assert words[0] in known or of_scripts, code
        called = next((" ".join(words[:n]) for n in (3, 2) if " ".join(words[:n]) in OPTIONS), None)
        if called and "&&" not in words:
            assert set(OPTION.findall(code)) <= OPTIONS[called], code
